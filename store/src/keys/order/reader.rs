//! Reading the leases of all slot groups at once, for all tasks of a program that want theirs.

use std::sync::Arc;

use keywright_core::slot::SlotGroups;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::store::Store;
use crate::store::order_rows::{Leases, ReadLeases};

/// What was read, and when that was asked for.
struct Last {
    sent: Instant,
    read: Result<Arc<Leases>, Failure>,
}

/// Reads for whoever asks. Those who come while one read is under way have the next one together.
pub(super) struct Reader {
    store: Arc<Store>,
    groups: SlotGroups,
    ttl_ms: u64,
    ms_max: u64,
    last: Mutex<Option<Last>>,
}

impl Reader {
    /// `ms_max`: how long the store may take, milliseconds.
    pub(super) fn new(store: Arc<Store>, groups: SlotGroups, ttl_ms: u64, ms_max: u64) -> Self {
        Self {
            store,
            groups,
            ttl_ms,
            ms_max,
            last: Mutex::new(None),
        }
    }

    /// The leases as they are at some moment behind this call.
    pub(super) async fn read(&self) -> Result<Arc<Leases>, Failure> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some(last) = last.as_ref().filter(|last| last.sent >= asked) {
            return last.read.clone();
        }
        let sent = Instant::now();
        let read = ReadLeases {
            groups: self.groups,
            ttl_ms: self.ttl_ms,
        };
        let read = self.store.run_within(self.ms_max, read).await;
        let read = read
            .map(Arc::new)
            .map_err(|error| self.store.failure(&error));
        *last = Some(Last {
            sent,
            read: read.clone(),
        });
        read
    }
}
