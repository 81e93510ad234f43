//! The column that gets the keys, and how it comes into lists of columns.

use crate::lex::quote::quote_name;
use crate::read::key_wanted::KeyForm;

/// The column that gets the keys.
#[derive(Debug, Clone, Copy)]
pub struct KeyColumn<'a> {
    /// Its name, in ASCII.
    pub name: &'a [u8],
    /// What it holds.
    pub form: KeyForm,
    /// The table's visible columns in their live order, in the client's character set. Only looked at when
    /// [`Insert::needs_columns`](crate::Insert::needs_columns) says so.
    pub live: &'a [Vec<u8>],
    /// Something that the text does not show reads LAST_INSERT_ID(): a trigger, a default expression.
    pub watched: bool,
    /// It is known to have numbers below 0.
    pub is_signed: bool,
    /// The table's engine is known to be strict in all rows and not only in the first, where sql_mode is: InnoDB without triggers.
    pub is_strict: bool,
}

/// A name for a list of others: first, or last.
pub(crate) fn listed(name: &[u8], last: bool) -> Vec<u8> {
    let mut edit = Vec::new();
    if last {
        edit.push(b',');
    }
    quote_name(name, &mut edit);
    if !last {
        edit.push(b',');
    }
    edit
}

/// A whole column list: the live columns, and the key's where it is not among them.
pub(crate) fn full_list(name: &[u8], live: &[Vec<u8>], own: bool, last: bool) -> Vec<u8> {
    let names = all_listed(name, live, own, last);
    [b" (", names.as_slice(), b")"].concat()
}

/// The same for the inside of a list without any.
pub(crate) fn all_listed(name: &[u8], live: &[Vec<u8>], own: bool, last: bool) -> Vec<u8> {
    let own = own.then_some(name);
    let (first, behind) = if last { (None, own) } else { (own, None) };
    let names = first
        .into_iter()
        .chain(live.iter().map(Vec::as_slice))
        .chain(behind);
    let mut edit = Vec::new();
    for (index, name) in names.enumerate() {
        if index > 0 {
            edit.push(b',');
        }
        quote_name(name, &mut edit);
    }
    edit
}
