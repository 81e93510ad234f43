//! Memory that connections keep beyond one statement: the texts of prepared statements. The driver counts it, for all sessions.

use std::fmt::Debug;
use std::sync::Arc;

/// The memory of all connections.
pub trait Budget: Debug + Send + Sync {
    /// Takes so many bytes; false, and nothing is taken, if there are not so many.
    fn take(&self, bytes: usize) -> bool;
    /// Gives back what was taken.
    fn give_back(&self, bytes: usize);
}

/// What a prepared statement takes of it; given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    of: Option<Arc<dyn Budget>>,
    bytes: usize,
}

impl Held {
    /// So many bytes of a budget, if it has them. Without a budget there is no limit.
    pub(crate) fn new(of: Option<&Arc<dyn Budget>>, bytes: usize) -> Option<Self> {
        if of.is_some_and(|of| !of.take(bytes)) {
            return None;
        }
        Some(Self {
            of: of.cloned(),
            bytes,
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(of) = &self.of {
            of.give_back(self.bytes);
        }
    }
}
