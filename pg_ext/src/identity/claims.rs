//! Giving a worker id or a readable bucket to this database and taking it away: what is noted of it in the server's register.

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::register::{Floor, Held, Number, Register, Use};
use pgrx::PgLogLevel;
use pgrx::datum::TimestampWithTimeZone;

use crate::failure::Failure;
use crate::identity::bounds::{self, Sequences};
use crate::identity::numbers;
use crate::identity::overlap::{self, Comes};
use crate::identity::register::{self, Claim};
use crate::server::{clock, process, sequence, timestamp};
use crate::shmem::area;
use crate::shmem::key::TimeKind;
use crate::{guard, settings};

/// Earliest and latest moment that is taken without force: 2010-01-01 UTC, and a year from now.
const ABOVE_MS_MIN: i64 = 1_262_304_000_000;
const ABOVE_AHEAD_MS_MAX: i64 = 366 * 86_400_000;

/// What the caller says of a number's past.
pub struct Vouched {
    /// All its ids were issued before this moment, unix milliseconds.
    pub above_ms: Option<i64>,
    /// It was never used anywhere.
    pub is_unused: bool,
}

impl Vouched {
    /// Out of what a caller gave.
    ///
    /// # Errors
    /// A moment that can hardly be meant, or one of what was never used.
    pub fn new(
        above: Option<TimestampWithTimeZone>,
        is_unused: bool,
        is_forced: bool,
    ) -> Result<Self, Failure> {
        let above_ms = above.map(timestamp::unix_ms).transpose()?;
        if is_forced && above_ms.is_some_and(|above_ms| above_ms < 0) {
            return Err(
                Failure::new(Cause::ArgumentOutOfRange, "above is a moment before 1970")
                    .hint("Check the year; ids of a number that was never used need no moment."),
            );
        }
        if let Some(above_ms) = above_ms
            && !is_forced
            && !(ABOVE_MS_MIN..=clock::wall_ms().saturating_add(ABOVE_AHEAD_MS_MAX))
                .contains(&above_ms)
        {
            return Err(Failure::new(
                Cause::ArgumentOutOfRange,
                "above is a moment before 2010 or more than a year ahead",
            )
            .detail("Ids of this database would carry that time for good.")
            .hint("Check the year; if it is meant, say force => true."));
        }
        if is_unused && above_ms.is_some() {
            return Err(Failure::new(
                Cause::ArgumentOutOfRange,
                "a number that was never used has no moment above which it goes on",
            )
            .hint("Give either above or unused."));
        }
        Ok(Self {
            above_ms,
            is_unused,
        })
    }

    /// Refuses a moment that ids cannot go on above, because the last of `them` is earlier.
    ///
    /// # Errors
    /// It is `end_ms` or later.
    pub fn require_before(&self, end_ms: i64, them: &str) -> Result<(), Failure> {
        if self.above_ms < Some(end_ms) {
            return Ok(());
        }
        Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("above is a moment after the last of {them}"),
        )
        .detail(format!("They end at {}.", timestamp::of_unix_ms(end_ms)?))
        .hint("Check the year: no id could follow, and force => true does not change that."))
    }
}

/// Says that a number which this database has already is not one that was never used, whatever the caller says.
pub fn tell_if_unused(number: Number, vouched: &Vouched) {
    if vouched.is_unused {
        Failure::new(
            Cause::WorkerIdInUse,
            format!(
                "unused => true changes nothing: {} is this database's already",
                numbers::name_of(number)
            ),
        )
        .hint("Ids go on above what was issued, and above the time that was set when it got the number.")
        .report(PgLogLevel::NOTICE);
    }
}

/// How far a number was used that comes to this database, by the register and by shared memory: it may have been another's.
///
/// # Errors
/// Another session holds a gate for too long.
pub fn used(number: Number, claim: &Claim) -> Result<Option<Floor>, Failure> {
    let in_memory = bounds::stop_words(number)?;
    Ok(match claim {
        Claim::Known(Some(floor)) => Some(floor.higher(in_memory)),
        Claim::Known(None) | Claim::Unknown => in_memory,
    })
}

