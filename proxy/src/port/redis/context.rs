//! What a connection draws on.

use std::sync::Arc;

use keywright_core::slot;
use tokio::sync::watch;

use crate::config::port::redis::RedisLimits;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::port::keys::PortKeys;
use crate::port::redis::told::Moved;
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
    /// Slots of which the client was told to ask elsewhere, while there are requests that it sent before it can have read that.
    pub(super) moved: Vec<Moved>,
}

impl PortContext {
    /// Where the client was told to ask for keys of a name.
    pub(super) fn moved(&self, name: &[u8]) -> Option<&Moved> {
        if self.moved.is_empty() {
            return None;
        }
        let slot = slot::of(name);
        self.moved.iter().find(|moved| moved.slot == slot)
    }

    /// The client was told to ask elsewhere.
    pub(super) fn note_moved(&mut self, moved: Moved) {
        if self.moved.iter().all(|known| known.slot != moved.slot) {
            self.moved.push(moved);
        }
    }

    /// Takes what is in force now.
    pub(super) fn refresh(&mut self) {
        if self.snapshot.has_changed().unwrap_or(false)
            && let Some(keys) = self.snapshot.borrow_and_update().port(self.port)
        {
            self.keys = keys;
        }
    }
}
