//! Keys among the parameters of an execution: which of the client's ask for one, and keys as parameters.

use keywright_core::KeyBatch;
use keywright_rewrite::{
    AsInteger, Care, KeyExpression, Meaning, Unsupported, double_as_integer, text_as_integer,
};
use keywright_wire::bytes::{Reader, write_lenenc};
use keywright_wire::params::{Param, Type, UNSIGNED};

/// Types of keys.
const LONGLONG_UNSIGNED: Type = [8, UNSIGNED];
const VAR_STRING: Type = [253, 0];
const BLOB: Type = [252, 0];

/// Whether a bound key asks for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Asks,
    /// It is DEFAULT, which asks unless sql_mode says otherwise.
    Default,
    Value(AsInteger),
}

impl Bound {
    /// Of a parameter that is the value of a key column.
    pub(crate) fn of(param: &Param<'_>) -> Self {
        if param.null {
            return Self::Asks;
        }
        let Some(value) = param.value else {
            // Sent as long data: nobody has read it.
            return Self::Value(AsInteger::Unclean);
        };
        let [_, flags] = param.of_type;
        let ask = match param.of_type[0] {
            1 | 2 | 3 | 8 | 9 | 13 => {
                let has_sign = value.last().is_some_and(|byte| *byte >= 0x80);
                match value.iter().all(|byte| *byte == 0) {
                    true => AsInteger::Zero,
                    false if has_sign && flags & UNSIGNED == 0 => AsInteger::Negative,
                    false => AsInteger::Other,
                }
            }
            4 => match <[u8; 4]>::try_from(value) {
                Ok(bytes) => double_as_integer(f64::from(f32::from_le_bytes(bytes))),
                Err(_) => AsInteger::Unclean,
            },
            5 => match <[u8; 8]>::try_from(value) {
                Ok(bytes) => double_as_integer(f64::from_le_bytes(bytes)),
                Err(_) => AsInteger::Unclean,
            },
            7 | 10 | 11 | 12 => AsInteger::Unclean,
            // What is no number is 0 to the servers.
            0 | 246 => match Reader(value).text().map(text_as_integer) {
                Some(AsInteger::Word | AsInteger::Empty) | None => AsInteger::Unclean,
                Some(as_integer) => as_integer,
            },
            _ => match Reader(value).text() {
                Some(text) => text_as_integer(text),
                None => AsInteger::Unclean,
            },
        };
        Self::Value(ask)
    }

    /// Whether it does. `only_null`: keys are no numbers.
    pub(crate) fn asks(self, care: Care, only_null: bool) -> Result<bool, Unsupported> {
        let zero_asks = match care.zero_is_value {
            Some(is_value) => !is_value,
            None => return Err(Unsupported::ZeroAmbiguous),
        };
        match self {
            Self::Asks => Ok(true),
            Self::Default => Ok(zero_asks && !only_null),
            // There `''` is NULL.
            Self::Value(AsInteger::Empty) if only_null && care.empty_is_null => {
                Err(Unsupported::Key(KeyExpression::EmptyText))
            }
            Self::Value(_) if only_null => Ok(false),
            Self::Value(ask) => match ask.meaning(care).map_err(Unsupported::Key)? {
                Meaning::Zero | Meaning::ZeroNow => Ok(zero_asks),
                Meaning::Explicit | Meaning::ExplicitNow => Ok(false),
            },
        }
    }
}

/// The type of keys as parameters.
pub(crate) fn key_type(keys: &KeyBatch) -> Type {
    match keys {
        KeyBatch::Numbers { .. } | KeyBatch::Listed(_) => LONGLONG_UNSIGNED,
        KeyBatch::Texts(_) => VAR_STRING,
        KeyBatch::Bytes(_) => BLOB,
    }
}

/// The keys as values of parameters, in the order of the rows that get them.
pub(crate) struct KeyValues {
    of_type: Type,
    values: Values,
}

enum Values {
    Numbers(Vec<[u8; 8]>),
    /// Each with its length before it.
    Texts(Vec<Vec<u8>>),
}

impl KeyValues {
    pub(crate) fn new(keys: &KeyBatch) -> Self {
        let text = |bytes: &[u8]| {
            let mut value = Vec::with_capacity(bytes.len() + 1);
            write_lenenc(u64::try_from(bytes.len()).unwrap_or(0), &mut value);
            value.extend_from_slice(bytes);
            value
        };
        match keys {
            KeyBatch::Numbers { .. } | KeyBatch::Listed(_) => Self {
                of_type: key_type(keys),
                values: Values::Numbers(
                    (0..keys.len())
                        .filter_map(|index| keys.number(index))
                        .map(u64::to_le_bytes)
                        .collect(),
                ),
            },
            KeyBatch::Texts(texts) => Self {
                of_type: key_type(keys),
                values: Values::Texts(texts.iter().map(|key| text(key.as_bytes())).collect()),
            },
            KeyBatch::Bytes(bytes) => Self {
                of_type: key_type(keys),
                values: Values::Texts(bytes.iter().map(|key| text(key)).collect()),
            },
        }
    }

    /// The parameter for the `index`th key.
    pub(crate) fn param(&self, index: usize) -> Option<Param<'_>> {
        let value = match &self.values {
            Values::Numbers(numbers) => numbers.get(index)?.as_slice(),
            Values::Texts(texts) => texts.get(index)?,
        };
        Some(Param {
            of_type: self.of_type,
            value: Some(value),
            null: false,
            name: &[],
        })
    }
}
