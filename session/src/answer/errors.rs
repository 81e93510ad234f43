//! Failures as the error packets that clients get.

use keywright_core::Cause;
use keywright_wire::bytes::write_packet;
use keywright_wire::packets::error_payload;

/// Appends an error.
pub(crate) fn write_error(cause: Cause, message: &str, sequence: u8, out: &mut Vec<u8>) {
    let state = if Cause::OF_PROXY.contains(&cause) {
        cause.sqlstate()
    } else {
        "HY000"
    };
    let payload = error_payload(cause.mysql_errno(), state, message);
    write_packet(&payload, sequence, out);
}
