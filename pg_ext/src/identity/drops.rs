//! What becomes of words when the database they belong to, or the extension in it, is dropped. The transaction that drops them
//! closes them and notes in the register how far they came; what it wrote and what it closed stand or fall together.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::layout::Layout;
use keywright_core::readable;
use keywright_core::register::{Floor, Held, Number, Register, Use};
use pgrx::pg_sys;

use crate::catalog::node;
use crate::durable::turn::{self, Urgency};
use crate::failure::{Failure, OrRaise};
use crate::identity::bounds::{self, Sequences};
use crate::identity::{claims, register, tag_places, uncommitted};
use crate::server::backend::BackendCell;
use crate::server::role::AsOwner;
use crate::server::{process, relation, sequence, transaction};
use crate::shmem::key::{TagKey, TimeKey, TimeKind};
use crate::shmem::reuse::Closing;
use crate::shmem::slot::{Attached, Slot};
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::time_slot::TimeSlot;
use crate::shmem::{area, directory, reuse};

/// How long DROP DATABASE waits for a session in a word's gate: as long as the server itself waits for sessions to leave.
const DROP_WAIT_MS_MAX: u64 = 5_000;

/// A database is about to be dropped. Its sessions may issue for some seconds yet: the server waits for them to leave only
/// after this. So its words are closed here, and go on only if the drop fails.
///
/// What cannot be noted is safe: the number counts as held by a database that is gone.
pub fn database(database: u32) {
    if !area::is_there() || !register::is_locked_in_time() {
        return;
    }
    let Ok(mut register) = register::read() else {
        return;
    };
    let transaction = transaction::subtransaction_number();
    // Before tags and words are listed: one that is first used later finds this.
    area::announce_drop(database, transaction);
    for (tag, _) in directory::slots::<TagSlot>(|_, key| key.is_in(database)) {
        reuse::close_with_database(&tag, transaction);
    }
    let words = words_in(database);
    let closed: Vec<(Number, Option<Floor>)> = words
        .iter()
        .filter_map(|(word, key)| {
            let deadline = Instant::now() + Duration::from_millis(DROP_WAIT_MS_MAX);
            match close(*word, key, (transaction, Closing::Drop), deadline) {
                // What was handed over is the store's to know.
                Ok(floor) => key.number().map(|number| (number, floor)),
                Err(_) => None,
            }
        })
        .collect();
    let is_unknown = |number| {
        let of_number = words.iter().filter(|(_, key)| key.number() == Some(number));
        of_number.count() > closed.iter().filter(|(of, _)| *of == number).count()
    };
    for (number, held) in register.held_by(database).collect::<Vec<_>>() {
        let floor = highest(&closed, number);
        // Memory of the life in which the number was given is complete.
        let is_known = floor.is_some() || area::life() == Some(held.life);
        let usage = if is_known && !is_unknown(number) {
            Use::Left {
                floor: higher(floor, held.floor),
            }
        } else {
            Use::Lost
        };
        register.set(number, database, usage);
    }
    keep_unregistered(&mut register, database, &closed);
    register::write(&register);
}

/// Words of numbers that the database was given in a transaction that was rolled back: only memory knows of them.
fn keep_unregistered(register: &mut Register, database: u32, closed: &[(Number, Option<Floor>)]) {
    for (number, _) in closed {
        let known = match register.find(*number) {
            None => None,
            Some((_, Use::Left { floor })) => floor,
            // Whoever has it started above what memory knew.
            Some((_, Use::Held(_) | Use::Lost)) => continue,
        };
        let floor = higher(highest(closed, *number), known);
        if floor.is_some() {
            register.set(*number, database, Use::Left { floor });
        }
    }
}

fn higher(one: Option<Floor>, other: Option<Floor>) -> Option<Floor> {
    match one {
        Some(floor) => Some(floor.higher(other)),
        None => other,
    }
}

fn highest(closed: &[(Number, Option<Floor>)], number: Number) -> Option<Floor> {
    let of_number = closed.iter().filter(|(of, _)| *of == number);
    of_number.fold(None, |highest, (_, floor)| higher(highest, *floor))
}

/// Snowflake and readable words whose bounds are kept in the database, without those of extensions that were dropped before.
fn words_in(database: u32) -> Vec<(Attached<TimeSlot>, TimeKey)> {
    let mut words = directory::slots::<TimeSlot>(|_, key| key.is_in(database));
    words.retain(|(word, _)| !reuse::is_closed(word.slot));
    words
}

