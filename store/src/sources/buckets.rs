//! Readable keys out of several stores, in turn. One that has none at the moment is passed over: its own task tries it again, with its pauses, while
//! the others give.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::select_ok;
use keywright_core::readable::Biz;
use keywright_core::{Cause, KeyBatch};

use crate::failure::Failure;
use crate::sources::stats::SourceStats;
use crate::sources::time::supply::TimeSupply;

/// What the stores give.
#[derive(Debug)]
pub(crate) struct Buckets {
    supplies: Vec<Arc<TimeSupply>>,
    /// Whose turn it is, counted on without end.
    turn: AtomicUsize,
}

impl Buckets {
    pub(crate) fn new(supplies: Vec<Arc<TimeSupply>>) -> Self {
        Self {
            supplies,
            turn: AtomicUsize::new(0),
        }
    }

    /// Each of them once, beginning with the one whose turn it is.
    fn in_turn(&self) -> impl Iterator<Item = &Arc<TimeSupply>> {
        let count = self.supplies.len();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let first = turn.checked_rem(count).unwrap_or(0);
        self.supplies.iter().cycle().skip(first).take(count)
    }

    /// Whether all of them have no keys, and cannot reserve.
    pub(crate) fn give_nothing(&self) -> bool {
        let mut supplies = self.supplies.iter();
        supplies.all(|supply| SourceStats::of_time(supply).gives_nothing())
    }

    /// Keys of one store, if any has them.
    pub(crate) fn try_take(&self, count: u64, biz: &Biz) -> Option<KeyBatch> {
        self.in_turn()
            .find_map(|supply| supply.try_readables(count, biz))
    }

    /// The same, and waits for whichever has them first.
    ///
    /// # Errors
    /// None has: what the last one says.
    pub(crate) async fn take(&self, count: u64, biz: &Biz) -> Result<KeyBatch, Failure> {
        if let Some(keys) = self.try_take(count, biz) {
            return Ok(keys);
        }
        let take = |supply: &Arc<TimeSupply>| {
            let supply = Arc::clone(supply);
            Box::pin(async move {
                let attempt = || supply.try_readables(count, biz);
                supply.take(count, false, attempt).await
            })
        };
        let all: Vec<_> = self.in_turn().map(take).collect();
        if all.is_empty() {
            let message = "no store gives readable ids";
            return Err(Failure::new(Cause::StoreUnavailable, message));
        }
        select_ok(all).await.map(|(keys, _)| keys)
    }
}
