//! Keys in place of values: a parameter has one type in all rows.

use keywright_core::KeyBatch;
use keywright_rewrite::{BulkConstruct, KeyForm, Unsupported};
use keywright_wire::bytes::write_lenenc;
use keywright_wire::params::Type;
use keywright_wire::values::BadValue;

use crate::prepared::bulk_keys::fault::Fault;
use crate::prepared::param_keys::key_type;

/// BIGINT.
const LONGLONG: u8 = 8;

/// How keys are written in place of what a parameter brings: all its rows have one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cast {
    /// None is.
    Keep,
    /// All rows that bring a value get a key instead.
    Key,
    /// As BIGINT, which values of the client's own become too.
    Widen { signed: bool },
    /// As text, which the server reads as it reads the client's.
    Text,
}

/// What the rows bring for one key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeyValues {
    pub(super) asks: bool,
    pub(super) has_value: bool,
}

impl KeyValues {
    /// How keys are written beside that.
    pub(super) fn cast(self, [kind, flag]: Type, form: KeyForm) -> Result<Cast, Unsupported> {
        if !self.asks {
            return Ok(Cast::Keep);
        }
        if !self.has_value {
            return Ok(Cast::Key);
        }
        match (kind, form) {
            (1 | 2 | 3 | LONGLONG, KeyForm::Integer) => Ok(Cast::Widen {
                signed: flag & 0x80 == 0,
            }),
            (0 | 246 | 249..=254, KeyForm::Integer)
            | (249..=254, KeyForm::Text)
            | (249..=252, KeyForm::Bytes) => Ok(Cast::Text),
            (_, KeyForm::Integer | KeyForm::Text | KeyForm::Bytes) => Err(NO_ROOM),
        }
    }
}

/// Keys that are given in some rows and asked for in others have one type.
const NO_ROOM: Unsupported = Unsupported::Bulk(BulkConstruct::NoRoom);

impl Cast {
    /// Appends a value of the client's own.
    pub(super) fn write(self, value: &[u8], out: &mut Vec<u8>) -> Result<(), BadValue> {
        out.extend_from_slice(value);
        if let (Self::Widen { signed }, Some(last)) = (self, value.last()) {
            let filling = if signed && last & 0x80 != 0 { 0xFF } else { 0 };
            let missing = 8_usize.checked_sub(value.len());
            let missing = missing.ok_or(BadValue::Malformed)?;
            out.extend(std::iter::repeat_n(filling, missing));
        }
        Ok(())
    }

    /// The type of all rows.
    pub(super) fn of_type(self, own: Type, keys: &KeyBatch) -> Type {
        match self {
            Self::Keep | Self::Text => own,
            Self::Key => key_type(keys),
            Self::Widen { signed } => [LONGLONG, if signed { 0 } else { 0x80 }],
        }
    }
}

/// Appends the `index`th key.
pub(super) fn write_key(
    keys: &KeyBatch,
    index: u64,
    cast: Cast,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    out.push(0);
    let mut text = |text: &[u8]| {
        write_lenenc(u64::try_from(text.len()).unwrap_or(0), out);
        out.extend_from_slice(text);
    };
    let at = usize::try_from(index).unwrap_or(usize::MAX);
    match keys {
        KeyBatch::Texts(texts) => text(texts.get(at).ok_or(BadValue::Malformed)?.as_bytes()),
        KeyBatch::Bytes(bytes) => text(bytes.get(at).ok_or(BadValue::Malformed)?),
        KeyBatch::Numbers { .. } | KeyBatch::Listed(_) => {
            let number = keys.number(index).ok_or(BadValue::Malformed)?;
            match cast {
                Cast::Text => text(number.to_string().as_bytes()),
                Cast::Widen { signed: true } if i64::try_from(number).is_err() => {
                    return Err(NO_ROOM.into());
                }
                Cast::Keep | Cast::Key | Cast::Widen { .. } => out.extend(number.to_le_bytes()),
            }
        }
    }
    Ok(())
}
