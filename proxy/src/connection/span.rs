//! What log lines of a connection carry: its number, and whom it serves.
//!
//! A span is made where something is logged, and entered for that alone: to make one for each connection costs those that live for one
//! statement more than anything else that the proxy does of its own accord when they log in, and most have nothing to log.

use std::net::SocketAddr;

use tracing::field::Empty;
use tracing::{Span, error_span};

/// Whom a connection serves.
#[derive(Debug, Clone, Copy)]
enum Client {
    /// What tells is still to be read.
    Unknown,
    /// Over TCP, from there.
    Tcp(SocketAddr),
    /// Over a UNIX socket, which has no address.
    Unix,
}

impl From<Option<SocketAddr>> for Client {
    fn from(address: Option<SocketAddr>) -> Self {
        address.map_or(Self::Unix, Self::Tcp)
    }
}

/// What log lines of a connection carry.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionSpan {
    connection: u64,
    client: Client,
}

impl ConnectionSpan {
    /// Of the connection with this number. Who the client is, is still to be said.
    pub fn new(connection: u64) -> Self {
        let client = Client::Unknown;
        Self { connection, client }
    }

    /// The same, of a client that is known: without an address it has come over a UNIX socket.
    pub(crate) fn of(connection: u64, client: Option<SocketAddr>) -> Self {
        let client = client.into();
        Self { connection, client }
    }

    /// Says who the client is.
    pub(crate) fn is_of(&mut self, client: Option<SocketAddr>) {
        self.client = client.into();
    }

    /// The span, at the level that is logged as long as any is.
    pub(crate) fn span(&self) -> Span {
        let connection = self.connection;
        match self.client {
            Client::Unknown => error_span!("connection", connection, client = Empty),
            Client::Tcp(client) => error_span!("connection", connection, client = %client),
            Client::Unix => error_span!("connection", connection, client = %"unix"),
        }
    }

    /// Logs something in it.
    pub(crate) fn in_scope(&self, log: impl FnOnce()) {
        self.span().in_scope(log);
    }
}
