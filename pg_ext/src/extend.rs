//! Extending the time bound of a snowflake or readable word: who we are is read again under the gate and the sequences'
//! locks, then the bound is planned, made durable and published.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::bound::{
    BoundPlan, BoundRefusal, BoundRequest, Recorded, Takeover, TakeoverReason, plan_bound,
    plan_takeover,
};
use keywright_core::cause::Cause;
use keywright_core::clock::{ClockEvent, Readings};
use keywright_core::incarnation::Note;
use keywright_core::layout::Layout;
use keywright_core::register::Floor;

use crate::failure::Failure;
use crate::gate::Held;
use crate::handover::{Sequences, stop_siblings, wait_for_siblings};
use crate::locks::Wanted;
use crate::shm::{Slot, TimeSlot, TimeTrack};
use crate::store::{self, Urgency};
use crate::sys::Outcome;
use crate::words::{self, TimeEntry, TimeKind};
use crate::{clock, identity, promoted, register, reuse, session, settings, shm, sys, zone};

/// Pause between two looks at a transaction that drops what the word belongs to.
const DROP_LOOK_MS: u64 = 10;

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
    let slot = entry.slot();
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
    if !entry.at.is_current() {
        session::forget();
        return Ok(Extended::Yes);
    }
    if is_being_dropped(slot) {
        drop(held);
        return wait_for_drop(track, urgency);
    }
    let node_table = session::extension()?.node_table;
    let node = Wanted::to_read(node_table);
    let Some(node_lock) = node.try_lock() else {
        drop(held);
        return wait_for_locks(entry, track, urgency, &node);
    };
    // While its table is locked the extension is not dropped, so that all sequences are one extension's.
    if session::extension()?.node_table != node_table {
        session::forget();
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
        session::forget();
        return Ok(Extended::Yes);
    }
    if reuse::is_dropped(slot) {
        // The sequence is there, so it was not dropped but lowered; what the word issued counts as forgotten.
        shm::renew(slot, entry.key, &held);
        session::forget();
        return Ok(Extended::Yes);
    }
    write_bound(entry, spare, n, urgency, &sequences, &held)
}

/// A worker id may have been taken from this database while it waited; its word is then another's.
fn is_still_ours(entry: &TimeEntry) -> Result<bool, Failure> {
    Ok(words::key(entry.kind)? == *entry.key)
}

