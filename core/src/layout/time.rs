//! Where a layout's ticks lie on the calendar.

use thiserror::Error;

use super::Layout;
use crate::civil::{DAY_MS, Moment};

/// A moment the layout cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LayoutTimeError {
    /// Before the layout's epoch.
    #[error("time {unix_ms} is before the layout's epoch {epoch_ms} (unix milliseconds)")]
    BeforeEpoch {
        /// The moment, unix milliseconds.
        unix_ms: i64,
        /// The epoch, unix milliseconds.
        epoch_ms: i64,
    },
    /// After its last tick.
    #[error(
        "time {unix_ms} is past the layout's end: its time bits ran out at {runs_out_at_ms} (unix milliseconds)"
    )]
    RanOut {
        /// The moment, unix milliseconds.
        unix_ms: i64,
        /// The first moment the layout cannot express, unix milliseconds.
        runs_out_at_ms: i64,
    },
}

/// The clock reads a moment before the layout's epoch. No id is of such a moment. What is taken for now would count as the epoch, however often ids are
/// begun anew by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the clock reads {}, and ids begin at {epoch}", .now.date())]
pub struct BeforeEpoch {
    /// What the clock reads. The message has its day alone, so that its repetitions are known for what they are.
    pub now: Moment,
    /// The first moment that ids can be of.
    pub epoch: Moment,
}

/// Why a moment has no smallest id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FloorError {
    /// Ids of the layout are not ordered by time.
    #[error("ids of this layout are not ordered by time: time is not its highest field")]
    TimeNotHighest,
    /// The layout cannot express the moment.
    #[error(transparent)]
    Time(#[from] LayoutTimeError),
}

/// How long a layout will last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLeft {
    /// More than a year.
    Ample,
    /// Worth a warning.
    WithinAYear {
        /// The first moment the layout cannot express, unix milliseconds.
        runs_out_at_ms: i64,
    },
}

impl Layout {
    /// Length of a tick, milliseconds.
    pub const fn tick_ms(&self) -> u32 {
        self.tick_ms
    }

    /// The layout's zero time, unix milliseconds.
    pub const fn epoch_ms(&self) -> i64 {
        self.epoch_ms
    }

    /// The last tick.
    pub const fn ticks_max(&self) -> u64 {
        self.time.mask()
    }

    /// The tick of a moment.
    ///
    /// # Errors
    /// [`LayoutTimeError`] when it is before the epoch or after the last tick.
    pub fn ticks_at(&self, unix_ms: i64) -> Result<u64, LayoutTimeError> {
        let ticks = u64::try_from(i128::from(unix_ms) - i128::from(self.epoch_ms))
            .map(|since_epoch_ms| since_epoch_ms / self.tick_length_ms())
            .map_err(|_| LayoutTimeError::BeforeEpoch {
                unix_ms,
                epoch_ms: self.epoch_ms,
            })?;
        if ticks > self.ticks_max() {
            let runs_out_at_ms = self.runs_out_at_ms();
            return Err(LayoutTimeError::RanOut {
                unix_ms,
                runs_out_at_ms,
            });
        }
        Ok(ticks)
    }

    /// Whether the epoch lies in the past: whoever begins to issue by the clock asks first, and otherwise begins nothing.
    ///
    /// # Errors
    /// [`BeforeEpoch`] when it does not.
    pub fn check_begun(&self, now_ms: i64) -> Result<(), BeforeEpoch> {
        if now_ms < self.epoch_ms {
            return Err(BeforeEpoch {
                now: Moment(now_ms),
                epoch: Moment(self.epoch_ms),
            });
        }
        Ok(())
    }

    /// The state with which a moment begins; the layout's first or end state outside its time. For the hot path,
    /// where a time that has run out is met by the bound, and one before the epoch by [`Self::check_begun`] before the word had any.
    #[inline]
    pub fn state_at(&self, unix_ms: i64) -> u64 {
        let since_epoch_ms = u64::try_from(unix_ms.saturating_sub(self.epoch_ms)).unwrap_or(0);
        let ticks = match self.tick_length_ms() {
            // A division would cost as much as all the rest of the hot path.
            1 => since_epoch_ms,
            tick_ms => since_epoch_ms / tick_ms,
        };
        ticks.min(self.ticks_max() + 1) << self.sequence.bits
    }

    /// The first tick that begins at or after a moment; the tick past the last when there is none.
    pub fn ticks_from(&self, unix_ms: i64) -> u64 {
        let since_epoch_ms = u64::try_from(unix_ms.saturating_sub(self.epoch_ms)).unwrap_or(0);
        since_epoch_ms
            .div_ceil(self.tick_length_ms())
            .min(self.ticks_max() + 1)
    }

    /// When a tick begins, unix milliseconds. Stays at the largest number when that is beyond it.
    pub fn unix_ms_of(&self, ticks: u64) -> i64 {
        let unix_ms = i128::from(self.epoch_ms) + i128::from(ticks) * i128::from(self.tick_ms);
        i64::try_from(unix_ms).unwrap_or(i64::MAX)
    }

    /// The smallest id of a moment, of any worker: `WHERE id >= floor` finds all ids from then on.
    ///
    /// # Errors
    /// [`FloorError`] when the ids are not ordered by time or the moment is outside the layout.
    pub fn floor(&self, unix_ms: i64) -> Result<i64, FloorError> {
        if self.used_bits() >> self.time.shift != self.time.mask() {
            return Err(FloorError::TimeNotHighest);
        }
        Ok(self.smallest_id_from(self.ticks_at(unix_ms)?))
    }

    /// The smallest id, of any worker, in `ticks` or later. `i64::MAX` when the layout has no such tick.
    pub fn smallest_id_from(&self, ticks: u64) -> i64 {
        if ticks > self.ticks_max() {
            return i64::MAX;
        }
        to_id(self.time.put(ticks))
    }

    /// The largest id, of any worker, before `ticks`; −1 when there is none.
    pub fn largest_id_below(&self, ticks: u64) -> i64 {
        let Some(last) = ticks.checked_sub(1) else {
            return -1;
        };
        let time = self.time.put(last.min(self.ticks_max()));
        to_id(time | self.used_bits() & !self.time.put(u64::MAX))
    }

    /// The first tick whose ids, of any worker, are all greater than `id`; the tick past the last when there is none.
    pub fn tick_above(&self, id: i64) -> u64 {
        let Ok(id) = u64::try_from(id) else {
            return 0;
        };
        ((id >> self.time.shift) + 1).min(self.ticks_max() + 1)
    }

    /// The first moment the layout cannot express, unix milliseconds.
    pub fn runs_out_at_ms(&self) -> i64 {
        self.unix_ms_of(self.ticks_max() + 1)
    }

    /// Whether the layout can be used at `now_ms`, and how much longer.
    ///
    /// # Errors
    /// [`LayoutTimeError`] when now is outside its time.
    pub fn check_time_left(&self, now_ms: i64) -> Result<TimeLeft, LayoutTimeError> {
        self.ticks_at(now_ms)?;
        let runs_out_at_ms = self.runs_out_at_ms();
        if runs_out_at_ms.saturating_sub(now_ms) > 365 * DAY_MS {
            Ok(TimeLeft::Ample)
        } else {
            Ok(TimeLeft::WithinAYear { runs_out_at_ms })
        }
    }

    /// A layout of all zero bytes (an unused slot) must not divide by zero.
    fn tick_length_ms(&self) -> u64 {
        u64::from(self.tick_ms.max(1))
    }
}

/// The fields together have at most 63 bits.
fn to_id(bits: u64) -> i64 {
    i64::try_from(bits).unwrap_or(i64::MAX)
}
