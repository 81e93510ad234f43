//! A clock that does not go back and does not believe every jump forward.
//!
//! Bounds and leads are measured against this clock, not the wall: a wall clock stepped back must not make the ids
//! already issued look like an excessive lead, and one stepped forward by a year must not push the durable bound a
//! year ahead, where it would stay for good. What really passed is told by `CLOCK_BOOTTIME`, which nobody sets.

/// Both clocks, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readings {
    /// `CLOCK_REALTIME`, unix milliseconds.
    pub wall_ms: i64,
    /// `CLOCK_BOOTTIME`, milliseconds since the machine started; counts suspended time.
    pub boot_ms: u64,
}

/// The virtual clock of one word. Plain data, owned by whoever holds the word's refill flag; all zero is unset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct VirtualClock {
    /// Virtual time minus boot time. Only grows.
    offset_ms: i64,
    /// Wall time minus boot time at the last observation.
    wall_offset_ms: i64,
    /// Latest virtual time given out.
    now_ms: i64,
    /// 0 before the first observation.
    is_set: u64,
    /// Whether the wall was not believed when the clock was started, nor since.
    is_doubting: u64,
}

/// What an observation found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// Virtual time, unix milliseconds: never earlier than any given out before.
    pub now_ms: i64,
    /// What the wall clock reads too much, milliseconds; 0 unless a step forward is not followed. To be subtracted
    /// from every later reading of the wall, until the next observation.
    pub skew_ms: i64,
    /// What the wall clock did since the last observation.
    pub event: ClockEvent,
}

/// What the wall clock did, compared with boot time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockEvent {
    /// It went with boot time.
    Steady,
    /// It was set back.
    SteppedBack {
        /// By so many milliseconds.
        ms: u64,
    },
    /// It was set forward.
    SteppedForward {
        /// By so many milliseconds.
        ms: u64,
        /// Whether virtual time went along.
        followed: bool,
    },
}

impl VirtualClock {
    /// Differences up to this are the time between two readings of two clocks, not a step.
    pub const JITTER_MS: u64 = 100;

    /// Starts the clock after a takeover at the later of the wall clock and `floor_ms` (the first time that may still
    /// be issued), so that ids start with no lead however far back the wall was set.
    pub fn start_at(&mut self, readings: Readings, floor_ms: i64) {
        self.start_past_gap(readings, floor_ms, 0);
    }

    /// The same, but where it begins ahead of the wall it stands still until the wall is there, for so long at most: otherwise what is granted by it lay that
    /// much further ahead for good, beyond what is left out by whoever comes next.
    pub fn start_past_gap(&mut self, readings: Readings, floor_ms: i64, stands_ms_max: u64) {
        let wall_offset_ms = wall_offset(readings);
        let now_ms = readings.wall_ms.max(floor_ms).max(self.now_ms);
        let goes_on_ms = now_ms.saturating_sub_unsigned(stands_ms_max);
        *self = Self {
            offset_ms: wall_offset_ms.max(goes_on_ms.saturating_sub(boot(readings))),
            wall_offset_ms,
            now_ms,
            is_set: 1,
            is_doubting: 0,
        };
    }

    /// Whether the wall clock was set back since it was read last.
    pub fn is_set_back(&self, readings: Readings) -> bool {
        let moved_ms = wall_offset(readings).saturating_sub(self.wall_offset_ms);
        self.is_set != 0 && moved_ms < 0 && moved_ms.unsigned_abs() > Self::JITTER_MS
    }

    /// For how long it stands still, milliseconds.
    pub fn stands_for_ms(&self, readings: Readings) -> u64 {
        let goes_on_at_ms = boot(readings).saturating_add(self.offset_ms);
        u64::try_from(self.now_ms.saturating_sub(goes_on_at_ms)).unwrap_or(0)
    }

    /// Starts the clock after a takeover at `start_ms` though the wall reads far later: the skew begins with the difference.
    pub fn start_doubting(&mut self, readings: Readings, start_ms: i64) {
        let now_ms = start_ms.max(self.now_ms);
        *self = Self {
            offset_ms: now_ms.saturating_sub(boot(readings)),
            wall_offset_ms: wall_offset(readings),
            now_ms,
            is_set: 1,
            is_doubting: 1,
        };
    }

    /// As [`Self::observe`], but until a clock that was started in doubt has followed the wall once, it may be as far ahead as
    /// at a start: it was mended, or the limit was raised.
    pub fn observe_since_start(
        &mut self,
        readings: Readings,
        jump_ms_max: u64,
        start_jump_ms_max: u64,
    ) -> Observation {
        let limit_ms = match self.is_doubting {
            0 => jump_ms_max,
            _ => jump_ms_max.max(start_jump_ms_max),
        };
        let seen = self.observe(readings, limit_ms);
        if seen.skew_ms == 0 {
            self.is_doubting = 0;
        }
        seen
    }

    /// Reads both clocks.
    ///
    /// Virtual time follows the wall clock forward unless that is more than `jump_ms_max` ahead of what boot time
    /// says: then it goes on with boot time alone, and the wall's excess is the skew. It never follows back.
    pub fn observe(&mut self, readings: Readings, jump_ms_max: u64) -> Observation {
        if self.is_set == 0 {
            self.start_at(readings, i64::MIN);
        }
        let wall_offset_ms = wall_offset(readings);
        let moved_ms = wall_offset_ms.saturating_sub(self.wall_offset_ms);
        let ahead_ms = wall_offset_ms.saturating_sub(self.offset_ms);
        let followed = ahead_ms <= i64::try_from(jump_ms_max).unwrap_or(i64::MAX);
        if followed {
            self.offset_ms = self.offset_ms.max(wall_offset_ms);
        }
        self.wall_offset_ms = wall_offset_ms;
        self.now_ms = self
            .now_ms
            .max(boot(readings).saturating_add(self.offset_ms));
        Observation {
            now_ms: self.now_ms,
            skew_ms: if followed { 0 } else { ahead_ms },
            event: event(moved_ms, followed),
        }
    }
}

fn event(moved_ms: i64, followed: bool) -> ClockEvent {
    let ms = moved_ms.unsigned_abs();
    if ms <= VirtualClock::JITTER_MS {
        ClockEvent::Steady
    } else if moved_ms < 0 {
        ClockEvent::SteppedBack { ms }
    } else {
        ClockEvent::SteppedForward { ms, followed }
    }
}

fn boot(readings: Readings) -> i64 {
    i64::try_from(readings.boot_ms).unwrap_or(i64::MAX)
}

fn wall_offset(readings: Readings) -> i64 {
    readings.wall_ms.saturating_sub(boot(readings))
}
