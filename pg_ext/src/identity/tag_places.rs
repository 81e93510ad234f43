//! The places that a tag of this database has in memory, closed one after the other, each under its gate.

use pgrx::pg_sys;

use crate::durable::turn::{self, Urgency};
use crate::failure::Failure;
use crate::server::process;
use crate::shmem::directory;
use crate::shmem::gate::Held;
use crate::shmem::key::TagKey;
use crate::shmem::slot::Attached;
use crate::shmem::tag_slot::TagSlot;

/// The places of a tag, with their keys: those of the sequence that is its bound.
pub fn of(sequence: pg_sys::Oid) -> Vec<(Attached<TagSlot>, TagKey)> {
    let database = process::database().to_u32();
    directory::slots::<TagSlot>(|_, key| key.is_in(database) && key.sequence() == sequence)
}

/// Enters the gate of a place. None: it is no longer the one that was listed.
///
/// # Errors
/// Another session is in it for too long.
pub fn enter(tag: &Attached<TagSlot>, urgency: Urgency) -> Result<Option<Held<'static>>, Failure> {
    let slot = tag.slot;
    let is_gone = || !tag.is_current();
    let held = turn::enter(&slot.gate, urgency, (&slot.waits, &slot.wait_us), is_gone)?;
    // Whoever renews it is in the gate: what is noted meanwhile he would wipe off.
    if is_gone() {
        return Ok(None);
    }
    held.map_or_else(|| Err(turn::held_up(&slot.gate)), |held| Ok(Some(held)))
}

/// Has all places of a tag closed, and returns the highest id that one of them tells. `close` says nothing of one that is no longer the one that was
/// listed: somebody has renewed it, and it is to be closed as it is now.
///
/// # Errors
/// Those of `close`.
pub fn close_all(
    sequence: pg_sys::Oid,
    close: impl Fn(Attached<TagSlot>, &TagKey) -> Result<Option<u64>, Failure>,
) -> Result<u64, Failure> {
    let mut end = 0;
    loop {
        let mut are_closed = true;
        for (tag, key) in of(sequence) {
            match close(tag, &key)? {
                Some(its_end) => end = end.max(its_end),
                None => are_closed = false,
            }
        }
        if are_closed {
            return Ok(end);
        }
    }
}
