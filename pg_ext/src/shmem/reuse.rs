//! Finding a slot for a key. When none is left, one is passed on whose key can never come again, or whose ids are all
//! recorded where its next owner looks. Where that is not certain the slot is kept.

use std::sync::atomic::{AtomicU64, Ordering};

use keywright_core::register::{Floor, Register, Use};

use crate::server::security_label::{self, Labelled};
use crate::server::transaction::{self, Outcome};
use crate::shmem::area;
use crate::shmem::directory::{self, Full, Keyed};
use crate::shmem::gate::Held;
use crate::shmem::key::{Source, TagKey, TimeKey};
use crate::shmem::slot::{Attached, Slot};
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::time_slot::TimeSlot;

/// The slot of a tag; `None` when the server did not preload the library.
pub fn tag_slot(key: &TagKey) -> Option<Result<Attached<TagSlot>, Full>> {
    let found = attach_or_reuse(key, |slot: &TagSlot, _| {
        is_dropped(slot) || is_only_left(slot)
    })?;
    Some(found.map(|found| {
        note_drop_of_database(&found, key);
        settled(found, key)
    }))
}

/// See [`settle`]. Somebody in the gate may be settling it, or the next look-up does.
fn settled(found: Attached<TagSlot>, key: &TagKey) -> Attached<TagSlot> {
    let slot = found.slot;
    if !is_forgotten(slot) {
        return found;
    }
    match slot.gate().try_enter() {
        Some(held) if found.is_current() => {
            settle(slot, key, &held);
            Attached::now(slot)
        }
        Some(_) | None => found,
    }
}

/// Where a tag's slot was closed so long ago that nothing tells whether for good, it is passed on to the key that it has. If it was, what sessions know of
/// a native tag is worth nothing: another generation tells them. It goes on above its sequence, which is no lower than what was reserved; where somebody
/// has lowered it, that is noticed as before.
pub fn settle(slot: &'static TagSlot, key: &TagKey, held: &Held<'_>) {
    if !is_forgotten(slot) {
        return;
    }
    match key.source() {
        Source::Native => {
            let left_end = slot.left.get().map_or(0, |(_, end, _)| end);
            let end = slot.word.hi().max(left_end);
            slot.drain();
            renew_tag(slot, key, held);
            slot.word.publish(end, end);
        }
        // What was handed over is nobody else's, whoever issues it; and how far that went memory alone knows.
        Source::Fed => {
            reopen(&slot.dropped_by, &[Outcome::Forgotten]);
            reopen(&slot.closed_by, &[Outcome::Forgotten]);
        }
    }
}

/// Passes a tag's slot on to the key that it has, as [`directory::renew`] does. That somebody drops the database holds for whoever has the slot next, too.
pub fn renew_tag(slot: &'static TagSlot, key: &TagKey, held: &Held<'_>) {
    let tag = directory::renew(slot, key, held);
    note_drop_of_database(&tag, key);
}

/// Whoever drops a database tells of it before he lists its tags. So a slot that was given to its key before the list was made is noted by him; of one that
/// was given later, or given anew, this session has been told. Else its place would be nobody's once the drop has committed.
fn note_drop_of_database(tag: &Attached<TagSlot>, key: &TagKey) {
    if let Some(transaction) = dropping(key.database().to_u32()) {
        close_with_database(tag, transaction);
    }
}

/// The transaction that drops the database now. One that has ended says nothing of a session in the database: it failed, or dropped another that had the
/// same object id.
pub fn dropping(database: u32) -> Option<u64> {
    let transaction = area::dropped_by(database)?;
    match transaction::outcome(transaction) {
        Outcome::Open => Some(transaction),
        Outcome::Committed | Outcome::Failed | Outcome::Forgotten => {
            area::forget_drop(transaction);
            None
        }
    }
}

/// Whether nothing but what was left at the last stop is in it: no id of it was issued since, and its bound is on disk.
pub fn is_only_left(slot: &TagSlot) -> bool {
    slot.left.get().is_some()
}

