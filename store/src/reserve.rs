//! What a reservation does to a tag's row: pure, the same in the service and in the simulation.
//!
//! The service reads the row under its lock, asks [`plan_reservation`], writes the new number by compare-and-swap on the
//! old one, and commits; only when the commit is known to have succeeded is the range published.

use keywright_core::{
    Note, RefillRequest, Step, StepError, StepPolicy, TagExhausted, Writer, plan_refill, rate_per_s,
};

use keywright_core::residue::Residue;

/// How a table's number stands to the ids it has given away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The number is the first id not given away: Keywright's own `hi`, and Leaf, which hands out `max_id − step` up to,
    /// not including, `max_id`.
    NextId,
    /// The number is the last id given away: tinyid hands out those above `max_id − step` up to and including `max_id`.
    LastId,
    /// It is not known which of both the others believe: the number itself is left out at either end of a range. No
    /// source of `id_generator` is public.
    Unknown,
}

impl Ends {
    /// The first id that may be reserved when the row holds `number`.
    pub fn first_free(self, number: u64) -> u64 {
        match self {
            Self::NextId => number,
            Self::LastId | Self::Unknown => number.saturating_add(1),
        }
    }

    /// What the row must hold once the ids below `end` are reserved.
    pub fn number_for(self, end: u64) -> u64 {
        match self {
            Self::NextId | Self::Unknown => end,
            Self::LastId => end.saturating_sub(1),
        }
    }
}

/// Reservations count as one in the record as long as the first of them is no older, milliseconds: how fast ids go within a moment says nothing of how many
/// a longer time takes.
const RECORDED_MS_MIN: i64 = 1_000;

/// Who reserved last, as recorded beside the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastReservation {
    /// Whether the server that recorded it is the one that we talk to now.
    pub same_server: bool,
    /// When, unix milliseconds by the store's clock; of several that count as one, the first.
    pub at_ms: i64,
    /// How many ids, of several all together.
    pub ids: u64,
    /// The most ids per second that all issuers of the tag together have ever used.
    pub rate_per_s: u64,
}

/// A tag's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagRow {
    /// `hi` or `max_id`.
    pub number: u64,
    /// What the number means.
    pub ends: Ends,
    /// The tag's largest id.
    pub id_max: u64,
    /// Ids of the first full reservation of a process.
    pub step: Step,
    /// How the step follows demand.
    pub policy: StepPolicy,
    /// Which of the ids may be used, by the table's own rule.
    pub residue: Residue,
    /// A refill is due when so many percent of a range are left.
    pub refill_percent: u32,
    /// `None`: never reserved from, or a table of another system, which has no such record.
    pub last: Option<LastReservation>,
}

/// What an issuer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Which ids it can use.
    pub residue: Residue,
    /// Usable ids wanted: what [`StepTrack::want`] said.
    pub want: u64,
    /// Usable ids, one after the other, that somebody waits for; 0 for an early refill.
    pub need: u64,
    /// First id above all that this process was ever given: the store must not go back behind it.
    pub floor: u64,
    /// The store's clock, unix milliseconds.
    pub now_ms: i64,
}

/// What to write, and what may be published once that is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// First id of the range.
    pub start: u64,
    /// First id after it.
    pub end: u64,
    /// The row's new number.
    pub number: u64,
    /// Ids left out before it, because another server wrote the row.
    pub gap: u64,
    /// What to record of it.
    pub recorded: Recorded,
}

/// What stands beside the number: for who writes the row on another server, which may lack later reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// [`LastReservation::at_ms`].
    pub at_ms: i64,
    /// [`LastReservation::ids`].
    pub ids: u64,
    /// [`LastReservation::rate_per_s`].
    pub rate_per_s: u64,
}

/// Plans the next reservation from a row that is locked.
///
/// Id 0 is never reserved: MySQL takes a 0 in an AUTO_INCREMENT column for a request to make an id.
///
/// # Errors
/// [`TagExhausted`] when the waiting request cannot be served, or nothing at all is left.
pub fn plan_reservation(row: &TagRow, ask: &Ask) -> Result<Reservation, TagExhausted> {
    let gap = gap_before(row, ask);
    let plan = plan_refill(&RefillRequest {
        bound_end: Some(row.ends.first_free(row.number)),
        start: 1,
        end_max: row.id_max.saturating_add(1),
        word_hi: ask.floor,
        remaining: 0,
        need: ask.residue.width_of(ask.need),
        want: ask.residue.width_of(ask.want),
        gap,
    })?;
    Ok(Reservation {
        recorded: recorded(row.last.as_ref(), plan.end - plan.start, ask.now_ms),
        start: plan.start,
        end: plan.end,
        number: row.ends.number_for(plan.end),
        gap,
    })
}

/// Ids to leave out, because another server wrote the row.
pub fn gap_before(row: &TagRow, ask: &Ask) -> u64 {
    gap_after_loss(row, ask.now_ms)
}

/// The same at a moment of the store's clock, unix milliseconds.
pub fn gap_after_loss(row: &TagRow, now_ms: i64) -> u64 {
    row.last
        .filter(|last| !last.same_server)
        .map_or(0, |last| gap_after(&last, row, now_ms))
}

