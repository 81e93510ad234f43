//! Errors as clients of a key port read them. What is written here is counted here, and nowhere else.

use keywright_core::Cause;
use keywright_resp::command::Refusal;
use keywright_resp::reply::Writer;
use keywright_store::Failure;

use crate::port::keys::PortKeys;

/// Tells why a request gets nothing, with what to do about it, and counts it. `name`: the one that it names; empty where it names none.
pub(super) fn refuse(keys: &PortKeys, name: &[u8], failure: &Failure, to: &mut Writer<'_>) {
    let cause = failure.cause();
    count(keys, name, cause);
    to.error(&cause.redis_code(), &failure.to_string());
}

/// The same of a request that names nothing.
pub(super) fn write(keys: &PortKeys, cause: Cause, message: &str, to: &mut Writer<'_>) {
    count(keys, b"", cause);
    to.error(&cause.redis_code(), message);
}

/// The same of what is no command of a key port.
pub(super) fn refuse_command(keys: &PortKeys, refusal: &Refusal<'_>, to: &mut Writer<'_>) {
    count(keys, b"", Cause::CommandRefused);
    to.error(refusal.code(), &refusal.to_string());
}

/// Counts a request that was refused. Names are those of the listener, so that nobody makes series of his own.
fn count(keys: &PortKeys, name: &[u8], cause: Cause) {
    let named = keys.name(name).map_or("", |named| named.name.as_str());
    keys.figures.refused(named, cause);
}
