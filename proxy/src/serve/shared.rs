//! What all threads share that serve clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::config::Config;
use crate::connection::memory::Memory;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::metrics::Counters;
use crate::serve::threads::Threads;
use crate::status::Status;
use crate::status::clients::ListenerFigures;

/// How long whoever is logging in when the program is to stop may still take, milliseconds: enough for a client that says something.
const LAST_LOGINS_MS_MAX: u64 = 500;

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
    /// The log has it that connections are closed at the end of `drain_ms_max`.
    pub(super) has_logged_closing: AtomicBool,
}

impl Shared {
    /// The number of a connection that was accepted.
    pub(super) fn next_number(&self) -> u64 {
        self.accepted.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Warns of the connections that did not end in `drain_ms_max`, which the threads close now: each comes to that, and the first one says so.
    pub(super) fn log_closing(&self) {
        let connections = self.counters.open();
        if connections > 0 && !self.has_logged_closing.swap(true, Ordering::Relaxed) {
            tracing::warn!(connections, "closing what did not end in drain_ms_max");
        }
    }

    /// What comes before a client is let in; `None`: the program is stopping, and waits no longer for somebody who has nothing to lose yet.
    pub(super) async fn unless_stopping<T>(
        &self,
        letting_in: impl Future<Output = T>,
    ) -> Option<T> {
        let mut stopping = self.stopping.clone();
        let over = async {
            // The sender lives until the process ends.
            let _ = stopping.wait_for(|stopping| *stopping).await.is_ok();
            sleep(Duration::from_millis(LAST_LOGINS_MS_MAX)).await;
        };
        tokio::select! {
            biased;
            done = letting_in => Some(done),
            () = over => None,
        }
    }
}
