//! Values and rows of whatever engine: numbers and texts that anybody may have edited.

use std::fmt;
use std::sync::Arc;

use super::error::StoreError;

/// What is sent to an engine, or comes from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    UInt(u64),
    Bytes(Vec<u8>),
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("NULL"),
            Self::Int(number) => number.fmt(out),
            Self::UInt(number) => number.fmt(out),
            Self::Bytes(bytes) => write!(out, "'{}'", String::from_utf8_lossy(bytes)),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::UInt(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::UInt(number.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The values of a statement's places, in their order.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::engine::value::Value::from($value)),*]
    };
}
pub(crate) use values;

/// A row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(super) names: Arc<[String]>,
    pub(super) values: Vec<Value>,
}

impl Row {
    fn get(&self, name: &str) -> Option<&Value> {
        let at = self.names.iter().position(|its| its == name)?;
        self.values.get(at)
    }

    /// The first column.
    pub(crate) fn first<T: FromValue>(&self) -> Result<T, StoreError> {
        let name = self.names.first().map_or("", String::as_str);
        column(self, name)
    }
}

/// What a column may hold.
pub(crate) trait FromValue: Sized {
    /// `None`: it is something else.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for Value {
    fn from_value(value: &Value) -> Option<Self> {
        Some(value.clone())
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Int(number) => Self::try_from(*number).ok(),
            Value::UInt(number) => Some(*number),
            Value::Bytes(bytes) => str::from_utf8(bytes).ok()?.parse().ok(),
        }
    }
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Int(number) => Some(*number),
            Value::UInt(number) => Self::try_from(*number).ok(),
            Value::Bytes(bytes) => str::from_utf8(bytes).ok()?.parse().ok(),
        }
    }
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Self::from_utf8(bytes.clone()).ok(),
            Value::Null | Value::Int(_) | Value::UInt(_) => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            Value::Int(_) | Value::UInt(_) | Value::Bytes(_) => T::from_value(value).map(Some),
        }
    }
}

/// A column as a number, text, …; an error, not a panic, when it is something else.
pub(crate) fn column<T: FromValue>(row: &Row, name: &str) -> Result<T, StoreError> {
    let wrong = |value: String| StoreError::Column {
        column: name.to_owned(),
        value,
    };
    let value = row
        .get(name)
        .ok_or_else(|| wrong("nothing: there is no such column".to_owned()))?;
    T::from_value(value).ok_or_else(|| wrong(value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::{FromValue, Row, Value, column};

    #[test]
    fn what_does_not_fit_is_an_error() {
        let row = Row {
            names: vec!["a".to_owned(), "b".to_owned()].into(),
            values: values![-1_i64, "x"],
        };
        assert_eq!(column::<i64>(&row, "a").unwrap(), -1);
        let told = column::<u64>(&row, "a").unwrap_err().to_string();
        assert_eq!(told, "column \"a\" holds -1");
        let told = column::<u64>(&row, "b").unwrap_err().to_string();
        assert_eq!(told, "column \"b\" holds 'x'");
        assert!(column::<u64>(&row, "c").is_err());
        // MySQL's text protocol writes numbers as text.
        assert_eq!(u64::from_value(&Value::from("17")), Some(17));
        assert_eq!(Option::<u64>::from_value(&Value::Null), Some(None));
        assert_eq!(u32::from_value(&Value::from(u64::MAX)), None);
        assert_eq!(i64::from_value(&Value::from(u64::MAX)), None);
    }
}
