//! Flushing what was set, and waiting for the standbys that the configuration demands. Only then may the caller publish.

use keywright_core::cause::Cause;

use crate::durable::turn::Urgency;
use crate::durable::wait;
use crate::failure::Failure;
use crate::server::wal::{self, LogPosition};

/// Waits until all that this backend wrote is on disk here and on the standbys that the configuration demands. An error
/// raised meanwhile means the outcome is unknown; the caller publishes nothing.
pub fn make_durable(urgency: Urgency, name: &dyn Fn() -> String) -> Result<(), Failure> {
    let position = wal::flush();
    wait::until(urgency.deadline(), || wal::standbys_have(position)).map_err(|()| {
        wait::timed_out(&name())
            .detail("The synchronous standby that synchronous_standby_names demands did not confirm in time.")
    })
}

/// As [`make_durable`] for a refill: what was written since `before` stands whatever becomes of the transaction, so its
/// commit need not wait for the disk again if it wrote nothing else.
pub fn make_refill_durable(
    before: LogPosition,
    urgency: Urgency,
    name: &dyn Fn() -> String,
) -> Result<(), Failure> {
    make_durable(urgency, name)?;
    wal::settle(before);
    Ok(())
}

/// The value a sequence must have so that the next one is `end`.
pub fn last_of(end: u64) -> Result<i64, Failure> {
    i64::try_from(end).map(|end| end - 1).map_err(|_| {
        Failure::new(
            Cause::ArgumentOutOfRange,
            format!("bound {end} does not fit a bigint"),
        )
        .hint("Check the server's clock, and whether keywright's sequences were changed by hand.")
    })
}
