//! Errors as clients of a key port read them.

use keywright_core::Cause;
use keywright_resp::reply::Writer;
use keywright_store::Failure;

/// Writes an error: its first word says the cause.
pub(super) fn write(to: &mut Writer<'_>, cause: Cause, message: &str) {
    to.error(&cause.redis_code(), message);
}

/// Why there is no key, with what to do about it.
pub(super) fn write_failure(to: &mut Writer<'_>, failure: &Failure) {
    write(to, failure.cause(), &failure.to_string());
}
