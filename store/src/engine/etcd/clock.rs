//! The store's clock, which etcd has not: the latest of all programs' clocks.
//!
//! Programs look how long ago the others were heard of, and a program whose clock is behind must not look silent. So each transaction notes
//! the moment of its writer, and nobody's moment is before one that he has read.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What a program knows of it.
#[derive(Debug, Default)]
pub(super) struct StoreClock(Mutex<Option<Known>>);

/// A moment that was read, unix milliseconds, and when that was.
#[derive(Debug, Clone, Copy)]
struct Known {
    moment_ms: i64,
    at: Instant,
}

impl StoreClock {
    /// A moment of the store was read.
    pub(super) fn read(&self, moment_ms: i64, at: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none_or(|known| known.moment_at(at) < moment_ms) {
            *known = Some(Known { moment_ms, at });
        }
    }

    /// What it is now, unix milliseconds, by this program's clocks.
    pub(super) fn now_ms(&self, own_ms: i64, at: Instant) -> i64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.map_or(own_ms, |known| known.moment_at(at).max(own_ms))
    }
}

impl Known {
    fn moment_at(self, at: Instant) -> i64 {
        let since_ms = at.saturating_duration_since(self.at).as_millis();
        let since_ms = i64::try_from(since_ms).unwrap_or(i64::MAX);
        self.moment_ms.saturating_add(since_ms)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_is_behind_goes_by_who_is_ahead() {
        let (clock, began) = (StoreClock::default(), Instant::now());
        let later = |ms| began + Duration::from_millis(ms);
        assert_eq!(clock.now_ms(1_000, began), 1_000);
        clock.read(61_000, began);
        assert_eq!(clock.now_ms(1_000, began), 61_000);
        // It goes on, by the clock that nobody sets.
        assert_eq!(clock.now_ms(1_500, later(500)), 61_500);
        // An older one changes nothing.
        clock.read(61_200, later(500));
        assert_eq!(clock.now_ms(1_500, later(500)), 61_500);
        // Who is ahead himself goes by his own.
        assert_eq!(clock.now_ms(90_000, later(500)), 90_000);
        clock.read(70_000, later(600));
        assert_eq!(clock.now_ms(1_700, later(700)), 70_100);
    }
}