/// The slot of a time word; `None` when the server did not preload the library.
pub fn time_slot(key: &TimeKey) -> Option<Result<Attached<TimeSlot>, Full>> {
    let mut register = None;
    attach_or_reuse(key, |slot: &TimeSlot, owner| {
        is_dropped(slot)
            || register
                .get_or_insert_with(committed_register)
                .as_ref()
                .is_some_and(|register| is_covered(slot, owner, register))
    })
}

/// The slot of a database whose snowflake ids are fed, and its key with the worker id that was handed over, if one was; `None` when the server
/// did not preload the library.
pub fn fed_slot(key: &TimeKey) -> Option<Result<Keyed<TimeSlot>, Full>> {
    match directory::attach_as(key, |its: &TimeKey| its.is_fed_like(key))? {
        Ok((found, its)) if !is_closed(found.slot) => Some(Ok((found, its))),
        // Of a database with the same object id that was dropped.
        Ok((found, its)) => Some(Ok((renewed(found, &its), its))),
        Err(_) => time_slot(key).map(|found| found.map(|found| (found, *key))),
    }
}

fn attach_or_reuse<S: Slot>(
    key: &S::Key,
    mut is_free: impl FnMut(&S, &S::Key) -> bool,
) -> Option<Result<Attached<S>, Full>> {
    let full = match directory::attach(key)? {
        Ok(found) => return Some(Ok(renewed(found, key))),
        Err(full) => full,
    };
    for (old, owner) in directory::slots::<S>(|_, _| true) {
        // Whoever holds a gate is using it; there is no hurry that would be worth a wait.
        let Some(held) = old.slot.gate().try_enter() else {
            continue;
        };
        if old.is_current() && is_free(old.slot, &owner) {
            old.slot.drain();
            return Some(Ok(directory::pass_on(old.slot, key, &held)));
        }
    }
    Some(Err(full))
}

/// A slot that was closed for good, if the very same key comes again: a tag or a bound that was changed; a database that was made anew with the same object
/// id, of a template that has the others. It is passed on as to any other key.
fn renewed<S: Slot>(found: Attached<S>, key: &S::Key) -> Attached<S> {
    if !is_closed(found.slot) {
        return found;
    }
    // Somebody in the gate is renewing it, and finds it closed no more; else the next look-up does.
    let Some(held) = found.slot.gate().try_enter() else {
        return found;
    };
    if !found.is_current() || !is_closed(found.slot) {
        return found;
    }
    found.slot.drain();
    directory::renew(found.slot, key, &held)
}

/// Whether the slot was closed for good: nothing more is issued of it. Who closed it noted in the same transaction how far it had come.
pub fn is_closed(slot: &impl Slot) -> bool {
    is_committed(slot.closed_by()) || slot.database_closed_by().is_some_and(is_committed)
}

/// Whether what the slot belonged to was dropped, for good, or has its ids from elsewhere now: another key may have the place. One that is forgotten may
/// have failed, and its place stays.
pub fn is_dropped(slot: &impl Slot) -> bool {
    is_committed(slot.dropped_by()) || slot.database_closed_by().is_some_and(is_committed)
}

/// Whether a tag was changed or dropped, and the server has forgotten whether for good.
pub fn is_forgotten(slot: &TagSlot) -> bool {
    outcome_of(&slot.closed_by) == Some(Outcome::Forgotten)
}

/// What became of the transaction that is noted, if one is.
fn outcome_of(closed_by: &AtomicU64) -> Option<Outcome> {
    let transaction = closed_by.load(Ordering::Acquire);
    (transaction != 0).then(|| transaction::outcome(transaction))
}

fn is_committed(closed_by: &AtomicU64) -> bool {
    outcome_of(closed_by) == Some(Outcome::Committed)
}

/// What becomes of what a closed slot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It changes, and goes on in its place.
    Change,
    /// It is dropped, or has its ids from elsewhere.
    Drop,
}

