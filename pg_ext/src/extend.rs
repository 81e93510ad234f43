//! Extending the time bound of a snowflake or readable word: who we are is read again under the gate and the sequences'
//! locks, then the bound is planned, made durable and published.

use std::sync::atomic::Ordering;

use keywright_core::bound::{
    BoundPlan, BoundRefusal, BoundRequest, Recorded, Takeover, TakeoverReason, plan_bound,
    plan_takeover,
};
use keywright_core::cause::Cause;
use keywright_core::clock::{ClockEvent, Readings};
use keywright_core::incarnation::Note;

use crate::failure::Failure;
use crate::gate::Held;
use crate::handover::{Sequences, above_siblings, drain_siblings, wait_for_siblings};
use crate::session;
use crate::shm::TimeTrack;
use crate::store::{self, Urgency};
use crate::words::{self, TimeEntry};
use crate::{clock, settings, sys};

/// What became of an extension.
pub enum Extended {
    /// There may be room now; try again.
    Yes,
    /// Ids are too far ahead of the clock already.
    TooFarAhead {
        /// How far ahead the wanted id is, milliseconds.
        lead_ms: u64,
        /// When it will no longer be, milliseconds from now.
        retry_after_ms: u64,
    },
}

/// Makes room for `n` states in the word, unless somebody else just did, or is doing so and it is early.
pub fn extend(
    entry: &TimeEntry,
    spare: bool,
    n: u64,
    urgency: Urgency,
) -> Result<Extended, Failure> {
    let slot = entry.slot;
    let track = slot.track(spare);
    let enough = || match urgency {
        Urgency::Early => track.word.next() <= track.extend_at.load(Ordering::Relaxed),
        Urgency::Needed { .. } => {
            let now = entry
                .layout()
                .state_at(clock::wall_ms() - slot.skew_ms.load(Ordering::Relaxed));
            track.word.next().max(now).saturating_add(n) <= track.word.hi()
        }
    };
    if !wait_for_siblings(entry, urgency)? {
        return Ok(Extended::Yes);
    }
    let Some(held) = store::enter(&slot.gate, urgency, (&slot.waits, &slot.wait_us), enough)?
    else {
        return Ok(Extended::Yes);
    };
    if enough() {
        return Ok(Extended::Yes);
    }
    if urgency.is_early() && !sys::try_lock_table(session::extension()?.node_table) {
        // Who we are cannot be read now, and the caller has its id: leave it to whoever needs the next bound.
        track.extend_at.store(u64::MAX, Ordering::Relaxed);
        return Ok(Extended::Yes);
    }
    // Who is not may not wait in this gate: a change back to this worker id holds the locks and waits for it.
    if !is_still_ours(entry)? {
        session::forget();
        return Ok(Extended::Yes);
    }
    let sequences = Sequences::of(entry.kind)?;
    let name = || entry.kind.bound_name().to_owned();
    if !store::lock_sequences(&sequences.all(), urgency, &name)? {
        track.extend_at.store(u64::MAX, Ordering::Relaxed);
        return Ok(Extended::Yes);
    }
    // Again behind the locks: whoever changes the worker id or the layout holds them, and noted the bound as the last.
    if !is_still_ours(entry)? {
        session::forget();
        return Ok(Extended::Yes);
    }
    write_bound(entry, spare, n, urgency, &sequences, &held)
}

/// A worker id may have been taken from this database while it waited; its word is then another's.
fn is_still_ours(entry: &TimeEntry) -> Result<bool, Failure> {
    let now = words::look_up(entry.kind)?;
    Ok(std::ptr::eq(now.slot, entry.slot))
}

fn write_bound(
    entry: &TimeEntry,
    spare: bool,
    n: u64,
    urgency: Urgency,
    sequences: &Sequences,
    held: &Held<'_>,
) -> Result<Extended, Failure> {
    let slot = entry.slot;
    let track = slot.track(spare);
    let readings = clock::readings();
    let before = sys::last_record();
    let (plan, now_ms) = {
        let _owner = sys::AsOwner::new(entry.owner);
        let bound_ms = sys::sequence_last(sequences.track(spare)?);
        // The bound is compared before it is moved: one that this word did not write was written for another layout or
        // worker, or by a restore. One that it wrote without learning the outcome is simply written again.
        let found_ms = bound_ms.unwrap_or(0);
        let ours = found_ms == track.bound_ms.load(Ordering::Relaxed)
            || found_ms == track.attempted_ms.load(Ordering::Relaxed);
        let now_ms = if slot.taken_over.load(Ordering::Relaxed) && ours {
            observe(entry, readings, held)
        } else {
            take_over(entry, readings, sequences, held)?
        };
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
        let note = Note::new(store::incarnation(), now_ms, 1, 0);
        track.attempted_ms.store(plan.bound_ms, Ordering::Relaxed);
        sys::sequence_set(sequences.track(spare)?, plan.bound_ms);
        sys::sequence_set(sequences.note, note.pack());
        (plan, now_ms)
    };
    match (
        store::make_refill_durable(before, urgency, &|| entry.kind.bound_name().to_owned()),
        urgency,
    ) {
        (Ok(()), Urgency::Early | Urgency::Needed { .. }) => publish(entry, track, &plan, now_ms),
        // The caller has its id. Whoever needs the next one finds a bound that was not published, and takes it over.
        (Err(_), Urgency::Early) => track.extend_at.store(u64::MAX, Ordering::Relaxed),
        (Err(failure), Urgency::Needed { .. }) => return Err(failure),
    }
    Ok(Extended::Yes)
}

