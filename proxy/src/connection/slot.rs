//! A connection among all that the program waits for at its end.

use std::sync::Arc;

use crate::metrics::Counters;

/// A connection that is counted until it is dropped, however its task ends.
pub(crate) struct ConnectionSlot(Arc<Counters>);

impl ConnectionSlot {
    /// Counts one.
    pub(crate) fn take(counters: &Arc<Counters>) -> Self {
        counters.opened();
        Self(Arc::clone(counters))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.closed();
    }
}
