//! Taking over a snowflake or readable bound: where a word begins at its first use, above all that was recorded before.

use std::sync::atomic::Ordering;

use keywright_core::bound::{Recorded, Takeover, TakeoverReason, plan_takeover};
use keywright_core::cause::Cause;
use keywright_core::clock::Readings;
use keywright_core::layout::Layout;
use keywright_core::register::Floor;
use keywright_core::writer::Note;

use crate::cache::time_entry::TimeEntry;
use crate::failure::Failure;
use crate::identity::bounds::Sequences;
use crate::identity::{overlap, promotion, register, writer};
use crate::refill::room::{before_epoch, refuse_before_epoch};
use crate::refill::siblings;
use crate::server::{log, sequence};
use crate::settings;
use crate::shmem::gate::Held;
use crate::shmem::key::TimeKind;

/// First use since the server started, or since something else wrote the bound: nothing below what was recorded may
/// be issued again.
///
/// # Errors
/// keywright's tables cannot be read, or ids would have to begin too far ahead of the clock, or the clock reads a moment before the epoch.
pub fn take_over(
    entry: &TimeEntry,
    readings: Readings,
    sequences: &Sequences,
    held: &Held<'_>,
) -> Result<(), Failure> {
    refuse_before_epoch(entry, readings.wall_ms)?;
    let slot = entry.slot();
    let note = sequence::last(sequences.note).and_then(Note::unpack);
    let past = Past::of(entry, sequences)?;
    // The note is older than the first bound: lost, it has lost that too.
    let may_be_lost = writer::current().may_have_lost(note.as_ref());
    // Whoever gives a number leaves a note beside its bound. Without one a bound may have been written that did not arrive: a CREATE EXTENSION writes none.
    let is_vouched = past.is_vouched && note.is_some() && !may_be_lost;
    let skew_ms_max = promotion::skew_ms_max(note)?;
    let recorded = recorded(past.bound_ms, note);
    // A bound that is believed instead of the clock may be older than the epoch. It is this writer's, so nothing begins below what was issued.
    let now_ms = believe(entry, readings, recorded).max(entry.layout().epoch_ms());
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
            is_vouched,
            writer: writer::current(),
            now_ms,
            lead_ms_max: settings::lead_ms_max(),
            skew_ms_max,
            window_ms: settings::bound_window_ms(),
            word_next_state: track.word.next().max(past.moment_state),
        })
        .map_err(|before| before_epoch(entry, &before))?;
        let start_state = plan.start_state.max(past.ids_state);
        let layout = entry.layout();
        let start_ms = layout.unix_ms_of(start_state >> layout.sequence_bits());
        refuse_if_far(entry, past.ids_layout, start_ms, plan.start_ms)?;
        let sequence = sequences.track(spare)?;
        let written_ms = match plan.reason {
            TakeoverReason::Fresh | TakeoverReason::Vouched | TakeoverReason::SameWriter => {
                sequence::last(sequence)
            }
            TakeoverReason::ChangedWriter => {
                sequence::set(sequence, start_ms);
                tell_left_out(entry, plan.gap_ms, may_be_lost);
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
    Ok(())
}

fn tell_left_out(entry: &TimeEntry, gap_ms: u64, may_be_lost: bool) {
    let why = match may_be_lost {
        true => "may have been lost to pg_resetwal",
        false => "was written by another server or timeline",
    };
    log::tell(&format!(
        "{} {why}; leaving out {gap_ms} ms",
        entry.kind.bound_name()
    ));
}

/// What to take for now at a takeover; says so where that is not the wall clock.
fn believe(entry: &TimeEntry, readings: Readings, recorded: Option<Recorded>) -> i64 {
    let (wall_ms, limit_ms) = (readings.wall_ms, settings::start_jump_ms_max());
    let now_ms = recorded.map_or(wall_ms, |recorded| {
        recorded.believe(&writer::current(), wall_ms, limit_ms)
    });
    if now_ms < wall_ms {
        log::tell(&format!(
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
        let mut bound_ms = sequence::last(sequences.bound);
        if entry.kind == TimeKind::Snowflake {
            bound_ms = bound_ms.max(sequence::last(sequences.track(true)?));
        }
        let held = match entry.key.number() {
            Some(number) => register::held_here(number)?,
            None => None,
        };
        if held.is_some_and(|held| held.layout != *layout) {
            return Err(overlap::unregistered(entry.kind, layout));
        }
        let mut floors = siblings::stop(entry);
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
            let zone = written
                .as_ref()
                .map_or_else(String::new, overlap::zone_name);
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

/// A note without a bound was written before the first id: if another writer wrote it, that one may have issued since.
fn recorded(bound_ms: Option<i64>, note: Option<Note>) -> Option<Recorded> {
    match (bound_ms, note) {
        (Some(bound_ms), note) => Some(Recorded { bound_ms, note }),
        (None, Some(note)) if !note.is_of(&writer::current()) => Some(Recorded {
            bound_ms: note.at_ms(),
            note: Some(note),
        }),
        (None, Some(_) | None) => None,
    }
}
