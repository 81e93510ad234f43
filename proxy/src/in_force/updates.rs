//! The snapshot that a connection follows, and its wait for newer ones.

use std::sync::Arc;
use std::task::Context;

use keywright_core::Cause;
use keywright_session::{KeyFailure, PassthroughConnection, Rest, Rules};
use tokio::sync::watch;

use crate::connection::changes::Changes;
use crate::connection::leaving::Leaving;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::metrics::Counters;

/// Where a connection's snapshots come from.
#[derive(Clone)]
pub struct SnapshotReceiver {
    /// What new connections follow.
    pub(crate) snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    /// Which listener's rules are the connection's.
    pub(crate) listener: usize,
    /// How long a statement waits for newer snapshot, milliseconds.
    pub(crate) held_ms_max: u64,
    /// They say what keeps the store from being heard.
    pub(crate) counters: Arc<Counters>,
}

/// The wait of a connection for newer snapshots.
pub(crate) struct ConfigUpdates {
    snapshot: Changes<Arc<ConfigSnapshot>>,
    listener: usize,
    held_ms_max: u64,
    counters: Arc<Counters>,
    /// There may be newer ones.
    is_due: bool,
    /// The connection is in passthrough, since there were no rules when it began. A change of its rules waits for its end.
    passthrough: Option<PassthroughConnection>,
    /// There are rules now.
    leaving: Option<Leaving>,
}

impl ConfigUpdates {
    /// `is_passthrough`: the connection is in passthrough.
    pub(crate) fn new(source: SnapshotReceiver, is_passthrough: bool) -> Self {
        let passthrough =
            is_passthrough.then(|| source.snapshot.borrow().traffic().count_passthrough());
        Self {
            snapshot: Changes::new(source.snapshot),
            listener: source.listener,
            held_ms_max: source.held_ms_max,
            counters: source.counters,
            // A newer one may have come while the client logged in.
            is_due: true,
            passthrough,
            leaving: None,
        }
    }

    /// Whether the connection is in passthrough.
    pub(crate) fn is_passthrough(&self) -> bool {
        self.passthrough.is_some()
    }

    /// Whether the connection began in passthrough though there are rules by now: they came while the client logged in. Asked before
    /// its first command, and after the connection was counted: whoever switches tables sees it, or it sees the rules.
    pub(crate) fn begins_outdated(&self) -> bool {
        let has_rules = || {
            self.rules(&self.snapshot())
                .is_some_and(|rules| !rules.is_empty())
        };
        self.is_passthrough() && has_rules()
    }

    /// Whether such a connection is to end now, since there are rules.
    pub(crate) fn poll_end(&mut self, rest: Rest, context: &mut Context<'_>) -> bool {
        let rules = self.rules(&self.snapshot());
        if rules.is_none_or(|rules| rules.is_empty()) {
            self.leaving = None;
            self.done();
            return false;
        }
        let leaving = self.leaving.get_or_insert_with(Leaving::new);
        leaving.poll(rest, context)
    }

    /// Whether there may be a newer snapshot that was not taken yet; if not, the task is woken when there is one.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.is_due |= self.snapshot.poll(context);
        self.is_due
    }

    /// They were taken, or need not be.
    pub(crate) fn done(&mut self) {
        self.is_due = false;
    }

    /// Those that are there now.
    pub(crate) fn snapshot(&self) -> Arc<ConfigSnapshot> {
        Arc::clone(&self.snapshot.value().borrow())
    }

    /// The rules of the connection's listener.
    pub(crate) fn rules(&self, snapshot: &ConfigSnapshot) -> Option<Arc<Rules>> {
        snapshot.rules(self.listener)
    }

    /// How long a statement waits for them, milliseconds.
    pub(crate) fn held_ms_max(&self) -> u64 {
        self.held_ms_max
    }

    /// Why there is no newer one, where the store has not said since the program started which tables have keys: it is no switch then that
    /// statements wait for.
    pub(crate) fn store_unheard(&self) -> Option<KeyFailure> {
        if self.snapshot().has_heard_store() {
            return None;
        }
        // Before the store is heard, steps of the switch fail for nothing else.
        let message = self.counters.switch()?.trouble?;
        Some(KeyFailure {
            cause: Cause::StoreUnavailable,
            message,
        })
    }

    /// Waits until there are others than those of this version.
    pub(crate) fn wait_for(&self, version: u64) -> impl Future<Output = ()> + Send + use<> {
        let mut snapshot = self.snapshot.value().clone();
        async move {
            let is_other = |snapshot: &Arc<ConfigSnapshot>| snapshot.version() != version;
            if snapshot.wait_for(is_other).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
