//! What `SHOW KEYWRIGHT …` answers, and to whom.

pub mod clients;
mod lists;

use std::sync::Arc;
use std::time::Instant;

use keywright_session::{List, Listing};
use keywright_store::{FeedStats, Keys, OrderStats, SourceStats, StoreUp};
use tokio::sync::watch;

use crate::in_force::snapshot::ConfigSnapshot;
use crate::metrics::Counters;

/// The program's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Answers clients that ask the proxy how it is.
pub struct Status {
    /// Users who get an answer.
    users: Vec<Vec<u8>>,
    started: Instant,
    keys: Keys,
    counters: Arc<Counters>,
    snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
}

impl Status {
    /// The process has just started.
    pub fn new(
        users: &[String],
        keys: Keys,
        counters: Arc<Counters>,
        snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    ) -> Self {
        Self {
            users: users.iter().map(|user| user.clone().into_bytes()).collect(),
            started: Instant::now(),
            keys,
            counters,
            snapshot,
        }
    }

    /// Whether that user gets an answer. The server has accepted the user's login.
    pub fn allows(&self, user: &[u8]) -> bool {
        self.users.iter().any(|allowed| allowed == user)
    }

    /// What the sources of keys count.
    pub(crate) fn sources(&self) -> Vec<SourceStats> {
        self.keys.stats()
    }

    /// What is counted of the servers that are fed.
    pub(crate) fn feeds(&self) -> Vec<FeedStats> {
        self.keys.feed_stats()
    }

    /// How the program stands for the lease of those who give keys of ordered tags.
    pub(crate) fn order(&self) -> Option<OrderStats> {
        self.keys.order_stats()
    }

    /// Where each store is, and whether it answered when it was last spoken to.
    pub(crate) fn stores(&self) -> Vec<StoreUp> {
        self.keys.stores_up()
    }

    /// Whether the program goes on with ranges that were kept.
    pub(crate) fn is_on_kept_ranges(&self) -> Option<bool> {
        self.keys.is_on_kept_ranges()
    }

    /// What the program counts.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The rules in force.
    pub(crate) fn snapshot(&self) -> Arc<ConfigSnapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Seconds since the start.
    pub(crate) fn uptime_s(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// What a client has asked for.
    pub fn list(&self, listing: Listing) -> List {
        match listing {
            Listing::Status => self.figures(),
            Listing::Rules => self.rules(),
            Listing::Sources => self.source_list(),
            Listing::Connections => self.connections(),
        }
    }
}
