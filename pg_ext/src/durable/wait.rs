//! Waiting until something is so, with a deadline.

use std::time::{Duration, Instant};

use keywright_core::cause::Cause;

use crate::failure::Failure;
use crate::server::latch;
use crate::settings;

/// Sleep between two looks at a lock or a standby, from first to longest.
const LOOK_US_MIN: u64 = 500;
const LOOK_US_MAX: u64 = 20_000;

/// Sleeps until `ready`, looking more seldom as time goes by.
pub fn until(deadline: Instant, ready: impl Fn() -> bool) -> Result<(), ()> {
    let mut look_us = LOOK_US_MIN;
    while !ready() {
        if Instant::now() >= deadline {
            return Err(());
        }
        latch::sleep(Duration::from_micros(look_us));
        look_us = (look_us * 2).min(LOOK_US_MAX);
    }
    Ok(())
}

/// The failure of a wait that took longer than allowed.
pub fn timed_out(what: &str) -> Failure {
    Failure::new(
        Cause::RefillTimeout,
        format!("timed out after {} ms waiting for {what}", settings::refill_wait_ms_max()),
    )
    .hint("Retry; if it happens often look at keywright.health and pg_locks, or raise keywright.refill_wait_ms_max.")
}