/// Notes that `transaction`, this one or a part of it, closes the slot. The caller holds a lock that keeps all others who close it away until the
/// transaction ends: that on the register for a time word; for a tag one on its sequence that conflicts with those of the others, or its row, too.
pub fn close(slot: &impl Slot, transaction: u64, closing: Closing) {
    note(slot.closed_by(), transaction);
    match closing {
        Closing::Change => {}
        Closing::Drop => note(slot.dropped_by(), transaction),
    }
}

/// The same of a tag whose database is dropped by `transaction`, which holds the lock on the register: whoever changes the tag need not. The caller is that
/// transaction, or has been told of it. A slot that was passed on meanwhile is left alone: it may be of another database, and if it is of this one, whoever
/// has it now has been told.
pub fn close_with_database(tag: &Attached<TagSlot>, transaction: u64) {
    let closed_by = &tag.slot.database_closed_by;
    let mut earlier = closed_by.load(Ordering::Acquire);
    while !stays(earlier) {
        let noted = directory::if_current(tag, || {
            closed_by.compare_exchange(earlier, transaction, Ordering::AcqRel, Ordering::Acquire)
        });
        // Somebody noted the same, or reopened the slot after a drop that failed.
        let Some(Err(found)) = noted else {
            return;
        };
        earlier = found;
    }
}

fn note(closed_by: &AtomicU64, transaction: u64) {
    if !stays(closed_by.load(Ordering::Acquire)) {
        closed_by.store(transaction, Ordering::Release);
    }
}

/// What was noted before stays if it is for good, or may become so. One that is open is an earlier part of this very transaction, which holds the lock: it
/// commits if this part does, and also where this part is undone. Those that failed count no more, nor do those that are forgotten: a tag was settled
/// before, and a time word goes on above all that it issued, whether it was closed for good or not.
fn stays(earlier: u64) -> bool {
    earlier != 0
        && match transaction::outcome(earlier) {
            Outcome::Open | Outcome::Committed => true,
            Outcome::Failed | Outcome::Forgotten => false,
        }
}

/// Has a tag's slot be as any other again where the transaction that closed it failed, and says whether one did that changes or drops the tag. Who
/// closes it meanwhile notes another transaction, which stays.
pub fn reopen_tag(slot: &TagSlot) -> bool {
    // Who asks is in the database: what was to drop it failed.
    reopen(
        &slot.database_closed_by,
        &[Outcome::Failed, Outcome::Forgotten],
    );
    reopen(&slot.dropped_by, &[Outcome::Failed]);
    reopen(&slot.closed_by, &[Outcome::Failed])
}

fn reopen(closed_by: &AtomicU64, after: &[Outcome]) -> bool {
    let transaction = closed_by.load(Ordering::Acquire);
    transaction != 0
        && after.contains(&transaction::outcome(transaction))
        && closed_by
            .compare_exchange(transaction, 0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
}

/// The register, if it is as it was committed last: what this transaction wrote may yet be undone.
fn committed_register() -> Option<Register> {
    if security_label::is_uncommitted(Labelled::Server) {
        return None;
    }
    Register::parse(&security_label::get(Labelled::Server)?)
}

/// Whether all that the word issued is at or below what the register knows of its number, and it is not the word that its
/// database issues from now.
fn is_covered(slot: &TimeSlot, owner: &TimeKey, register: &Register) -> bool {
    let hi = slot.main.word.hi().max(slot.spare.word.hi());
    let used = (hi > 0).then(|| Floor::below_state(owner.layout, hi));
    let Some(number) = owner.number() else {
        return false;
    };
    let known = match register.find(number) {
        None | Some((_, Use::Lost)) => return false,
        Some((_, Use::Left { floor })) => floor,
        Some((database, Use::Held(held))) => {
            let is_in_force = owner.is_in(database)
                && owner.sequence() == held.sequence
                && owner.layout == held.layout;
            if is_in_force {
                return false;
            }
            held.floor
        }
    };
    match (used, known) {
        (None, Some(_) | None) => true,
        (Some(_), None) => false,
        (Some(used), Some(known)) => known.covers(&used),
    }
}
