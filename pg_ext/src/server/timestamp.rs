//! Moments: unix milliseconds here, microseconds since 2000 in the server.

use keywright_core::cause::Cause;
use pgrx::datum::TimestampWithTimeZone;

use crate::failure::Failure;

/// Microseconds from the unix epoch to the server's, 2000-01-01.
pub const SERVER_EPOCH_US: i64 = 946_684_800_000_000;

/// What to do about an id that does not fit its layout.
pub const LAYOUT_HINT: &str =
    "Name the layout the id was issued with, for instance snowflake_decode(id, 'leaf').";
/// Which moments have ids.
pub const MOMENT_HINT: &str = "A layout has ids from its epoch until its time bits run out.";

/// A moment in unix milliseconds as the server writes it.
///
/// # Errors
/// The server cannot write it.
pub fn of_unix_ms(unix_ms: i64) -> Result<TimestampWithTimeZone, Failure> {
    unix_ms
        .checked_mul(1_000)
        .and_then(|us| us.checked_sub(SERVER_EPOCH_US))
        .and_then(|us| TimestampWithTimeZone::try_from(us).ok())
        .ok_or_else(|| {
            Failure::new(
                Cause::ArgumentOutOfRange,
                format!("{unix_ms} ms since 1970 is beyond what a timestamp can hold"),
            )
            .hint(LAYOUT_HINT)
        })
}

/// A moment as the server has it, in unix milliseconds, rounded down.
///
/// # Errors
/// It is infinite, or out of range.
pub fn unix_ms(moment: TimestampWithTimeZone) -> Result<i64, Failure> {
    let us: i64 = moment.into();
    if us == i64::MIN || us == i64::MAX {
        return Err(
            Failure::new(Cause::ArgumentOutOfRange, "no id has an infinite moment")
                .hint(MOMENT_HINT),
        );
    }
    us.checked_add(SERVER_EPOCH_US)
        .map(|us| us.div_euclid(1_000))
        .ok_or_else(|| {
            Failure::new(Cause::ArgumentOutOfRange, "the moment is out of range").hint(MOMENT_HINT)
        })
}