/// Stops a word until the transaction that closes it has ended, and says how far it came in this life of memory: nothing if it issued nothing. The caller
/// holds the lock on the register.
///
/// # Errors
/// Another session is in its gate for too long.
pub fn close(
    word: Attached<TimeSlot>,
    key: &TimeKey,
    (transaction, closing): (u64, Closing),
    deadline: Instant,
) -> Result<Option<Floor>, Failure> {
    let slot = word.slot;
    let urgency = Urgency::Needed { deadline };
    let is_gone = || !word.is_current();
    let held = turn::enter(&slot.gate, urgency, (&slot.waits, &slot.wait_us), is_gone)?;
    // Passed on to another key meanwhile: nothing of it was unrecorded.
    if !word.is_current() {
        return Ok(None);
    }
    if held.is_none() {
        return Err(turn::held_up(&slot.gate));
    }
    reuse::close(slot, transaction, closing);
    let end_state = slot.main.word.drain().max(slot.spare.word.drain());
    Ok(slot
        .taken_over
        .load(Ordering::Relaxed)
        .then(|| Floor::below_state(key.layout, end_state)))
}

/// A relation is about to be dropped: one of our sequences takes a bound with it. The transaction holds its lock, so nobody
/// moves the bound any more.
pub fn relation(relation: pg_sys::Oid) {
    let Some(name) = relation::own_sequence_name(relation) else {
        return;
    };
    if !area::is_there() {
        return;
    }
    if !relation::is_created_here(relation) {
        uncommitted::note_past();
    }
    note_lost().or_raise();
    match name.as_str() {
        "snowflake_bound" => note_bound(relation, TimeKind::Snowflake, true).or_raise(),
        "snowflake_spare_bound" => note_bound(relation, TimeKind::Snowflake, false).or_raise(),
        "readable_bound" => note_bound(relation, TimeKind::Readable, true).or_raise(),
        _ => end_tag(relation).or_raise(),
    }
}

/// The sequence of a tag is about to be dropped, and its ids may come again by another one. What is left of them in memory nobody issues any
/// more, whatever transaction he is in: who looked the tag up before needs a refill, and looks again.
fn end_tag(sequence: pg_sys::Oid) -> Result<(), Failure> {
    let transaction = transaction::subtransaction_number();
    for (tag, key) in tag_places::of(sequence) {
        let slot = tag.slot;
        let deadline = Instant::now() + Duration::from_millis(DROP_WAIT_MS_MAX);
        let Some(held) = tag_places::enter(&tag, Urgency::Needed { deadline })? else {
            continue;
        };
        reuse::settle(slot, &key, &held);
        reuse::close(slot, transaction, Closing::Drop);
        // Draining forgets it: the word's end says then how far the tag was reserved.
        if let Some((_, end, _)) = slot.left.get() {
            slot.word.publish(end, end);
        }
        slot.drain();
    }
    Ok(())
}

/// The transaction, or part of one, that has noted what did not arrive.
static LOST_NOTED_BY: BackendCell<u64> = BackendCell::new(0);

/// Notes how far bounds may have come of which the last did not arrive: once, when the first of keywright's sequences is about to
/// be dropped, and all that tells it is still there.
fn note_lost() -> Result<(), Failure> {
    let transaction = transaction::subtransaction_number();
    if LOST_NOTED_BY.replace(transaction) == transaction {
        return Ok(());
    }
    for kind in [TimeKind::Snowflake, TimeKind::Readable] {
        let Ok(sequences) = Sequences::of(kind) else {
            continue;
        };
        let lost_ms = {
            let _owner = AsOwner::new(pg_sys::BOOTSTRAP_SUPERUSERID.into());
            bounds::lost(&sequences)?
        };
        let Some(lost_ms) = lost_ms else {
            continue;
        };
        let ours = process::database().to_u32();
        register::lock()?;
        let mut register = register::read()?;
        let of_kind = |(number, _): &(Number, Held)| TimeKind::of(*number) == kind;
        for (number, mut held) in register.held_by(ours).filter(of_kind).collect::<Vec<_>>() {
            held.floor = claims::used_until(number, &held, Some(lost_ms));
            register.set(number, ours, Use::Held(held));
        }
        register::write(&register);
    }
    Ok(())
}

/// A tag is about to be dropped: once that has committed its place is free, and nobody issues what is left of it in memory, whatever transaction
/// he is in. Brought back, it goes on above its sequence, which drop_tag keeps. The caller has locked the row and the sequence. Returns the first id above
/// all that memory knows to be reserved.
///
/// # Errors
/// Another session is in the tag's gate for too long.
pub fn close_tag(sequence: pg_sys::Oid) -> Result<u64, Failure> {
    let deadline = Instant::now() + Duration::from_millis(DROP_WAIT_MS_MAX);
    tag_places::close_all(sequence, |tag, key| close_place(tag, key, deadline))
}

