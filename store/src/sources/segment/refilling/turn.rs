//! A refill waits for its turn to ask the store.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::sources::demand::Demand;
use crate::store::turns::Turn;
use crate::store::{Store, StoreError};

/// How long a refill that was asked for waits for its turn while those of others end in time, milliseconds. While none does, it waits no longer than for a
/// transaction.
pub(super) const TURN_MS_MAX: u64 = 60_000;

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

/// Waits for a turn, `ms_max` at most from when somebody has asked for keys. `is_unasked`: as far as is known nobody has. Such a refill stands behind all that
/// somebody has asked for, until somebody does, which is then said here.
pub(super) async fn turn<'s>(
    demand: &Demand,
    store: &'s Store,
    is_unasked: &mut bool,
    ms_max: u64,
) -> Result<Turn<'s>, NoTurn> {
    let mut waiting = Waiting::new(Some(demand), store, ms_max);
    *is_unasked = *is_unasked && demand.need() == 0;
    let unasked = match *is_unasked {
        true => {
            let unasked = waiting.wait(&store.turns.unasked, true).await?;
            *is_unasked = unasked.is_some();
            waiting.began = Instant::now();
            unasked
        }
        false => None,
    };
    waiting.asking(unasked).await
}

/// The same of a refill that was asked for, beside somebody who looks for asks and for the source's end: one of the two is woken only.
pub(super) async fn turn_beside(store: &Store) -> Result<Turn<'_>, NoTurn> {
    let mut waiting = Waiting::new(None, store, TURN_MS_MAX);
    waiting.asking(None).await
}

struct Waiting<'w, 's> {
    /// Nothing: somebody else looks at it.
    demand: Option<&'w Demand>,
    store: &'s Store,
    began: Instant,
    /// How long it waits from then on, milliseconds.
    ms_max: u64,
    /// How many turns of others had ended, when that was another number than before.
    ended: u64,
    ended_at: Instant,
}

impl<'w, 's> Waiting<'w, 's> {
    fn new(demand: Option<&'w Demand>, store: &'s Store, ms_max: u64) -> Self {
        let now = Instant::now();
        Self {
            demand,
            store,
            began: now,
            ms_max,
            ended: store.turns.ended(),
            ended_at: now,
        }
    }

