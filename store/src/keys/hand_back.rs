//! The clean stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tracing::{info, warn};

use super::Keys;
use crate::sources::segment::SegmentSupply;
use crate::store::returned::{Rest, Return};

/// Rests that are handed back in one transaction.
const RESTS_MAX: usize = 200;

impl Keys {
    /// The clean stop. No key is issued from now on; leases are given up, rests of ranges are handed back, to be used
    /// first by whoever starts next. Takes no longer than five transactions in the store may.
    pub async fn hand_back(&self) {
        self.leave_order().await;
        let further = self.0.further.iter().map(|store| {
            let keys = store.keys.clone();
            self.0.runtime.spawn(async move {
                keys.hand_back_rests().await;
                keys.0.store.close().await;
            })
        });
        let further: Vec<_> = further.collect();
        self.hand_back_rests().await;
        self.0.store.close().await;
        for store in further {
            // One that broke off has lost rests, and nothing else.
            drop(store.await);
        }
    }

    async fn hand_back_rests(&self) {
        let (segments, tasks) = self.close_sources();
        let transaction_max = Duration::from_millis(self.0.settings.limits.store_ms_max);
        // A refill under way may still be published: wait for its end, then take what is left.
        let ended = async {
            for mut task in tasks {
                while task.changed().await.is_ok() {}
            }
        };
        if tokio::time::timeout(transaction_max * 2, ended)
            .await
            .is_err()
        {
            warn!("a transaction in the store did not end; what it reserved is lost");
        }
        let was_erased = self.stop_keeping();
        let mut rests: Vec<_> = segments
            .iter()
            .flat_map(|supply| supply.take_rest(was_erased))
            .collect();
        // All programs lock rows in one order.
        rests.sort_by(|one, other| one.tag.cmp(&other.tag));
        if rests.is_empty() {
            return;
        }
        if self.0.settings.gives_ranges_only() {
            let ranges = rests.len();
            let ids = |rest: &Rest| rest.end.saturating_sub(rest.start);
            let ids: u64 = rests.iter().map(ids).sum();
            info!(
                ranges,
                ids, "the store takes no rests of reservations back: they are lost"
            );
            return;
        }
        self.hand_back_in_parts(rests, Instant::now() + transaction_max)
            .await;
    }

    /// No key is issued from now on: the segments, of which something may be left, and the tasks that end now.
    fn close_sources(&self) -> (Vec<Arc<SegmentSupply>>, Vec<watch::Receiver<()>>) {
        let mut sources = self.sources();
        sources.closed = true;
        self.0.seats.close();
        for supply in sources.segments.values() {
            supply.demand.close();
        }
        for supply in &sources.times {
            supply.demand.close();
        }
        for feeder in &sources.feeders {
            feeder.close();
        }
        for following in &sources.followings {
            following.close();
        }
        let segments = sources.segments.values().cloned().collect();
        (segments, std::mem::take(&mut sources.tasks))
    }

    /// Hands rests back, one part after the other, as long as there is time.
    async fn hand_back_in_parts(&self, mut rests: Vec<Rest>, until: Instant) {
        let ranges = rests.len();
        let mut given = 0;
        while !rests.is_empty() {
            if Instant::now() >= until {
                warn!(
                    ranges,
                    returned = given,
                    "rests are handed back for too long; those that are left are lost"
                );
                return;
            }
            let part = Return {
                store: Arc::clone(&self.0.store),
                rests: rests.split_off(rests.len().saturating_sub(RESTS_MAX)),
            };
            match self.run(part).await {
                Ok(returned) => given += returned,
                Err(failure) => {
                    warn!(%failure, ranges, returned = given, "rests could not be handed back; they are lost");
                    return;
                }
            }
        }
        info!(
            ranges,
            returned = given,
            "handed back the rests of reservations"
        );
    }
}
