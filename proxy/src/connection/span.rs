//! What log lines of a connection carry: its number, and whom it serves.
//!
//! The span is entered where something is logged, and while a client logs in, but not for statements: that costs each of them more
//! than a metric does.

use std::net::SocketAddr;

use tracing::field::{Empty, display};
use tracing::{Span, error_span};

/// The span of the connection with this number, at the level that is logged as long as any is. Who the client is, is still to be said.
pub(crate) fn new(connection: u64) -> Span {
    error_span!("connection", connection, client = Empty)
}

/// The same, of a client that is known: without an address it has come over a UNIX socket.
pub(crate) fn of(connection: u64, client: Option<SocketAddr>) -> Span {
    match client {
        Some(client) => error_span!("connection", connection, client = display(client)),
        None => error_span!("connection", connection, client = display("unix")),
    }
}

/// Says who the client is, once.
pub(crate) fn of_client(span: &Span, client: Option<SocketAddr>) {
    match client {
        Some(client) => span.record("client", display(client)),
        None => span.record("client", display("unix")),
    };
}
