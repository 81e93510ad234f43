//! Finding a slot for a key. When none is left, one is passed on whose key can never come again, or whose ids are all
//! recorded where its next owner looks. Where that is not certain the slot is kept.

use std::sync::atomic::{AtomicU64, Ordering};

use keywright_core::register::{Floor, Register, Use};

use crate::server::security_label::{self, Labelled};
use crate::server::transaction::{self, Outcome};
use crate::shmem::directory::{self, Full, Keyed};
use crate::shmem::key::{TagKey, TimeKey};
use crate::shmem::slot::{Attached, Slot};
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::time_slot::TimeSlot;

/// The slot of a tag; `None` when the server did not preload the library.
pub fn tag_slot(key: &TagKey) -> Option<Result<Attached<TagSlot>, Full>> {
    attach_or_reuse(key, |slot: &TagSlot, _| {
        is_dropped(slot) || is_only_left(slot)
    })
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
        Ok((found, its)) if !is_dropped(found.slot) => Some(Ok((found, its))),
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

/// A slot that was closed for good, if the very same key comes again: a tag that was changed; a database that was made anew with the same object id, of
/// a template that has the others. It is passed on as to any other key.
fn renewed<S: Slot>(found: Attached<S>, key: &S::Key) -> Attached<S> {
    if !is_dropped(found.slot) {
        return found;
    }
    // Somebody in the gate is renewing it, and finds it closed no more; else the next look-up does.
    let Some(held) = found.slot.gate().try_enter() else {
        return found;
    };
    if !found.is_current() || !is_dropped(found.slot) {
        return found;
    }
    found.slot.drain();
    directory::renew(found.slot, key, &held)
}

/// Whether what the slot belonged to was dropped, for good. Who dropped it noted in the same transaction how far it had come.
pub fn is_dropped(slot: &impl Slot) -> bool {
    is_committed(slot.closed_by()) || slot.database_closed_by().is_some_and(is_committed)
}

fn is_committed(closed_by: &AtomicU64) -> bool {
    match closed_by.load(Ordering::Acquire) {
        0 => false,
        transaction => match transaction::outcome(transaction) {
            Outcome::Committed => true,
            Outcome::Open | Outcome::Failed | Outcome::Forgotten => false,
        },
    }
}

/// Notes that `transaction`, this one or a part of it, closes the slot. The caller holds a lock that keeps all others who close it away until the
/// transaction ends: that on the register for a time word; for a tag one on its sequence that conflicts with those of the others, or its row, too.
pub fn close(slot: &impl Slot, transaction: u64) {
    note(slot.closed_by(), transaction);
}

/// The same of a tag whose database is dropped. The caller holds the lock on the register, which whoever changes the tag need not.
pub fn close_with_database(slot: &TagSlot, transaction: u64) {
    note(&slot.database_closed_by, transaction);
}

/// What was noted before stays if it is for good, or may become so. One that is open is an earlier part of this very transaction, which holds the lock: it
/// commits if this part does, and also where this part is undone. Those that failed count no more.
fn note(closed_by: &AtomicU64, transaction: u64) {
    let earlier = closed_by.load(Ordering::Acquire);
    let stays = earlier != 0
        && match transaction::outcome(earlier) {
            Outcome::Open | Outcome::Committed => true,
            Outcome::Failed | Outcome::Forgotten => false,
        };
    if !stays {
        closed_by.store(transaction, Ordering::Release);
    }
}

/// Has a tag's slot be as any other again where the transaction that closed it failed, and says whether one did that changes or drops the tag. Who
/// closes it meanwhile notes another transaction, which stays.
pub fn reopen_tag(slot: &TagSlot) -> bool {
    reopen(&slot.database_closed_by);
    reopen(&slot.closed_by)
}

fn reopen(closed_by: &AtomicU64) -> bool {
    let transaction = closed_by.load(Ordering::Acquire);
    if transaction == 0 {
        return false;
    }
    match transaction::outcome(transaction) {
        Outcome::Failed | Outcome::Forgotten => closed_by
            .compare_exchange(transaction, 0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok(),
        Outcome::Open | Outcome::Committed => false,
    }
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
