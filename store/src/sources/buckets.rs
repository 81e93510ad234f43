//! Readable keys out of several stores, in turn. One that has none at the moment is passed over: its own task tries it again, with its pauses, while
//! the others give.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::select_ok;
use keywright_core::{Cause, KeyBatch};

use crate::failure::Failure;
use crate::sources::source::Source;

/// The stores' sources.
#[derive(Debug)]
pub(crate) struct Buckets {
    sources: Vec<Source>,
    /// Whose turn it is, counted on without end.
    turn: AtomicUsize,
}

impl Buckets {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        Self {
            sources,
            turn: AtomicUsize::new(0),
        }
    }

    /// Each of them once, beginning with the one whose turn it is.
    fn in_turn(&self) -> impl Iterator<Item = &Source> {
        let count = self.sources.len().max(1);
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % count;
        self.sources
            .iter()
            .cycle()
            .skip(first)
            .take(self.sources.len())
    }

    /// Keys of one store, if any has them.
    pub(crate) fn try_take(&self, count: u64) -> Option<KeyBatch> {
        self.in_turn()
            .find_map(|source| source.try_take(count, false).ok())
    }

    /// The same, and waits for whichever has them first.
    ///
    /// # Errors
    /// None has: what the last one says.
    pub(crate) async fn take(&self, count: u64) -> Result<KeyBatch, Failure> {
        if let Some(keys) = self.try_take(count) {
            return Ok(keys);
        }
        let all: Vec<_> = self
            .in_turn()
            .map(|source| Box::pin(source.take(count, false)))
            .collect();
        if all.is_empty() {
            return Err(Failure::new(
                Cause::StoreUnavailable,
                "no store gives readable ids",
            ));
        }
        select_ok(all).await.map(|(keys, _)| keys)
    }
}
