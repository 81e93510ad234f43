//! Why a transaction in the store failed, and columns that hold what they should not.

use std::error::Error;

use mysql_async::{FromValueError, Row};
use thiserror::Error as ThisError;

/// Why a transaction failed. Whatever it had sent may or may not have been done.
#[derive(Debug, ThisError)]
pub(crate) enum StoreError {
    /// It took too long, or no connection came free.
    #[error("no answer within {ms} ms")]
    TimedOut { ms: u64 },
    /// Refused by the server, or the connection failed.
    #[error("{}", innermost(.0))]
    Client(mysql_async::Error),
    /// A column holds what it should not.
    #[error("column \"{column}\" holds {value}")]
    Column { column: String, value: String },
    /// A row changed although it was locked.
    #[error("a row changed while it was locked")]
    NotLocked,
}

impl From<mysql_async::Error> for StoreError {
    fn from(error: mysql_async::Error) -> Self {
        Self::Client(error)
    }
}

/// What an error is about in the end: the driver's errors repeat what is inside of them.
#[must_use]
pub fn innermost(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}

impl StoreError {
    /// Whether the server has answered, with something that is of no use.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Client(mysql_async::Error::Server(_))
            | Self::Column {
                column: _,
                value: _,
            }
            | Self::NotLocked => true,
            Self::TimedOut { ms: _ } | Self::Client(_) => false,
        }
    }

    /// Whether the server has said no.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Client(mysql_async::Error::Server(_)))
    }
}

/// Whether the server refused because the table is not there.
pub(crate) fn is_missing_table(error: &StoreError) -> bool {
    matches!(error, StoreError::Client(mysql_async::Error::Server(server)) if server.code == 1146)
}

/// A column as a number, text, …; an error, not a panic, when it is something else.
pub(crate) fn column<T: mysql_async::prelude::FromValue>(
    row: &Row,
    name: &str,
) -> Result<T, StoreError> {
    let wrong = |value: String| StoreError::Column {
        column: name.to_owned(),
        value,
    };
    match row.get_opt::<T, _>(name) {
        Some(Ok(value)) => Ok(value),
        Some(Err(FromValueError(value))) => Err(wrong(value.as_sql(false))),
        None => Err(wrong("nothing: there is no such column".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_once() {
        let io = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let expected = io.to_string();
        let error = StoreError::from(mysql_async::Error::from(io));
        assert_eq!(error.to_string(), expected);
        assert!(error.source().is_none(), "it would be told again");
    }
}
