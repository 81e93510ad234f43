//! Extending the time bound of a snowflake or readable word: who we are is read again under the gate and the sequences'
//! locks, then the bound is planned, made durable and published.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::bound::{BoundPlan, BoundRequest, plan_bound};
use keywright_core::cause::Cause;
use keywright_core::writer::Note;
use pgrx::pg_sys;

use crate::cache;
use crate::cache::time_entry::{self, TimeEntry};
use crate::catalog::cached;
use crate::durable::locks::Wanted;
use crate::durable::turn::{self, Urgency};
use crate::durable::{flush, wait};
use crate::failure::Failure;
use crate::identity::bounds::Sequences;
use crate::identity::{uncommitted, writer};
use crate::refill::room::{Extended, is_enough, observe, refused};
use crate::refill::{fed_time, siblings, takeover};
use crate::server::role::AsOwner;
use crate::server::transaction::{self, Outcome};
use crate::server::{clock, latch, process, sequence, wal};
use crate::settings;
use crate::shmem::gate::Held;
use crate::shmem::slot::Slot;
use crate::shmem::time_slot::{TimeSlot, TimeTrack};
use crate::shmem::{directory, reuse};

/// Pause between two looks at a transaction that drops what the word belongs to.
const DROP_LOOK_MS: u64 = 10;

/// Makes room for `n` states in the word, unless somebody else just did, or is doing so and it is early.
pub fn extend(
    entry: &TimeEntry,
    spare: bool,
    n: u64,
    urgency: Urgency,
) -> Result<Extended, Failure> {
    if entry.key.is_fed() {
        return fed_time::extend(entry, spare, n, urgency);
    }
    let slot = entry.slot();
    let track = slot.track(spare);
    let enough = || is_enough(entry, spare, n, urgency);
    if !siblings::wait_for(entry, urgency)? {
        return Ok(Extended::Yes);
    }
    let Some(held) = turn::enter(&slot.gate, urgency, (&slot.waits, &slot.wait_us), enough)? else {
        return Ok(Extended::Yes);
    };
    if enough() {
        return Ok(Extended::Yes);
    }
    if !entry.at.is_current() {
        cache::forget();
        return Ok(Extended::Yes);
    }
    if is_being_dropped(slot) {
        drop(held);
        return wait_for_drop(track, urgency);
    }
    let node_table = cached::extension()?.node_table;
    let node = Wanted::to_read(node_table);
    let Some(node_lock) = node.try_lock() else {
        drop(held);
        return wait_for_locks(entry, track, urgency, &node);
    };
    // While its table is locked the extension is not dropped, so that all sequences are one extension's.
    if cached::extension()?.node_table != node_table {
        cache::forget();
        return Ok(Extended::Yes);
    }
    let sequences = Sequences::of(entry.kind)?;
    let wanted = Wanted::to_change(&sequences.all());
    if wanted.try_lock().is_none() {
        node_lock.give_back();
        drop(held);
        return wait_for_locks(entry, track, urgency, &wanted.and_read(node_table));
    }
    // Behind the locks: whoever changes the worker id or the layout holds them, and noted the bound as the last.
    if !is_still_ours(entry)? {
        cache::forget();
        return Ok(Extended::Yes);
    }
    if reuse::is_closed(slot) {
        // The sequence is there, so it was not dropped but lowered; what the word issued counts as forgotten.
        directory::renew(slot, entry.key, &held);
        cache::forget();
        return Ok(Extended::Yes);
    }
    write_bound(entry, spare, n, urgency, &sequences, &held)
}

/// A worker id may have been taken from this database while it waited; its word is then another's.
fn is_still_ours(entry: &TimeEntry) -> Result<bool, Failure> {
    Ok(time_entry::key(entry.kind)? == *entry.key)
}

/// Whether another transaction that is still open drops the database or the extension, or lowers its bounds: it noted how far the
/// word came.
///
/// A word that this database had not used before was not there to be closed: so the database is asked for, too.
fn is_being_dropped(slot: &TimeSlot) -> bool {
    let closed_by = slot.closed_by().load(Ordering::Acquire);
    if closed_by != 0 && !is_own(closed_by) && transaction::outcome(closed_by) == Outcome::Open {
        return true;
    }
    reuse::dropping(process::database().to_u32()).is_some_and(|dropped_by| !is_own(dropped_by))
}

fn is_own(transaction: u64) -> bool {
    transaction::is_own(transaction::short_number(transaction))
}

/// Waits for the locks that an extension needs, outside the gate: who has them may be waiting for it. They are kept until the
/// transaction ends, so that the next attempt finds them free.
fn wait_for_locks(
    entry: &TimeEntry,
    track: &TimeTrack,
    urgency: Urgency,
    wanted: &Wanted,
) -> Result<Extended, Failure> {
    match urgency {
        // The caller has its id: leave it to whoever needs the next bound.
        Urgency::Early => track.extend_at.store(u64::MAX, Ordering::Relaxed),
        Urgency::Needed { deadline } => {
            let name = || entry.kind.bound_name().to_owned();
            let figures = (&entry.slot().waits, &entry.slot().wait_us);
            turn::counted(figures, || wanted.lock(deadline, &name))?;
        }
    }
    Ok(Extended::Yes)
}

fn wait_for_drop(track: &TimeTrack, urgency: Urgency) -> Result<Extended, Failure> {
    match urgency {
        Urgency::Early => {
            track.extend_at.store(u64::MAX, Ordering::Relaxed);
            Ok(Extended::Yes)
        }
        Urgency::Needed { deadline } if Instant::now() >= deadline => Err(wait::timed_out(
            "a transaction that runs keywright.lower_bound, or drops the database or the extension",
        )),
        Urgency::Needed { .. } => {
            latch::sleep(Duration::from_millis(DROP_LOOK_MS));
            Ok(Extended::Yes)
        }
    }
}

