//! What log lines of a connection carry: its number, and whom it serves.
//!
//! The span is entered where something is logged, and while a client logs in, but not for statements: that costs each of them more
//! than a metric does.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Empty, display};
use tracing::{Span, error_span};

use crate::origin::Origin;

/// The number of the next connection.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The span of a new connection, at the level that is logged as long as any is.
pub(crate) fn new() -> Span {
    let connection = NEXT.fetch_add(1, Ordering::Relaxed);
    error_span!("connection", connection, client = Empty)
}

/// Says who the client is, once: without an address it has come over a UNIX socket.
pub(crate) fn of_client(span: &Span, origin: Option<&Origin>) {
    match origin {
        Some(origin) => span.record("client", display(origin.client())),
        None => span.record("client", display("unix")),
    };
}
