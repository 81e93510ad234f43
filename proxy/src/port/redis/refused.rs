//! Errors as clients of a key port read them.

use keywright_core::Cause;
use keywright_resp::reply::Writer;
use keywright_store::Failure;

use crate::port::keys::PortKeys;

/// Writes an error: its first word says the cause.
pub(super) fn write(to: &mut Writer<'_>, cause: Cause, message: &str) {
    to.error(&cause.redis_code(), message);
}

/// Why there is no key, with what to do about it.
pub(super) fn write_failure(to: &mut Writer<'_>, failure: &Failure) {
    write(to, failure.cause(), &failure.to_string());
}

/// Tells why there is no key, and counts it.
pub(super) fn refuse(keys: &PortKeys, name: &str, failure: &Failure, to: &mut Writer<'_>) {
    keys.figures.refused(name, failure.cause());
    write_failure(to, failure);
}
