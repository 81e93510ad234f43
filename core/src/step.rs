//! How many ids to reserve at a time.
//!
//! Doubling and halving by how long the last reservation lasted is Leaf's dynamic step (and the Dewu segment
//! service's); loading only a tenth of the step first is Dewu's too: a tag that is never used again costs little.

use thiserror::Error;

/// Ids asked for per reservation: 1 to 1,000,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step(u64);

/// Why a number is not a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a step must be between 1 and {}, not {step}", Step::MAX)]
pub struct StepError {
    /// The refused number.
    pub step: i64,
}

impl Step {
    /// Largest step: a hundred crashes a day still leave a tag millions of years.
    pub const MAX: i64 = 1_000_000_000;

    /// The smallest step.
    pub const LEAST: Self = Self(1);

    /// A step out of what a caller wrote.
    ///
    /// # Errors
    /// [`StepError`] when it is below 1 or above [`Step::MAX`].
    pub fn new(step: i64) -> Result<Self, StepError> {
        match u64::try_from(step) {
            Ok(ids) if ids >= 1 && step <= Self::MAX => Ok(Self(ids)),
            Ok(_) | Err(_) => Err(StepError { step }),
        }
    }

    /// Ids per reservation.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// How the step follows demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPolicy {
    /// The step never goes below.
    pub step_min: Step,
    /// The step never goes above.
    pub step_max: Step,
    /// How long one reservation should last, milliseconds: a store that is away for less is not noticed.
    pub cover_ms: u64,
}

impl StepPolicy {
    /// The step after `previous`, whose reservation lasted `lasted_ms` (`None`: not known, the first).
    ///
    /// Doubles when that was less than half of `cover_ms`, halves when more than twice, and stays within bounds.
    pub fn next(&self, previous: Step, lasted_ms: Option<u64>) -> Step {
        let wanted = match lasted_ms {
            None => previous.get(),
            Some(ms) if ms < self.cover_ms / 2 => previous.get() * 2,
            Some(ms) if ms > self.cover_ms.saturating_mul(2) => previous.get() / 2,
            Some(_) => previous.get(),
        };
        Step(wanted.min(self.step_max.get()).max(self.step_min.get()))
    }

    /// Size of a tag's first reservation: a tenth of the step, at least 1.
    pub fn first_load(step: Step) -> u64 {
        (step.get() / 10).max(1)
    }
}

/// Ids per second, rounded up, when `ids` were used up in `lasted_ms`.
///
/// Not known (`None`) counts as one second: an estimate that is too high only widens a safety gap.
pub fn rate_per_s(ids: u64, lasted_ms: Option<u64>) -> u64 {
    let lasted_ms = lasted_ms.unwrap_or(1000).max(1);
    let rate = (u128::from(ids) * 1000).div_ceil(u128::from(lasted_ms));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Counts how fast ids are used, over a second at least: what is used within a moment says nothing of how many a longer time
/// takes. All zero is the valid beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateWindow {
    /// When it began, boot time in milliseconds; 0 for not yet.
    pub since_boot_ms: u64,
    /// Ids used since.
    pub ids: u64,
}

impl RateWindow {
    const MS_MIN: u64 = 1000;

    /// Counts `ids` that were used up until `boot_ms`: the window after that, and the ids per second of this one so far,
    /// rounded up. Windows follow each other, so a second across two of them has at most twice the higher rate.
    pub fn add(self, ids: u64, boot_ms: u64) -> (Self, u64) {
        let ids = self.ids.saturating_add(ids);
        let lasted_ms = match self.since_boot_ms {
            0 => Self::MS_MIN,
            since_ms => boot_ms.saturating_sub(since_ms),
        };
        let next = if lasted_ms >= Self::MS_MIN {
            Self {
                since_boot_ms: boot_ms,
                ids: 0,
            }
        } else {
            Self { ids, ..self }
        };
        (next, rate_per_s(ids, Some(lasted_ms.max(Self::MS_MIN))))
    }
}