/// Closes one place of a tag, and returns the first id above all that it knows to be reserved; none if it is no longer the one that was listed.
fn close_place(
    tag: Attached<TagSlot>,
    key: &TagKey,
    deadline: Instant,
) -> Result<Option<u64>, Failure> {
    let slot = tag.slot;
    let Some(held) = tag_places::enter(&tag, Urgency::Needed { deadline })? else {
        return Ok(None);
    };
    let left_end = slot.left.get().map_or(0, |(_, end, _)| end);
    let end = slot.word.hi().max(left_end);
    // After a change that has committed the tag goes on anew, for whoever looks it up first: he is to find that closed.
    if reuse::is_closed(slot) {
        slot.drain();
        reuse::renew_tag(slot, key, &held);
    }
    reuse::settle(slot, key, &held);
    reuse::close(slot, transaction::subtransaction_number(), Closing::Drop);
    Ok(Some(end))
}

/// A word that is closed, and has issued ids in this life of memory.
struct ClosedWord {
    number: Number,
    /// How far it came, if that is not noted yet.
    floor: Option<Floor>,
    layout: Layout,
}

/// Closes a database's words of one kind: those that have issued ids of a number.
fn close_words(database: u32, kind: TimeKind) -> Result<Vec<ClosedWord>, Failure> {
    let transaction = transaction::subtransaction_number();
    let mut closed = Vec::new();
    for (word, key) in words_in(database) {
        if key.time_kind() != kind {
            continue;
        }
        // The other sequence's turn came before: what the word said is noted.
        let is_noted = word.slot.closed_by().load(Ordering::Acquire) == transaction;
        let floor = match is_noted {
            true => None,
            false => {
                let deadline = Instant::now() + Duration::from_millis(DROP_WAIT_MS_MAX);
                close(word, &key, (transaction, Closing::Drop), deadline)?
            }
        };
        let has_issued = match is_noted {
            true => word.slot.taken_over.load(Ordering::Relaxed),
            false => floor.is_some(),
        };
        if let Some(number) = key.number()
            && has_issued
        {
            closed.push(ClosedWord {
                number,
                floor,
                layout: key.layout,
            });
        }
    }
    Ok(closed)
}

/// Notes in the register how far this database used its numbers of one kind, before the sequence that says it is gone. A word in
/// memory knows it to the id; the sequence knows a moment that is not earlier.
fn note_bound(sequence: pg_sys::Oid, kind: TimeKind, is_main: bool) -> Result<(), Failure> {
    let ours = process::database().to_u32();
    register::lock()?;
    let mut register = register::read()?;
    let bound_ms = {
        let _owner = AsOwner::new(pg_sys::BOOTSTRAP_SUPERUSERID.into());
        sequence::last(sequence)
    };
    let other = if is_main {
        "snowflake_spare_bound"
    } else {
        "snowflake_bound"
    };
    let is_last = relation::find(c"keywright", other).is_none();
    let layout_default = node::layout_default()?;
    let closed = close_words(ours, kind)?;
    let floors: Vec<_> = closed
        .iter()
        .map(|word| (word.number, word.floor))
        .collect();
    let of_kind = |(number, _): &(Number, Held)| TimeKind::of(*number) == kind;
    for (number, mut held) in register.held_by(ours).filter(of_kind).collect::<Vec<_>>() {
        // Other layouts' words, of savepoints that were rolled back, count too.
        let in_memory = highest(&floors, number);
        let is_exact = closed
            .iter()
            .any(|word| word.number == number && word.layout == held.layout);
        let on_disk = claims::used_until(number, &held, bound_ms);
        held.floor = if is_exact {
            higher(in_memory, held.floor)
        } else {
            higher(in_memory, on_disk)
        };
        if is_main && !held.may_be_bound_by(sequence.to_u32()) {
            register.set(number, ours, Use::Lost);
            continue;
        }
        if is_main {
            held.sequence = 0;
        }
        // What an extension that is made anew begins with.
        match kind {
            TimeKind::Snowflake if is_last => held.layout = layout_default,
            TimeKind::Snowflake => {}
            TimeKind::Readable => held.layout = readable::LAYOUT,
        }
        register.set(number, ours, Use::Held(held));
    }
    keep_unregistered(&mut register, ours, &floors);
    register::write(&register);
    Ok(())
}
