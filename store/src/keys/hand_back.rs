//! The clean stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tracing::{info, warn};

use super::Keys;
use crate::sources::segment::SegmentSupply;
use crate::store::returned::{Rest, Return};

/// Rests that are handed back in one transaction: the rows of their tags are asked for one by one, within `store_ms_max`.
const RESTS_MAX: usize = 100;
/// How long one transaction after the other is begun for them, milliseconds, if `store_ms_max` is not longer. With `drain_ms_max` it is less than what the unit of
/// the package and the page on Kubernetes allow for the whole stop (60 s).
const RESTS_MS_MAX: u64 = 15_000;

impl Keys {
    /// The clean stop. No key is issued from now on; leases are given up, rests of ranges are handed back, to be used
    /// first by whoever starts next. Takes as long as a few transactions in the store may at most, and, where there are so many rests that it needs that, 15 s more.
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
        let long = transaction_max.max(Duration::from_millis(RESTS_MS_MAX));
        self.hand_back_in_parts(rests, Instant::now() + long).await;
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

    /// Hands rests back, one part after the other, as long as there is time. A part that fails is not tried again, for it may have been handed back; the others are
    /// not lost with it, unless the next one fails, too.
    async fn hand_back_in_parts(&self, mut rests: Vec<Rest>, until: Instant) {
        let ranges = rests.len();
        let mut given = 0;
        let mut has_failed = false;
        let mut is_any_lost = false;
        while !rests.is_empty() {
            if Instant::now() >= until {
                warn!(
                    ranges,
                    returned = given,
                    lost = rests.len(),
                    "rests are handed back for too long; those that are left are lost"
                );
                return;
            }
            let part = rests.split_off(rests.len().saturating_sub(RESTS_MAX));
            let of_part = part.len();
            let part = Return {
                store: Arc::clone(&self.0.store),
                rests: part,
            };
            match self.run(part).await {
                Ok(returned) => {
                    given += returned;
                    has_failed = false;
                }
                Err(failure) => {
                    let left = if has_failed { rests.len() } else { 0 };
                    let lost = of_part.saturating_add(left);
                    warn!(%failure, ranges, returned = given, lost, "rests could not be handed back; they are lost");
                    if has_failed {
                        return;
                    }
                    has_failed = true;
                    is_any_lost = true;
                }
            }
        }
        if given > 0 || !is_any_lost {
            info!(
                ranges,
                returned = given,
                "handed back the rests of reservations"
            );
        }
    }
}
