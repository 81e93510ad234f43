//! The column that gets the keys, and how it comes into lists of columns.

use crate::lex::quote::quote_name;
use crate::read::key_value::KeyForm;

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

/// A name for a list: first, last, or alone.
pub(crate) fn listed(name: &[u8], alone: bool, last: bool) -> Vec<u8> {
    let mut edit = Vec::new();
    if last && !alone {
        edit.push(b',');
    }
    quote_name(name, &mut edit);
    if !last && !alone {
        edit.push(b',');
    }
    edit
}

/// A whole column list: the live columns, and the key's where it is not among them.
pub(crate) fn full_list(name: &[u8], live: &[Vec<u8>], own: bool, last: bool) -> Vec<u8> {
    let own = own.then_some(name);
    let (first, behind) = if last { (None, own) } else { (own, None) };
    let names = first
        .into_iter()
        .chain(live.iter().map(Vec::as_slice))
        .chain(behind);
    let mut edit = b" (".to_vec();
    write_names(names, &mut edit);
    edit.push(b')');
    edit
}

/// All live columns, for the inside of a list without any.
pub(crate) fn listed_all(live: &[Vec<u8>]) -> Vec<u8> {
    let mut edit = Vec::new();
    write_names(live.iter().map(Vec::as_slice), &mut edit);
    edit
}

fn write_names<'a>(names: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for (index, name) in names.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        quote_name(name, out);
    }
}
