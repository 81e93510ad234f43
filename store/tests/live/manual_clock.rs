//! A clock that goes only when it is told to, and the worker id of a program that goes by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use keywright_core::Readings;
use keywright_store::{Clock, Keys, RawSnowflakeSettings, RawStoreSettings, StoreSettings};
use keywright_testkit::Result;

/// A clock that goes only when it is told to.
#[derive(Debug)]
pub struct ManualClock {
    wall_ms: AtomicI64,
    boot_ms: AtomicU64,
}

impl ManualClock {
    pub fn at(wall_ms: i64) -> Arc<ManualClock> {
        Arc::new(ManualClock {
            wall_ms: AtomicI64::new(wall_ms),
            boot_ms: AtomicU64::new(1_000_000),
        })
    }

    pub fn pass(&self, ms: u32) {
        self.wall_ms.fetch_add(i64::from(ms), Ordering::Relaxed);
        self.boot_ms.fetch_add(u64::from(ms), Ordering::Relaxed);
    }

    pub fn step(&self, ms: i64) {
        self.wall_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> i64 {
        self.wall_ms.load(Ordering::Relaxed)
    }

    fn readings(&self) -> Readings {
        Readings {
            wall_ms: self.wall_ms(),
            boot_ms: self.boot_ms.load(Ordering::Relaxed),
        }
    }
}

/// 2026-11-21.
pub const NOW_MS: i64 = 1_795_219_200_000;

pub fn on_worker(worker_id: i64) -> RawSnowflakeSettings {
    RawSnowflakeSettings {
        worker_id: Some(worker_id),
        lease_ms: 1_000,
        ..RawSnowflakeSettings::default()
    }
}

pub fn open_at(
    raw: &RawStoreSettings,
    snowflake: &RawSnowflakeSettings,
    clock: &Arc<ManualClock>,
) -> Result<Keys> {
    let settings = StoreSettings::new(raw, snowflake)?;
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    Ok(Keys::open_with_clock(settings, clock)?)
}
