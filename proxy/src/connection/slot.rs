//! A connection's place among all.

use std::sync::Arc;

use crate::metrics::Counters;

/// A connection that is counted until it is dropped, however its task ends.
pub(crate) struct ConnectionSlot(Arc<Counters>);

impl ConnectionSlot {
    /// With how many there are then.
    pub(crate) fn take(counters: &Arc<Counters>) -> (Self, u64) {
        let open = counters.opened();
        (Self(Arc::clone(counters)), open)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.closed();
    }
}
