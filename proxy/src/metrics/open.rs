//! Connections that are counted while they are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A connection that is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<AtomicU64>);

impl OpenConnection {
    /// Counts one; with how many there are then.
    pub(super) fn count(open: &Arc<AtomicU64>) -> (Self, u64) {
        let before = open.fetch_add(1, Ordering::AcqRel);
        (Self(Arc::clone(open)), before.saturating_add(1))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
