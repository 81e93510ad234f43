//! Stores that give ranges and keep nothing else: a key port of another program, and a Redis.

pub(crate) mod error;
pub(crate) mod judge;
pub(crate) mod key_port;
mod link;
pub(crate) mod plain;

use std::sync::Arc;

use rustls::ClientConfig;

pub(crate) use link::{RedisLink, ServerKind};

/// Where such a store is.
#[derive(Clone)]
pub(crate) struct RedisSettings {
    /// Tried in this order.
    pub(crate) hosts: Vec<Host>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// The database of a Redis; a key port has only 0.
    pub(crate) database: u32,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// Somebody has said what is lost with a Redis.
    pub(crate) accept_loss_on_failover: bool,
    /// How long one host may take, milliseconds.
    pub(crate) host_ms_max: u64,
}

/// A host and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// Without brackets.
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// As a url has it.
impl std::fmt::Display for Host {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.contains(':') {
            true => write!(out, "[{}]:{}", self.name, self.port),
            false => write!(out, "{}:{}", self.name, self.port),
        }
    }
}

/// Without the password.
impl std::fmt::Debug for RedisSettings {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RedisSettings")
            .field("hosts", &self.hosts)
            .field("user", &self.user)
            .field("database", &self.database)
            .field("tls", &self.tls.is_some())
            .field("accept_loss_on_failover", &self.accept_loss_on_failover)
            .finish_non_exhaustive()
    }
}