/// The next reservation, which may be lost, may be twice as large as those that are recorded, or as the tag's step.
fn gap_after(last: &LastReservation, row: &TagRow, now_ms: i64) -> u64 {
    let step = row.step.max(row.policy.step_min);
    // By what is recorded of none, a program may take as many at once as it uses in the time that one reservation should last.
    let at_once = match last.ids {
        0 => last.rate_per_s.saturating_mul(row.policy.cover_ms / 1_000),
        ids => ids,
    };
    let at_once = at_once.min(last.ids.max(row.policy.step_max.get()));
    let next = at_once.max(step.get()).saturating_mul(2);
    // Who wrote it does not matter to the size of the gap.
    let anyone = Writer {
        system_identifier: 0,
        timeline: 0,
        database_oid: 0,
        resets: 0,
    };
    Note::new(anyone, last.at_ms, next, last.rate_per_s).tag_gap(now_ms)
}

/// What to record of so many ids more.
fn recorded(last: Option<&LastReservation>, ids: u64, now_ms: i64) -> Recorded {
    let Some(last) = last else {
        return Recorded {
            at_ms: now_ms,
            ids,
            rate_per_s: 0,
        };
    };
    let lasted_ms = now_ms.saturating_sub(last.at_ms);
    let counts_as_one = last.same_server && (0..RECORDED_MS_MIN).contains(&lasted_ms);
    let (at_ms, ids) = match counts_as_one {
        true => (last.at_ms, last.ids.saturating_add(ids)),
        false => (now_ms, ids),
    };
    let lasted_ms = u64::try_from(lasted_ms.max(RECORDED_MS_MIN)).ok();
    // How long another server's lasted nobody knows, nor how long one did that is dated ahead.
    let rate = match last.same_server && now_ms >= last.at_ms {
        true => rate_per_s(last.ids, lasted_ms),
        false => 0,
    };
    Recorded {
        at_ms,
        ids,
        rate_per_s: rate.max(last.rate_per_s),
    }
}

/// Whether the store has gone back behind what this process has seen of it (`seen`: the first id that was not reserved): an old backup, or
/// somebody who lowered the number. Others may have used what lies above the number, so nothing is taken. On another server commits may be missing, for which a gap
/// is left out; one that does not reach as far as what was seen shows that it is too small.
pub fn has_gone_back(row: &TagRow, seen: u64, now_ms: i64) -> bool {
    let free = row.ends.first_free(row.number);
    free.saturating_add(gap_after_loss(row, now_ms)) < seen
}

/// A range that an issuer handed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned {
    /// Names it in the store.
    pub key: u64,
    /// First id.
    pub start: u64,
    /// First id after it.
    pub end: u64,
}

/// The returned range to use next: the lowest that lies above all this process was ever given.
///
/// Only above: ranges are published in ascending order. Lower ones are left for a process that starts later.
pub fn choose_returned(ranges: &[Returned], floor: u64) -> Option<Returned> {
    ranges
        .iter()
        .filter(|range| range.start >= floor && range.start < range.end)
        .min_by_key(|range| range.start)
        .copied()
}

/// What the row must hold once a rest is taken that was handed back: its ids lie below the number, and would leave no trace in it. So one
/// id is left out above, by which whoever has seen the row knows that a store was put back in which the rest is there again. `None`: the tag
/// has no id left to leave out, and the rest is used without a trace.
pub fn number_past_rest(row: &TagRow) -> Option<u64> {
    let free = row.ends.first_free(row.number);
    (free <= row.id_max).then(|| row.ends.number_for(free.saturating_add(1)))
}

/// How many ids one process asks for: a tenth of the step first, then the step, then as demand is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepTrack {
    stage: Stage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Nothing,
    First,
    Adapted {
        step: Step,
        at_ms: u64,
    },
}

impl StepTrack {
    /// How many ids to ask for at `now_ms` (any clock that only goes forward).
    pub fn want(&self, row: &TagRow, now_ms: u64) -> u64 {
        match self.stage {
            Stage::Nothing => StepPolicy::first_load(row.step),
            Stage::First | Stage::Adapted { .. } => self.next_step(row, now_ms).get(),
        }
    }

    /// The reservation asked for was published.
    pub fn reserved(&mut self, row: &TagRow, now_ms: u64) {
        self.stage = match self.stage {
            Stage::Nothing => Stage::First,
            Stage::First | Stage::Adapted { .. } => Stage::Adapted {
                step: self.next_step(row, now_ms),
                at_ms: now_ms,
            },
        };
    }

    fn next_step(&self, row: &TagRow, now_ms: u64) -> Step {
        match self.stage {
            Stage::Nothing | Stage::First => row.policy.next(row.step, None),
            Stage::Adapted { step, at_ms } => {
                row.policy.next(step, Some(now_ms.saturating_sub(at_ms)))
            }
        }
    }
}

/// The numbers of a row as they stand in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepNumbers {
    /// Column `step`.
    pub step: i64,
    /// Column `step_min`.
    pub step_min: i64,
    /// Column `step_max`.
    pub step_max: i64,
    /// How long a reservation should last, milliseconds.
    pub cover_ms: u64,
}

impl StepNumbers {
    /// Step and policy.
    ///
    /// # Errors
    /// [`StepError`] for the first number that is no step.
    pub fn check(&self) -> Result<(Step, StepPolicy), StepError> {
        let policy = StepPolicy {
            step_min: Step::new(self.step_min)?,
            step_max: Step::new(self.step_max.max(self.step_min))?,
            cover_ms: self.cover_ms,
        };
        Ok((Step::new(self.step)?, policy))
    }
}

#[cfg(test)]
mod tests;
