//! Where keys go in the text.

use crate::read::key_wanted::Value;

/// Where a row's key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    /// The text from here …
    pub(crate) start: u32,
    /// … to here is replaced.
    pub(crate) end: u32,
    pub(crate) row: u32,
    /// How many of the client's parameters come before it.
    pub(crate) parameters: u32,
    pub(crate) kind: SiteKind,
}

/// How a row's key is written.
///
/// A column that is absent is put first, so that the parameter a prepared statement needs for it is its first. It is put
/// last where a value refers to it: such a value must find what it finds natively, the column's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiteKind {
    /// `key,` before the row's other values.
    First,
    /// `,key` behind the row's other values.
    Last,
    /// `key` between `(` and `)`.
    Only,
    /// `` `id`=key, `` before the assignments.
    Assign,
    /// `` ,`id`=key `` behind the assignments.
    AssignLast,
    /// In place of what stands there.
    Replace,
    /// In place of what stands there unless `NO_AUTO_VALUE_ON_ZERO` is set when the server gets to it.
    UnlessZeroIsValue,
    /// A parameter, which stays.
    Parameter,
}

/// A row whose key is a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyParameter {
    /// The row, from 0.
    pub row: u32,
    /// Which of the client's parameters it is, from 0.
    pub parameter: u16,
}

/// What a value means for a row.
pub(crate) fn site_kind(value: Value, no_auto_value_on_zero: Option<bool>) -> Option<SiteKind> {
    match (value, no_auto_value_on_zero) {
        (Value::Null, _) | (Value::Zero, Some(false)) => Some(SiteKind::Replace),
        (Value::Zero, None) => Some(SiteKind::UnlessZeroIsValue),
        (Value::Zero, Some(true)) | (Value::Explicit, _) => None,
        (Value::Parameter, _) => Some(SiteKind::Parameter),
    }
}
