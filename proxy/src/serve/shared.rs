//! What all threads share that serve clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::config::Config;
use crate::connection::memory::Memory;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::metrics::Counters;
use crate::serve::threads::Threads;
use crate::status::Status;
use crate::status::clients::ListenerFigures;

/// What all threads share.
pub(super) struct Shared {
    pub(super) config: Config,
    /// By place in the configuration.
    pub(super) listeners: Vec<Arc<ListenerFigures>>,
    pub(super) snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    pub(super) counters: Arc<Counters>,
    pub(super) status: Arc<Status>,
    pub(super) memory: Arc<Memory>,
    pub(super) threads: Threads,
    /// Connections that were accepted, for their numbers in the log.
    pub(super) accepted: AtomicU64,
    pub(super) stopping: watch::Receiver<bool>,
}

impl Shared {
    /// The number of a connection that was accepted.
    pub(super) fn next_number(&self) -> u64 {
        self.accepted.fetch_add(1, Ordering::Relaxed) + 1
    }
}
