//! What log lines of a connection carry: its number, and whom it serves.
//!
//! The span is entered where something is logged, and while a client logs in, but not for statements: that costs each of them more
//! than a metric does.

use tracing::field::{Empty, display};
use tracing::{Span, error_span};

use crate::connection::origin::Origin;

/// The span of the connection with this number, at the level that is logged as long as any is.
pub(crate) fn new(connection: u64) -> Span {
    error_span!("connection", connection, client = Empty)
}

/// Says who the client is, once: without an address it has come over a UNIX socket.
pub(crate) fn of_client(span: &Span, origin: Option<&Origin>) {
    match origin {
        Some(origin) => span.record("client", display(origin.client())),
        None => span.record("client", display("unix")),
    };
}
