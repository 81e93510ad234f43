//! All words of a tag are closed in a transaction that changes where its ids come from, or which numbers are ids: what sessions know of it
//! is worth nothing then, whatever transactions they are in.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::tag::Tag;
use pgrx::pg_sys;

use crate::cache::tag_entry;
use crate::catalog::sequences;
use crate::catalog::statements::run;
use crate::catalog::tag_rows::{Known, TagRow};
use crate::durable::flush;
use crate::durable::locks::Wanted;
use crate::durable::turn::Urgency;
use crate::failure::Failure;
use crate::identity::tag_places;
use crate::manage::lower_bound::restart;
use crate::refill::segment_plan;
use crate::server::{sequence, transaction};
use crate::settings;
use crate::shmem::key::TagKey;
use crate::shmem::reuse::Closing;
use crate::shmem::slot::{Attached, Slot};
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::{area, reuse};

/// What to call a tag in messages.
pub(super) fn name(tag: &Tag) -> String {
    format!("tag \"{tag}\"")
}

/// How long a change waits for those who refill.
pub(super) fn until_then() -> Urgency {
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    Urgency::Needed { deadline }
}

/// Keeps every other session from refilling the tag until this transaction ends. Before any gate: who is in one may wait for these.
pub(super) fn hold(tag: &Tag, row: &TagRow) -> Result<(), Failure> {
    Wanted::alone(&[row.sequence, row.note]).lock(until_then().deadline(), &|| name(tag))
}

/// Closes and drains all words of the tag that this life of memory has, each under its gate: they go on where they were if the transaction fails, above
/// the bound. Returns the first id above all that they may have issued or were handed over.
pub(super) fn close(sequence: pg_sys::Oid, closing: Closing) -> Result<u64, Failure> {
    tag_places::close_all(sequence, |tag, key| close_place(tag, key, closing))
}

/// Closes one place of a tag, and returns the first id above all that it may have issued or was handed over; none if it is no longer the one that was
/// listed.
fn close_place(
    tag: Attached<TagSlot>,
    key: &TagKey,
    closing: Closing,
) -> Result<Option<u64>, Failure> {
    let slot = tag.slot;
    // What was dropped for good issues nothing: it has its place to give up, at most.
    if closing == Closing::Change && reuse::is_closed(slot) && reuse::is_dropped(slot) {
        return Ok(Some(0));
    }
    let transaction = transaction::subtransaction_number();
    let Some(held) = tag_places::enter(&tag, until_then())? else {
        return Ok(None);
    };
    // Draining forgets the one, renewing the others.
    let left_end = slot.left.get().map_or(0, |(_, end, _)| end);
    let floor = slot.fed.floor.load(Ordering::Relaxed);
    let end = slot.word.hi().max(floor).max(left_end);
    // After a change that has committed the tag goes on anew, for whoever looks it up first: he is to find that closed, or he would go on with what he
    // knows, in a place that nobody gives up.
    if reuse::is_closed(slot) && !reuse::is_dropped(slot) {
        slot.drain();
        reuse::renew_tag(slot, key, &held);
    }
    reuse::settle(slot, key, &held);
    reuse::close(slot, transaction, closing);
    slot.drain();
    Ok(Some(end))
}

/// Closes a native tag and gives it new words above all that the old ones may have issued, once the transaction commits. Until then it issues nothing
/// here, and whoever needs a refill waits.
///
/// # Errors
/// Somebody else refills, or did in a transaction that is open.
pub(super) fn begin_anew(tag: &Tag, known: &Known, row: &TagRow) -> Result<(), Failure> {
    if !area::is_there() {
        return Ok(());
    }
    hold(tag, row)?;
    tag_entry::attach(tag, row.sequence);
    let issued = close(row.sequence, Closing::Change)?;
    let [bound_name, _] = sequences::names_of_tag(known.id);
    match segment_plan::end_of(sequence::last(row.sequence)).max(issued) {
        // Nobody has ever taken an id of it.
        0 => run(
            &format!("ALTER SEQUENCE keywright.{bound_name} RESTART"),
            &[],
        )
        .map(drop),
        end => restart(&bound_name, row.sequence, flush::last_of(end)?),
    }
}