fn publish(entry: &TimeEntry, track: &TimeTrack, plan: &BoundPlan, now_ms: i64) {
    let window_ticks = settings::bound_window_ms() / u64::from(entry.layout().tick_ms().max(1));
    let window_states = window_ticks << entry.layout().sequence_bits();
    track.word.publish(0, plan.hi_state);
    track.extend_at.store(
        plan.hi_state.saturating_sub(window_states / 2),
        Ordering::Relaxed,
    );
    track.bound_ms.store(plan.bound_ms, Ordering::Relaxed);
    entry.slot.refills.fetch_add(1, Ordering::Relaxed);
    entry.slot.last_refill_ms.store(now_ms, Ordering::Relaxed);
}

/// Reads the clock through what was seen of it so far; reports steps.
fn observe(entry: &TimeEntry, readings: Readings, held: &Held<'_>) -> i64 {
    let slot = entry.slot;
    let seen = slot.with_clock(held, |clock| {
        clock.observe(readings, settings::clock_jump_ms_max())
    });
    slot.skew_ms.store(seen.skew_ms, Ordering::Relaxed);
    match seen.event {
        ClockEvent::Steady => {}
        ClockEvent::SteppedBack { ms } => {
            store::log_takeover(&format!("the clock stepped back by {ms} ms"))
        }
        ClockEvent::SteppedForward { ms, followed: true } => {
            store::log_takeover(&format!("the clock stepped forward by {ms} ms"));
        }
        ClockEvent::SteppedForward {
            ms,
            followed: false,
        } => store::log_takeover(&format!(
            "the clock stepped forward by {ms} ms, more than keywright.clock_jump_ms_max; ids do not follow it"
        )),
    }
    seen.now_ms
}

/// First use since the server started, or since something else wrote the bound: nothing below what the store recorded may
/// be issued again.
fn take_over(
    entry: &TimeEntry,
    readings: Readings,
    sequences: &Sequences,
    held: &Held<'_>,
) -> Result<i64, Failure> {
    let slot = entry.slot;
    let note = sys::sequence_last(sequences.note).and_then(Note::unpack);
    let mut floor_ms = readings.wall_ms;
    for spare in [false, true] {
        if spare && !entry.layout().has_spare() {
            continue;
        }
        let sequence = sequences.track(spare)?;
        let track = slot.track(spare);
        // What is left below the bound belongs to a record that is no longer in force.
        track.word.drain();
        let bound_ms = sys::sequence_last(sequence);
        let plan = plan_takeover(&Takeover {
            layout: *entry.layout(),
            recorded: recorded(bound_ms, note),
            incarnation: store::incarnation(),
            now_ms: readings.wall_ms,
            lead_ms_max: settings::lead_ms_max(),
            skew_ms_max: settings::failover_skew_ms_max(),
            window_ms: settings::bound_window_ms(),
            word_next_state: track.word.next().max(above_siblings(entry)),
        });
        let written_ms = match plan.reason {
            TakeoverReason::Fresh | TakeoverReason::SameIncarnation => bound_ms,
            TakeoverReason::ChangedIncarnation => {
                sys::sequence_set(sequence, plan.start_ms);
                store::log_takeover(&format!(
                    "{} was written by another incarnation of this server; leaving out {} ms",
                    entry.kind.bound_name(),
                    plan.gap_ms
                ));
                Some(plan.start_ms)
            }
        };
        track.word.publish(plan.start_state, plan.start_state);
        track
            .bound_ms
            .store(written_ms.unwrap_or(0), Ordering::Relaxed);
        if !spare {
            floor_ms = plan.start_ms;
        }
    }
    slot.with_clock(held, |clock| clock.start_at(readings, floor_ms));
    drain_siblings(entry);
    slot.taken_over.store(true, Ordering::Release);
    Ok(observe(entry, readings, held))
}

/// A note without a bound was written before the first id: if another incarnation wrote it, that one may have issued since.
fn recorded(bound_ms: Option<i64>, note: Option<Note>) -> Option<Recorded> {
    match (bound_ms, note) {
        (Some(bound_ms), note) => Some(Recorded { bound_ms, note }),
        (None, Some(note)) if !note.is_of(&store::incarnation()) => Some(Recorded {
            bound_ms: note.at_ms(),
            note: Some(note),
        }),
        (None, Some(_) | None) => None,
    }
}

fn refused(
    entry: &TimeEntry,
    track: &TimeTrack,
    refusal: BoundRefusal,
    urgency: Urgency,
) -> Result<Extended, Failure> {
    if urgency.is_early() {
        // Asking again at every id would cost more than waiting at the bound.
        track.extend_at.store(u64::MAX, Ordering::Relaxed);
        return Ok(Extended::Yes);
    }
    match refusal {
        BoundRefusal::TooFarAhead {
            lead_ms,
            retry_after_ms,
        } => Ok(Extended::TooFarAhead {
            lead_ms,
            retry_after_ms,
        }),
        BoundRefusal::LayoutRanOut => Err(layout_failure(entry, &refusal)),
    }
}

fn layout_failure(entry: &TimeEntry, refusal: &BoundRefusal) -> Failure {
    Failure::new(
        Cause::LayoutRanOut,
        format!(
            "layout \"{}\" cannot issue ids now: {refusal}",
            entry.layout()
        ),
    )
    .hint("Check the clock, or choose another layout with SELECT keywright.set_layout('twitter').")
}
