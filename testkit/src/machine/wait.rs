//! Waiting for a condition, never for a length of time.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;

use crate::Result;

/// The longest a server may take for anything it is asked for; generous, for a busy machine with two cores.
pub const WAIT_MAX: Duration = Duration::from_secs(90);

const POLL_EVERY: Duration = Duration::from_millis(10);

/// Calls `ready` until it says true.
///
/// # Errors
/// What `ready` returned, or that `what` did not come about within `wait_max`.
pub fn wait_until(
    what: &str,
    wait_max: Duration,
    mut ready: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let started = Instant::now();
    while !ready()? {
        if started.elapsed() > wait_max {
            bail!("{what}: not within {} s", wait_max.as_secs());
        }
        thread::sleep(POLL_EVERY);
    }
    Ok(())
}
