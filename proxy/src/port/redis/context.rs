//! What a connection draws on.

use std::sync::Arc;

use tokio::sync::watch;

use crate::config::port::redis::RedisLimits;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::port::keys::PortKeys;
use crate::status::Status;

/// What a session draws on.
pub(super) struct PortContext {
    /// What is bounded.
    pub(super) limits: RedisLimits,
    /// The port's place in the configuration.
    pub(super) port: usize,
    /// What is in force.
    pub(super) snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    /// What the program says of itself.
    pub(super) status: Arc<Status>,
    /// The names, as they were in force when that was looked at last.
    pub(super) keys: Arc<PortKeys>,
}

impl PortContext {
    /// Takes what is in force now.
    pub(super) fn refresh(&mut self) {
        if self.snapshot.has_changed().unwrap_or(false)
            && let Some(keys) = self.snapshot.borrow_and_update().port(self.port)
        {
            self.keys = keys;
        }
    }
}
