//! The machine's clocks.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use keywright_core::Readings;
use nix::time::{ClockId, clock_gettime};

/// Where readings come from; tests bring clocks of their own.
pub trait Clock: Send + Sync + fmt::Debug {
    /// `CLOCK_REALTIME`, unix milliseconds. On the path of every snowflake key.
    fn wall_ms(&self) -> i64;

    /// Both clocks, read together.
    fn readings(&self) -> Readings;

    /// `CLOCK_BOOTTIME`, milliseconds; nothing where there is no such clock. On the path of every id of an ordered tag.
    fn boot_ms(&self) -> Option<u64> {
        Some(self.readings().boot_ms)
    }
}

/// The machine's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        // Before 1970 there is no layout, and no id.
        since.map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }

    fn readings(&self) -> Readings {
        Readings {
            wall_ms: self.wall_ms(),
            // Linux has this clock since 2.6.39; without it every step forward looks followed, and ids stay unique.
            boot_ms: self.boot_ms().unwrap_or(0),
        }
    }

    fn boot_ms(&self) -> Option<u64> {
        let time = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
        let ms = i128::from(time.tv_sec()) * 1_000 + i128::from(time.tv_nsec()) / 1_000_000;
        u64::try_from(ms).ok()
    }
}
