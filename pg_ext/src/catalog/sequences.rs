//! The sequences in schema keywright: bounds and notes.

use pgrx::pg_sys;

use crate::catalog::damage;
use crate::failure::Failure;
use crate::server::relation;

/// The sequence that is the bound of the tag with this id.
pub fn of_tag(id: i32) -> Result<pg_sys::Oid, Failure> {
    named(&format!("tag_{id}"))
}

/// The sequence that holds the note of the tag with this id.
pub fn note_of_tag(id: i32) -> Result<pg_sys::Oid, Failure> {
    named(&format!("tag_{id}_note"))
}

/// A sequence in schema keywright.
pub fn named(name: &str) -> Result<pg_sys::Oid, Failure> {
    relation::find(c"keywright", name)
        .ok_or_else(|| damage::missing(&format!("sequence keywright.{name}")))
}

/// The names of a tag's bound and of its note.
pub fn names_of_tag(id: i32) -> [String; 2] {
    [format!("tag_{id}"), format!("tag_{id}_note")]
}
