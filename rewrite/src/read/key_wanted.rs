//! What is asked of what stands at the key column's place, and what it may be.

use crate::read::constant::Care;

/// What kind of column holds the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyForm {
    /// An integer: 0 asks for a key as NULL does, and LAST_INSERT_ID() reports it.
    Integer,
    /// Text, such as a UUID: only what is absent, NULL or DEFAULT asks for a key.
    Text,
    /// Bytes, such as a UUID in `BINARY(16)`: as for text.
    Bytes,
}

/// A value as far as keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// NULL: always asks for a key.
    Null,
    /// DEFAULT, `DEFAULT(id)`, or what is stored as 0: asks unless `NO_AUTO_VALUE_ON_ZERO` is set.
    Zero,
    /// Another constant, or what the server refuses.
    Explicit,
    /// `?`.
    Parameter,
}

/// What a value is read for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a [u8],
    /// The table that the rows go into.
    pub(crate) table: &'a [u8],
    /// Its schema, if it is named.
    pub(crate) schema: Option<&'a [u8]>,
    pub(crate) form: KeyForm,
    /// In the first row.
    pub(crate) care: Care,
    /// Whether the server is as strict in the rows behind it.
    pub(crate) is_strict_behind: bool,
    /// Inside `ROW()` of a table value constructor.
    pub(crate) in_row: bool,
    /// In the select list of a query.
    pub(crate) in_query: bool,
    /// What is computed is known not to be NULL: where only NULL asks for a key, it is one.
    pub(crate) is_computed_own: bool,
    /// NULL is an error in the key's column, at least in the only row of a statement: so what is computed is a key there, too.
    pub(crate) null_fails: bool,
}

impl Wanted<'_> {
    /// The same in the rows behind the first.
    pub(crate) fn behind_first(mut self) -> Self {
        self.care.is_strict &= self.is_strict_behind;
        self
    }

    /// The same where words are refused, which are not known to be stored as 0.
    pub(super) fn without_lax(mut self) -> Self {
        self.care.is_lax = false;
        self
    }
}
