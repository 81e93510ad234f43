//! A refill waits for its turn to ask the store.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::sources::demand::Demand;
use crate::store::turns::Turn;
use crate::store::{Store, StoreError};

/// How long a refill waits for its turn while those of others end in time, milliseconds. While none does, it waits no longer than for a transaction.
const TURN_MS_MAX: u64 = 60_000;

/// How often a refill that waits looks whether turns of others end, milliseconds.
const LOOK_MS_MAX: u64 = 1_000;

/// Why a refill has no turn.
#[derive(Debug)]
pub(super) enum NoTurn {
    /// The source is closed.
    Closed,
    /// It has waited for too long.
    Crowded(StoreError),
}

/// Waits for a turn. `is_first`: nothing was reserved yet, so that it may be that nobody has asked for keys. Such a refill stands behind all that somebody
/// has asked for, until somebody does.
pub(super) async fn turn<'s>(
    demand: &Demand,
    store: &'s Store,
    is_first: bool,
) -> Result<Turn<'s>, NoTurn> {
    let now = Instant::now();
    let mut waiting = Waiting {
        demand,
        store,
        began: now,
        ended: store.turns.ended(),
        ended_at: now,
    };
    let unasked = match is_first && demand.need() == 0 {
        true => waiting.wait(&store.turns.unasked, true).await?,
        false => None,
    };
    match waiting.wait(&store.turns.asking, false).await? {
        Some(asking) => Ok(store.turns.begin(asking, unasked)),
        None => Err(NoTurn::Closed),
    }
}

struct Waiting<'w, 's> {
    demand: &'w Demand,
    store: &'s Store,
    began: Instant,
    /// How many turns of others had ended, when that was another number than before.
    ended: u64,
    ended_at: Instant,
}

impl<'s> Waiting<'_, 's> {
    /// Nothing: somebody has asked, where it waits `until_asked`.
    async fn wait(
        &mut self,
        queue: &'s Semaphore,
        until_asked: bool,
    ) -> Result<Option<SemaphorePermit<'s>>, NoTurn> {
        let permit = queue.acquire();
        tokio::pin!(permit);
        loop {
            if self.demand.is_closed() {
                return Err(NoTurn::Closed);
            }
            self.look()?;
            let look_ms = LOOK_MS_MAX.min(self.store.turns.ms_max);
            let look_at = Instant::now() + Duration::from_millis(look_ms);
            tokio::select! {
                // Whoever has a place takes it, whatever else has happened meanwhile.
                biased;
                permit = &mut permit => return permit.map(Some).map_err(|_| NoTurn::Closed),
                is_asked = self.asked(look_at, until_asked) => if is_asked {
                    return Ok(None);
                },
            }
        }
    }

    /// Whether somebody asks before a moment, if that matters. It returns early when the source is closed.
    async fn asked(&self, until: Instant, matters: bool) -> bool {
        match matters {
            true => self.demand.asked(Some(until)).await,
            false => {
                // Either way it looks again.
                let _ = timeout_at(until, self.demand.closed()).await;
                false
            }
        }
    }

    /// Whether to wait on.
    fn look(&mut self) -> Result<(), NoTurn> {
        let turns = &self.store.turns;
        let ended = turns.ended();
        if ended != self.ended {
            (self.ended, self.ended_at) = (ended, Instant::now());
        }
        let limits = [(self.ended_at, turns.ms_max), (self.began, TURN_MS_MAX)];
        for (since, ms) in limits {
            if since.elapsed() >= Duration::from_millis(ms) {
                return Err(NoTurn::Crowded(StoreError::Crowded { ms }));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::task::{JoinHandle, yield_now};

    use super::*;
    use crate::settings::{RawSnowflakeSettings, RawStoreSettings, StoreSettings};

    /// Sources of a store with one turn, which nobody asks.
    struct Crowd {
        store: Arc<Store>,
        /// Whose turn it was, in this order.
        turns: Arc<Mutex<Vec<usize>>>,
    }

    impl Crowd {
        fn new(store_ms_max: u64) -> Self {
            let raw = RawStoreSettings {
                url: "mysql://k@127.0.0.1/k".to_owned(),
                connections_max: 2,
                store_ms_max,
                ..RawStoreSettings::default()
            };
            let settings = StoreSettings::new(&raw, &RawSnowflakeSettings::default()).unwrap();
            Self {
                store: Arc::new(Store::new(&settings)),
                turns: Arc::default(),
            }
        }

        fn come(&self, number: usize, is_first: bool) -> (Arc<Demand>, JoinHandle<()>) {
            let demand = Arc::new(Demand::new(String::new(), 1_000, 1));
            let (its, store) = (Arc::clone(&demand), Arc::clone(&self.store));
            let turns = Arc::clone(&self.turns);
            let task = tokio::spawn(async move {
                let turn = turn(&its, &store, is_first).await.unwrap();
                turns.lock().unwrap().push(number);
                yield_now().await;
                drop(turn);
            });
            (demand, task)
        }
    }

    #[tokio::test]
    async fn whoever_was_asked_comes_before_those_that_nobody_has_asked() {
        let crowd = Crowd::new(60_000);
        let demand = Demand::new(String::new(), 1_000, 1);
        let other = turn(&demand, &crowd.store, false).await.unwrap();
        let mut all: Vec<_> = (0..5).map(|number| crowd.come(number, true)).collect();
        yield_now().await;
        all.push(crowd.come(5, false));
        yield_now().await;
        // Somebody asks one that waits already.
        let (fourth, _) = &all[4];
        fourth.ask();
        yield_now().await;
        drop(other);
        for (_, task) in all {
            task.await.unwrap();
        }
        assert_eq!(*crowd.turns.lock().unwrap(), [0, 5, 4, 1, 2, 3]);
    }

    #[tokio::test]
    async fn who_stops_waits_for_no_turn() {
        let crowd = Crowd::new(60_000);
        let demand = Demand::new(String::new(), 1_000, 1);
        let _other = turn(&demand, &crowd.store, false).await.unwrap();
        for is_first in [true, false] {
            let demand = Arc::new(Demand::new(String::new(), 1_000, 1));
            let (its, store) = (Arc::clone(&demand), Arc::clone(&crowd.store));
            let waiting = tokio::spawn(async move {
                let turn = turn(&its, &store, is_first).await;
                matches!(turn, Err(NoTurn::Closed))
            });
            yield_now().await;
            demand.close();
            assert!(waiting.await.unwrap());
        }
    }

    #[tokio::test]
    async fn while_no_turn_ends_a_refill_waits_no_longer_than_for_a_transaction() {
        let crowd = Crowd::new(10);
        let demand = Demand::new(String::new(), 1_000, 1);
        let _other = turn(&demand, &crowd.store, false).await.unwrap();
        let late = turn(&demand, &crowd.store, false).await;
        let error = match late {
            Err(NoTurn::Crowded(error)) => error,
            other => panic!("{other:?}"),
        };
        let failure = crowd.store.failure(&error);
        assert!(failure.to_string().contains("within 10 ms"), "{failure}");
        // Of the store nothing is known by that.
        assert_eq!(crowd.store.is_up(), None);
    }
}
