//! Room in a time word: whether there is enough, what the clock says that it is measured by, and why there is none.

use std::sync::atomic::Ordering;

use keywright_core::bound::BoundRefusal;
use keywright_core::cause::Cause;
use keywright_core::clock::{ClockEvent, Readings};
use keywright_core::layout::BeforeEpoch;

use crate::cache::time_entry::TimeEntry;
use crate::durable::turn::Urgency;
use crate::failure::Failure;
use crate::server::{clock, log};
use crate::settings;
use crate::shmem::gate::Held;
use crate::shmem::key::TimeKind;
use crate::shmem::time_slot::TimeTrack;

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

/// Whether the word has room for `n` states, or for now enough of it.
pub(super) fn is_enough(entry: &TimeEntry, spare: bool, n: u64, urgency: Urgency) -> bool {
    let slot = entry.slot();
    let track = slot.track(spare);
    match urgency {
        Urgency::Early => track.word.next() <= track.extend_at.load(Ordering::Relaxed),
        Urgency::Needed { .. } => {
            let now = entry
                .layout()
                .state_at(clock::wall_ms() - slot.skew_ms.load(Ordering::Relaxed));
            track.word.next().max(now).saturating_add(n) <= track.word.hi()
        }
    }
}

/// Reads the clock through what was seen of it so far; reports steps.
pub(super) fn observe(entry: &TimeEntry, readings: Readings, held: &Held<'_>) -> i64 {
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
        ClockEvent::SteppedBack { ms } => log::tell(&format!("the clock stepped back by {ms} ms")),
        ClockEvent::SteppedForward { ms, followed: true } => {
            log::tell(&format!("the clock stepped forward by {ms} ms"));
        }
        ClockEvent::SteppedForward {
            ms,
            followed: false,
        } => log::tell(&format!(
            "the clock stepped forward by {ms} ms, more than keywright.clock_jump_ms_max; ids do not follow it"
        )),
    }
    seen.now_ms
}

/// What becomes of a bound that is not planned.
pub(super) fn refused(
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
        BoundRefusal::BeforeEpoch(before) => Err(before_epoch(entry, &before)),
    }
}

/// Whoever begins to issue by the clock asks first: by one that reads a moment before the epoch all begin at the same tick, and the word's own clock, once
/// started by it, does not follow it when it is set right.
pub(super) fn refuse_before_epoch(entry: &TimeEntry, wall_ms: i64) -> Result<(), Failure> {
    let begun = entry.layout().check_begun(wall_ms);
    begun.map_err(|before| before_epoch(entry, &before))
}

/// The error for a clock that reads a moment before the epoch.
pub(super) fn before_epoch(entry: &TimeEntry, before: &BeforeEpoch) -> Failure {
    let (what, hint) = match entry.kind {
        TimeKind::Snowflake => (
            format!("layout \"{}\" cannot issue ids now", entry.layout()),
            "Set the server's clock right, or choose a layout with an epoch in the past through SELECT keywright.set_layout('twitter').",
        ),
        TimeKind::Readable => (
            "readable ids cannot be issued now".to_owned(),
            "Set the server's clock right.",
        ),
    };
    Failure::new(Cause::ClockBehind, format!("{what}: {before}")).hint(hint)
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