    async fn asking(&mut self, unasked: Option<SemaphorePermit<'s>>) -> Result<Turn<'s>, NoTurn> {
        let store = self.store;
        let turns = &store.turns;
        match self.wait(&turns.asking, false).await? {
            Some(asking) => Ok(turns.begin(asking, unasked)),
            None => Err(NoTurn::Closed),
        }
    }

    /// Nothing: somebody has asked, where it waits `until_asked`.
    async fn wait(
        &mut self,
        queue: &'s Semaphore,
        until_asked: bool,
    ) -> Result<Option<SemaphorePermit<'s>>, NoTurn> {
        let permit = queue.acquire();
        tokio::pin!(permit);
        loop {
            if self.demand.is_some_and(Demand::is_closed) {
                return Err(NoTurn::Closed);
            }
            self.look(until_asked)?;
            let look_ms = LOOK_MS_MAX.min(self.store.turns.ms_max).min(self.ms_max);
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
        match self.demand {
            Some(demand) if matters => demand.asked(Some(until)).await,
            Some(demand) => {
                // Either way it looks again.
                let _ = timeout_at(until, demand.closed()).await;
                false
            }
            None => {
                sleep_until(until).await;
                false
            }
        }
    }

    /// Whether to wait on. `until_asked`: nobody waits for it, and so it may take as long as turns of others end.
    fn look(&mut self, until_asked: bool) -> Result<(), NoTurn> {
        let turns = &self.store.turns;
        let ended = turns.ended();
        if ended != self.ended {
            (self.ended, self.ended_at) = (ended, Instant::now());
        }
        let of_turns = (self.ended_at, turns.ms_max);
        let of_all = (!until_asked).then_some((self.began, self.ms_max));
        for (since, ms) in std::iter::once(of_turns).chain(of_all) {
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
    use tokio::time::sleep;

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

        fn come(&self, number: usize, mut is_unasked: bool) -> (Arc<Demand>, JoinHandle<()>) {
            let demand = Arc::new(Demand::new(String::new(), 1_000, 1));
            let (its, store) = (Arc::clone(&demand), Arc::clone(&self.store));
            let turns = Arc::clone(&self.turns);
            let task = tokio::spawn(async move {
                let turn = turn(&its, &store, &mut is_unasked, TURN_MS_MAX)
                    .await
                    .unwrap();
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
        let other = turn(&demand, &crowd.store, &mut false, TURN_MS_MAX)
            .await
            .unwrap();
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
        let _other = turn(&demand, &crowd.store, &mut false, TURN_MS_MAX)
            .await
            .unwrap();
        for mut is_unasked in [true, false] {
            let demand = Arc::new(Demand::new(String::new(), 1_000, 1));
            let (its, store) = (Arc::clone(&demand), Arc::clone(&crowd.store));
            let waiting = tokio::spawn(async move {
                let turn = turn(&its, &store, &mut is_unasked, TURN_MS_MAX).await;
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
        let _other = turn(&demand, &crowd.store, &mut false, TURN_MS_MAX)
            .await
            .unwrap();
        let late = turn(&demand, &crowd.store, &mut false, TURN_MS_MAX).await;
        let error = match late {
            Err(NoTurn::Crowded(error)) => error,
            other => panic!("{other:?}"),
        };
        let failure = crowd.store.failure(&error);
        assert!(failure.to_string().contains("within 10 ms"), "{failure}");
        // Of the store nothing is known by that.
        assert_eq!(crowd.store.is_up(), None);
    }
    /// Takes one turn after the other, each for as long as that.
    fn others(store: &Arc<Store>, count: usize, turn_ms: u64) -> Vec<JoinHandle<()>> {
        let others = (0..count).map(|_| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let asking = store.turns.asking.acquire().await.unwrap();
                let _turn = store.turns.begin(asking, None);
                sleep(Duration::from_millis(turn_ms)).await;
            })
        });
        others.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn while_turns_of_others_end_a_refill_waits_longer_than_for_a_transaction() {
        let crowd = Crowd::new(10);
        let others = others(&crowd.store, 20, 5);
        yield_now().await;
        let demand = Demand::new(String::new(), 1_000, 1);
        let began = Instant::now();
        let its = turn(&demand, &crowd.store, &mut false, TURN_MS_MAX).await;
        assert!(its.is_ok(), "{its:?}");
        assert!(began.elapsed() >= Duration::from_millis(20 * 5));
        assert!(others.iter().all(JoinHandle::is_finished));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refill_that_nobody_has_asked_for_waits_as_long_as_turns_end() {
        let crowd = Crowd::new(1_000);
        // More than two minutes of turns, and nobody else comes next.
        let others = others(&crowd.store, 260, 500);
        yield_now().await;
        let others_place = crowd.store.turns.unasked.acquire().await.unwrap();
        let (demand, task) = crowd.come(0, true);
        sleep(Duration::from_millis(2 * TURN_MS_MAX)).await;
        assert!(!task.is_finished());
        // The minute of whoever asks begins now.
        demand.ask();
        task.await.unwrap();
        assert_eq!(*crowd.turns.lock().unwrap(), [0]);
        assert!(others.iter().all(JoinHandle::is_finished));
        drop(others_place);
    }

    #[tokio::test(start_paused = true)]
    async fn that_somebody_has_asked_is_said_also_where_there_was_no_turn() {
        let crowd = Crowd::new(10);
        let _other = crowd.store.turns.asking.acquire().await.unwrap();
        let _place = crowd.store.turns.unasked.acquire().await.unwrap();
        let demand = Demand::new(String::new(), 1_000, 1);
        for is_asked in [false, true] {
            if is_asked {
                demand.ask();
            }
            let mut is_unasked = true;
            let late = turn(&demand, &crowd.store, &mut is_unasked, TURN_MS_MAX).await;
            assert!(matches!(late, Err(NoTurn::Crowded(_))), "{late:?}");
            assert_eq!(is_unasked, !is_asked);
        }
    }
}
