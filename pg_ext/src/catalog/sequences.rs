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

/// Whether the tag with this id has its sequences.
pub fn are_of_tag(id: i32) -> bool {
    let is_there = |name: &String| relation::find(c"keywright", name).is_some();
    names_of_tag(id).iter().all(is_there)
}

/// A sequence in schema keywright.
///
/// # Errors
/// It is not there, or a crash would empty it.
pub fn named(name: &str) -> Result<pg_sys::Oid, Failure> {
    let sequence = relation::find(c"keywright", name)
        .ok_or_else(|| damage::missing(&format!("sequence keywright.{name}")))?;
    if relation::is_permanent(sequence) {
        Ok(sequence)
    } else {
        Err(damage::unlogged(&format!("sequence keywright.{name}")))
    }
}

/// The names of a tag's bound and of its note.
pub fn names_of_tag(id: i32) -> [String; 2] {
    [format!("tag_{id}"), format!("tag_{id}_note")]
}