/// A word that was closed goes on only if the transaction that closed it failed, above where it was closed.
fn reopen(entry: &TimeEntry) -> Result<(), Failure> {
    let slot = entry.slot();
    let transaction = slot.closed_by().load(Ordering::Acquire);
    if transaction == 0 {
        return Ok(());
    }
    match transaction::outcome(transaction) {
        // One that is forgotten may have committed: all that it noted is taken over, and the word goes on no lower than before.
        Outcome::Failed | Outcome::Forgotten => {
            slot.forget_bounds();
            slot.dropped_by().store(0, Ordering::Release);
            slot.closed_by().store(0, Ordering::Release);
            Ok(())
        }
        Outcome::Open => Err(uncommitted::failure(entry.kind.bound_name())),
        Outcome::Committed => Err(Failure::new(
            Cause::Suspended,
            format!("{} was dropped", entry.kind.bound_name()),
        )
        .hint("Create the extension again, and set a worker id.")),
    }
}

fn write_bound(
    entry: &TimeEntry,
    spare: bool,
    n: u64,
    urgency: Urgency,
    sequences: &Sequences,
    held: &Held<'_>,
) -> Result<Extended, Failure> {
    let slot = entry.slot();
    let track = slot.track(spare);
    reopen(entry)?;
    let readings = clock::readings();
    let before = wal::last_record();
    let (plan, now_ms, from_state) = {
        let _owner = AsOwner::new(entry.owner);
        let bound_ms = sequence::last(sequences.track(spare)?);
        // The bound is compared before it is moved: one that this word did not write was written for another layout or
        // worker, or by a restore. One that it wrote without learning the outcome is simply written again. While another
        // database had its number this one's bound may not have moved.
        let found_ms = bound_ms.unwrap_or(0);
        let ours = found_ms == track.bound_ms.load(Ordering::Relaxed)
            || found_ms == track.attempted_ms.load(Ordering::Relaxed);
        refuse_if_lower(entry, (track, sequences.track(spare)?), found_ms)?;
        if !(slot.taken_over.load(Ordering::Relaxed) && ours) {
            takeover::take_over(entry, readings, sequences, held)?;
        }
        let now_ms = observe(entry, readings, held);
        let wall_ms = readings
            .wall_ms
            .saturating_sub(slot.skew_ms.load(Ordering::Relaxed));
        let request = BoundRequest {
            layout: *entry.layout(),
            need_state_end: track
                .word
                .next()
                .max(entry.layout().state_at(wall_ms))
                .saturating_add(n),
            now_ms,
            bound_ms,
            window_ms: settings::bound_window_ms(),
            lead_ms_max: settings::lead_ms_max(),
        };
        let plan = match plan_bound(&request) {
            Ok(plan) => plan,
            Err(refusal) => return refused(entry, track, refusal, urgency),
        };
        let note = Note::new(writer::current(), now_ms, 1, 0);
        track.attempted_ms.store(plan.bound_ms, Ordering::Relaxed);
        sequence::set(sequences.track(spare)?, plan.bound_ms);
        sequence::set(sequences.note, note.pack());
        (plan, now_ms, request.need_state_end)
    };
    match (
        flush::make_refill_durable(before, urgency, &|| entry.kind.bound_name().to_owned()),
        urgency,
    ) {
        (Ok(()), Urgency::Early | Urgency::Needed { .. }) => {
            publish(entry, track, (from_state, &plan), now_ms);
        }
        // The caller has its id. Whoever needs the next one finds a bound that was not published, and takes it over.
        (Err(_), Urgency::Early) => track.extend_at.store(u64::MAX, Ordering::Relaxed),
        (Err(failure), Urgency::Needed { .. }) => return Err(failure),
    }
    Ok(Extended::Yes)
}

/// Sequences of ours only grow. One that reads lower than what this word made durable was set by somebody else. What is known is
/// written back, or it would be forgotten when the server stops.
fn refuse_if_lower(
    entry: &TimeEntry,
    (track, sequence): (&TimeTrack, pg_sys::Oid),
    found_ms: i64,
) -> Result<(), Failure> {
    let written_ms = track.bound_ms.load(Ordering::Relaxed);
    if found_ms >= written_ms {
        return Ok(());
    }
    sequence::set(sequence, written_ms);
    wal::flush();
    let name = entry.kind.bound_name();
    Err(Failure::new(
        Cause::BoundDamaged,
        format!("{name} is at {found_ms}, lower than the {written_ms} that was written last"),
    )
    .detail("Something other than keywright changed its sequence, for instance setval or ALTER SUBSCRIPTION ... REFRESH SEQUENCES.")
    .hint("It is put back: run the statement again. Find what set it, and keep it from doing so."))
}

fn publish(
    entry: &TimeEntry,
    track: &TimeTrack,
    (from_state, plan): (u64, &BoundPlan),
    now_ms: i64,
) {
    let window_ticks = settings::bound_window_ms() / u64::from(entry.layout().tick_ms().max(1));
    let window_states = window_ticks << entry.layout().sequence_bits();
    // Halfway through the window, or through what the maximum lead leaves of it.
    let states = window_states.min(plan.hi_state.saturating_sub(from_state));
    track.word.publish(0, plan.hi_state);
    track
        .extend_at
        .store(plan.hi_state.saturating_sub(states / 2), Ordering::Relaxed);
    track.bound_ms.store(plan.bound_ms, Ordering::Relaxed);
    entry.slot().refills.fetch_add(1, Ordering::Relaxed);
    entry.slot().last_refill_ms.store(now_ms, Ordering::Relaxed);
}