/// What is to be noted of a number that comes to this database after it was used up to `floor`.
///
/// # Errors
/// It was used and the caller says that it was not; its ids of another layout could come again; the sequences are held for too
/// long.
pub fn take(
    number: Number,
    layout: Layout,
    floor: Option<Floor>,
    vouched: &Vouched,
) -> Result<Held, Failure> {
    let life = area::life().ok_or_else(guard::not_preloaded)?;
    if let Some(floor) = floor
        && floor.layout != layout
    {
        match number {
            Number::Worker(_) => {
                overlap::refuse_if_overlapping(&floor.layout, &layout, Some(floor.bound_ms))?;
            }
            Number::Bucket(_) => {
                let name = numbers::name_of(number);
                overlap::refuse_if_written(Comes::Bucket(&name), Some(floor), &layout)?;
            }
        }
    }
    if vouched.is_unused && floor.is_some() {
        return Err(Failure::new(
            Cause::WorkerIdInUse,
            format!("{} was used on this server", numbers::name_of(number)),
        )
        .hint("Leave unused out: it goes on above what was issued."));
    }
    let lead_ms = i64::try_from(settings::lead_ms_max()).unwrap_or(i64::MAX);
    let past_lead_ms = clock::wall_ms().saturating_add(lead_ms).saturating_add(1);
    let from_ms = match vouched {
        Vouched {
            is_unused: true, ..
        } => None,
        // Ids may be as far ahead of the clock of whoever had it before.
        Vouched { above_ms, .. } => (*above_ms).max(Some(past_lead_ms)),
    };
    let kind = TimeKind::of(number);
    let bound = Sequences::of(kind)?.bound;
    let floor = match (number, from_ms) {
        // What was said, or is taken for granted, of ids elsewhere is about times as this zone writes them: what is written in
        // another zone later must be above that, too.
        (Number::Bucket(_), Some(from_ms)) => Some(Floor::below_ms(layout, from_ms).higher(floor)),
        (Number::Worker(_) | Number::Bucket(_), _) => floor,
    };
    let from_ms = match number {
        Number::Worker(_) => from_ms,
        // As ids go on above the bound anyway: a bound that is higher later was moved by ids of this number.
        Number::Bucket(_) => from_ms.max(sequence::last(bound)),
    };
    bounds::leave_note(kind)?;
    Ok(Held {
        life,
        sequence: bound.to_u32(),
        from_ms,
        floor,
        layout,
    })
}

/// The extension was made anew in a database that kept its numbers when it was dropped: its bounds are theirs from now on. So a number whose bound is
/// noted as dropped is that of a database without the extension.
///
/// # Errors
/// Another transaction keeps the register for too long, or it cannot be read.
pub fn go_on() -> Result<(), Failure> {
    let ours = process::database().to_u32();
    let has_no_bound = |(_, held): &(Number, Held)| held.sequence == 0;
    if !register::read()?
        .held_by(ours)
        .any(|kept| has_no_bound(&kept))
    {
        return Ok(());
    }
    register::lock()?;
    let mut register = register::read()?;
    let kept: Vec<(Number, Held)> = register.held_by(ours).filter(has_no_bound).collect();
    for (number, held) in kept {
        let bound = Sequences::of(TimeKind::of(number))?.bound;
        let held = Held {
            sequence: bound.to_u32(),
            // What was issued before is noted, and what comes is in this life's memory.
            life: area::life().unwrap_or(held.life),
            ..held
        };
        register.set(number, ours, Use::Held(held));
    }
    register::write(&register);
    Ok(())
}

/// How far a number was used that this database has, when its bound has come to `bound_ms` and nobody moves it any more.
///
/// A bucket's ids are dated from `from_ms` on, so they moved the bound beyond it: if it is lower there are none.
pub fn used_until(number: Number, held: &Held, bound_ms: Option<i64>) -> Option<Floor> {
    let moved_ms = match number {
        Number::Worker(_) => bound_ms,
        Number::Bucket(_) => bound_ms.filter(|bound_ms| Some(*bound_ms) > held.from_ms),
    };
    match moved_ms {
        Some(bound_ms) => Some(Floor::below_ms(held.layout, bound_ms).higher(held.floor)),
        None => held.floor,
    }
}

/// Notes how far this database used the numbers of one kind that it had, but for the one it keeps. Nobody extends a bound until
/// this transaction ends, so the one noted is the last. Nor does anybody go on below it once it has committed: the number may be another server's next.
///
/// # Errors
/// Another transaction extended a bound and is still open.
pub fn give_up_others(
    register: &mut Register,
    kind: TimeKind,
    kept: Option<Number>,
) -> Result<(), Failure> {
    let ours = process::database().to_u32();
    let others: Vec<(Number, Held)> = register
        .held_by(ours)
        .filter(|(held, _)| TimeKind::of(*held) == kind && Some(*held) != kept)
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    let bound_ms = bounds::hold(kind)?;
    let bound = Sequences::of(kind)?.bound.to_u32();
    for (other, held) in others {
        bounds::leave_words(other);
        let floor = used_until(other, &held, bound_ms);
        let usage = match held.may_be_bound_by(bound) {
            true => Use::Left { floor },
            false => Use::Lost,
        };
        register.set(other, ours, usage);
    }
    Ok(())
}
