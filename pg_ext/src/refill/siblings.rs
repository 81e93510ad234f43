//! Words whose ids could meet those of another: waited for and stopped, so that whoever comes after begins above them.

use std::sync::atomic::Ordering;

use keywright_core::register::Floor;

use crate::cache::time_entry::TimeEntry;
use crate::durable::turn::{self, Urgency};
use crate::failure::Failure;
use crate::identity::bounds;
use crate::shmem::key::TimeKey;
use crate::shmem::slot::Attached;
use crate::shmem::time_slot::TimeSlot;
use crate::shmem::{directory, reuse};

/// The same worker id under another layout has a word of its own, and its ids could equal ours. Whoever extends it now
/// looked up the layout before it changed: let it finish, so that the bound we take over from is the last it wrote. Whoever
/// extends it later looks the layout up again and finds it changed.
pub fn wait_for(entry: &TimeEntry, urgency: Urgency) -> Result<bool, Failure> {
    for (sibling, _) in of(entry) {
        let slot = sibling.slot;
        let figures = (&slot.waits, &slot.wait_us);
        if turn::enter(&slot.gate, urgency, figures, || !sibling.is_current())?.is_none()
            && sibling.is_current()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Words whose ids could meet this one's: of the same worker under another layout, or bounded by another sequence; of the same
/// bucket of another database.
fn of(entry: &TimeEntry) -> Vec<(Attached<TimeSlot>, TimeKey)> {
    let mut words = directory::slots::<TimeSlot>(|_, key| key.shares_ids_with(entry.key));
    words.retain(|(word, _)| !word.is_same(&entry.at));
    words
}

/// Drains the words whose ids could meet this one's: they are not in force any more, and if one comes back it must not go on
/// where it stopped. Returns how far each came, with either of its words: what is a spare bit in one layout may be a
/// worker's or a sequence's in another.
pub fn stop(entry: &TimeEntry) -> Vec<Floor> {
    let stop = |(sibling, key): (Attached<TimeSlot>, TimeKey)| {
        let end_state = bounds::used_up_to(sibling.slot);
        // A word that was passed on meanwhile had issued nothing that is not recorded.
        let is_used = sibling.is_current() && sibling.slot.taken_over.load(Ordering::Relaxed);
        // Who dropped it noted in the register how far it came, more exactly than can be told of a drained word.
        let is_noted = reuse::is_closed(sibling.slot);
        (is_used && !is_noted).then(|| Floor::below_state(key.layout, end_state))
    };
    of(entry).into_iter().filter_map(stop).collect()
}