/// Whether another transaction that is still open drops the database or the extension, or lowers its bounds: it noted how far the
/// word came.
///
/// A word that this database had not used before was not there to be closed: so the database is asked for, too.
fn is_being_dropped(slot: &TimeSlot) -> bool {
    let is_open = |transaction: u64| {
        transaction != 0
            && !sys::is_own_transaction(sys::short_number(transaction))
            && sys::outcome(transaction) == Outcome::Open
    };
    is_open(slot.closed_by().load(Ordering::Acquire))
        || shm::dropped_by(sys::database().to_u32()).is_some_and(is_open)
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
            wanted.lock(deadline, &|| entry.kind.bound_name().to_owned())?;
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
        Urgency::Needed { deadline } if Instant::now() >= deadline => Err(store::timed_out(
            "a transaction that runs keywright.lower_bound, or drops the database or the extension",
        )),
        Urgency::Needed { .. } => {
            sys::sleep(Duration::from_millis(DROP_LOOK_MS));
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
    match sys::outcome(transaction) {
        Outcome::Failed | Outcome::Forgotten => {
            slot.forget_bounds();
            slot.closed_by().store(0, Ordering::Release);
            Ok(())
        }
        Outcome::Open => Err(identity::uncommitted(entry.kind.bound_name())),
        Outcome::Committed => Err(Failure::new(
            Cause::Fenced,
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
    let before = sys::last_record();
    let (plan, now_ms) = {
        let _owner = sys::AsOwner::new(entry.owner);
        let bound_ms = sys::sequence_last(sequences.track(spare)?);
        // The bound is compared before it is moved: one that this word did not write was written for another layout or
        // worker, or by a restore. One that it wrote without learning the outcome is simply written again. While another
        // database had its number this one's bound may not have moved.
        let found_ms = bound_ms.unwrap_or(0);
        let ours = found_ms == track.bound_ms.load(Ordering::Relaxed)
            || found_ms == track.attempted_ms.load(Ordering::Relaxed);
        refuse_if_lower(entry, track, found_ms)?;
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

/// Sequences of ours only grow. One that reads lower than what this word made durable was set by somebody else.
fn refuse_if_lower(entry: &TimeEntry, track: &TimeTrack, found_ms: i64) -> Result<(), Failure> {
    let written_ms = track.bound_ms.load(Ordering::Relaxed);
    if found_ms >= written_ms {
        return Ok(());
    }
    let name = entry.kind.bound_name();
    Err(Failure::new(
        Cause::BoundDamaged,
        format!("{name} is at {found_ms}, lower than the {written_ms} that was written last"),
    )
    .detail("Something other than keywright changed its sequence, for instance setval or ALTER SUBSCRIPTION … REFRESH SEQUENCES.")
    .hint(match entry.kind {
        TimeKind::Snowflake => "Run SELECT keywright.set_worker_id(n, above => moment) with this database's worker id and a moment later than all its ids.",
        TimeKind::Readable => "Run SELECT keywright.set_readable_bucket(n, above => moment) with this database's bucket and a moment later than all its readable ids.",
    }))
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
    entry.slot().refills.fetch_add(1, Ordering::Relaxed);
    entry.slot().last_refill_ms.store(now_ms, Ordering::Relaxed);
}

/// Reads the clock through what was seen of it so far; reports steps.
fn observe(entry: &TimeEntry, readings: Readings, held: &Held<'_>) -> i64 {
    let slot = entry.slot();
    let seen = slot.with_clock(held, |clock| {
        clock.observe_since_start(
            readings,
            settings::clock_jump_ms_max(),
            settings::start_jump_ms_max(),
        )
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
    let slot = entry.slot();
    let note = sys::sequence_last(sequences.note).and_then(Note::unpack);
    let past = Past::of(entry, sequences)?;
    let skew_ms_max = promoted::skew_ms_max(note)?;
    let recorded = recorded(past.bound_ms, note);
    let now_ms = believe(entry, readings, recorded);
    let mut floor_ms = now_ms;
    for spare in [false, true] {
        if spare && !entry.layout().has_spare() {
            continue;
        }
        let track = slot.track(spare);
        // What is left below the bound belongs to a record that is no longer in force.
        track.word.drain();
        let plan = plan_takeover(&Takeover {
            layout: *entry.layout(),
            recorded,
            is_vouched: past.is_vouched,
            incarnation: store::incarnation(),
            now_ms,
            lead_ms_max: settings::lead_ms_max(),
            skew_ms_max,
            window_ms: settings::bound_window_ms(),
            word_next_state: track.word.next().max(past.moment_state),
        });
        let start_state = plan.start_state.max(past.ids_state);
        let layout = entry.layout();
        let start_ms = layout.unix_ms_of(start_state >> layout.sequence_bits());
        refuse_if_far(entry, past.ids_layout, start_ms, plan.start_ms)?;
        let sequence = sequences.track(spare)?;
        let written_ms = match plan.reason {
            TakeoverReason::Fresh | TakeoverReason::Vouched | TakeoverReason::SameIncarnation => {
                sys::sequence_last(sequence)
            }
            TakeoverReason::ChangedIncarnation => {
                sys::sequence_set(sequence, start_ms);
                store::log_takeover(&format!(
                    "{} was written by another incarnation of this server; leaving out {} ms",
                    entry.kind.bound_name(),
                    plan.gap_ms
                ));
                Some(start_ms)
            }
        };
        track.word.publish(start_state, start_state);
        track
            .bound_ms
            .store(written_ms.unwrap_or(0), Ordering::Relaxed);
        if !spare {
            floor_ms = start_ms;
        }
    }
    slot.with_clock(held, |clock| {
        if now_ms < readings.wall_ms {
            clock.start_doubting(readings, floor_ms);
        } else {
            clock.start_at(readings, floor_ms);
        }
    });
    slot.taken_over.store(true, Ordering::Release);
    Ok(observe(entry, readings, held))
}

/// What to take for now at a takeover; says so where that is not the wall clock.
fn believe(entry: &TimeEntry, readings: Readings, recorded: Option<Recorded>) -> i64 {
    let (wall_ms, limit_ms) = (readings.wall_ms, settings::start_jump_ms_max());
    let now_ms = recorded.map_or(wall_ms, |recorded| {
        recorded.believe(&store::incarnation(), wall_ms, limit_ms)
    });
    if now_ms < wall_ms {
        store::log_takeover(&format!(
            "the clock reads {} days past {}, more than keywright.start_jump_days_max; ids do not follow it",
            (wall_ms - now_ms) / 86_400_000,
            entry.kind.bound_name()
        ));
    }
    now_ms
}

/// What was issued before by this database, or with this worker id, as far as anybody recorded it.
struct Past {
    /// The higher of the two bounds: the bits of one layout's spare worker may be another's own.
    bound_ms: Option<i64>,
    /// Whether the worker id was given for this very bound, so that without one nothing was issued.
    is_vouched: bool,
    /// The first state not below any moment that was recorded.
    moment_state: u64,
    /// The first state whose ids are greater than all that were issued under other layouts.
    ids_state: u64,
    /// The layout of the greatest of those.
    ids_layout: Option<Layout>,
}

impl Past {
    fn of(entry: &TimeEntry, sequences: &Sequences) -> Result<Self, Failure> {
        let layout = entry.layout();
        let mut bound_ms = sys::sequence_last(sequences.bound);
        if entry.kind == TimeKind::Snowflake {
            bound_ms = bound_ms.max(sys::sequence_last(sequences.track(true)?));
        }
        let held = register::held_here(entry.key.number())?;
        if let (TimeKind::Readable, Some(held)) = (entry.kind, held)
            && held.layout != *layout
        {
            return Err(zone::unregistered(layout));
        }
        let mut floors = stop_siblings(entry);
        floors.extend(held.and_then(|held| held.floor));
        let from_ms = held.and_then(|held| held.from_ms);
        let latest_ms = floors.iter().map(|floor| floor.bound_ms).max().max(from_ms);
        let highest = floors
            .iter()
            .map(|floor| (floor.first_state(layout), floor.layout))
            .max_by_key(|(state, _)| *state);
        Ok(Self {
            bound_ms,
            is_vouched: held.is_some_and(|held| held.sequence == entry.key.sequence()),
            moment_state: latest_ms
                .map_or(0, |ms| Floor::below_ms(*layout, ms).first_state(layout)),
            ids_state: highest.map_or(0, |(state, _)| state),
            ids_layout: highest.map(|(_, layout)| layout),
        })
    }
}

/// Ids greater than those of another layout may lie far ahead: then they are not issued.
fn refuse_if_far(
    entry: &TimeEntry,
    written: Option<Layout>,
    start_ms: i64,
    planned_ms: i64,
) -> Result<(), Failure> {
    let ahead_ms = u64::try_from(start_ms.saturating_sub(planned_ms)).unwrap_or(0);
    if ahead_ms <= settings::lead_ms_max() {
        return Ok(());
    }
    let (message, hint) = match entry.kind {
        TimeKind::Snowflake => (
            format!(
                "ids of layout \"{}\" could repeat ids that this worker id issued under another layout",
                entry.layout()
            ),
            "Set another worker id, or the layout that was in force.".to_owned(),
        ),
        TimeKind::Readable => {
            let zone = written.as_ref().map_or_else(String::new, zone::name);
            (
                format!("readable ids could repeat ids that were written in time zone {zone}"),
                format!(
                    "Set the time zone that was in force: SELECT keywright.set_readable_zone('{zone}'); or a bucket that was never \
                     used: SELECT keywright.set_readable_bucket(n, unused => true)."
                ),
            )
        }
    };
    Err(Failure::new(Cause::LayoutOverlap, message)
        .detail(format!("They would be greater {ahead_ms} ms from now."))
        .hint(hint))
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
