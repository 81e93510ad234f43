//! Keys of an ordered tag out of its supply: at once, or when it is known who gives them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use keywright_core::{Cause, KeyBatch};
use tokio::time::{Instant, sleep, sleep_until};

use super::SegmentSupply;
use crate::failure::Failure;
use crate::order::ranges::OrderedRanges;
use crate::seat::Where;
use crate::seat::confirming::Confirmation;
use crate::sources::ordered::{Ordered, Unconfirmed};
use crate::tag_order::TagOrder;

/// How often those who wait look whether a lease was renewed whose time was up.
const OVERDUE_LOOK_MS: u64 = 20;

impl SegmentSupply {
    /// The request was read before: the clock is looked at here, and nothing is taken when the program's time is up by then.
    fn ordered_now<T>(
        &self,
        take: impl FnOnce(&mut OrderedRanges, u64) -> Option<T>,
    ) -> Ordered<T> {
        let side = &self.ordered;
        let is_strict = match side.order() {
            Some(TagOrder::Monotonic) => false,
            Some(TagOrder::Strict) => true,
            Some(TagOrder::Distinct) => return Ordered::Distinct,
            None => return Ordered::Wait,
        };
        let tenure = match side.seat.is_where() {
            Where::Here(tenure) => tenure,
            Where::Elsewhere(address) => return Ordered::Elsewhere(address),
            Where::BySuccessor => return Ordered::BySuccessor,
            Where::Nowhere => return Ordered::Wait,
        };
        let mut ranges = side.ranges();
        let is_allowed = side
            .seat
            .now_ms()
            .is_some_and(|now_ms| tenure.allows(tenure.epoch, now_ms));
        if !is_allowed {
            return Ordered::Wait;
        }
        let taken = take(&mut ranges, tenure.epoch);
        let is_low = ranges.is_low(tenure.epoch);
        drop(ranges);
        if is_low {
            self.demand.ask();
        }
        let epoch = tenure.epoch;
        match taken {
            None => Ordered::Wait,
            Some(taken) if is_strict => {
                let group = side.group().number();
                Ordered::Unconfirmed(taken, Unconfirmed { group, epoch })
            }
            Some(taken) => Ordered::Have(taken),
        }
    }

    pub(crate) fn try_ordered(&self, count: u64) -> Ordered<KeyBatch> {
        let taken = self.ordered_now(|ranges, epoch| ranges.take(epoch, count));
        taken.map(|first| {
            let issued = &self.demand.figures.issued;
            issued.fetch_add(count, Ordering::Relaxed);
            KeyBatch::Numbers {
                first,
                spacing: 1,
                count,
            }
        })
    }

    pub(crate) fn try_last_ordered(&self) -> Ordered<u64> {
        self.ordered_now(|ranges, epoch| ranges.last(epoch))
    }

    pub(crate) async fn take_ordered(&self, count: u64) -> Result<Ordered<KeyBatch>, Failure> {
        self.told(count, || self.try_ordered(count)).await
    }

    pub(crate) async fn last_ordered(&self) -> Result<Ordered<u64>, Failure> {
        self.told(1, || self.try_last_ordered()).await
    }

    /// Waits until a confirmation stands behind what was taken of a strict tag, with a request that was read before.
    pub(crate) async fn confirm(
        &self,
        unconfirmed: Unconfirmed,
        deadline: Instant,
    ) -> Result<Confirmation, Failure> {
        let confirming = &self.ordered.seat.confirming;
        confirming.confirm(unconfirmed.epoch, deadline).await
    }

    /// Why nobody is known who issues them, where that does not pass by itself.
    pub(crate) fn order_trouble(&self) -> Option<Failure> {
        match self.ordered.is_ordered() {
            true => self.ordered.seat.refusal(),
            false => None,
        }
    }

    /// What may be told: confirmed, where the tag is strict. What is given up is asked for again while there is time.
    async fn told<T>(
        &self,
        need: u64,
        attempt: impl Fn() -> Ordered<T>,
    ) -> Result<Ordered<T>, Failure> {
        let deadline = Instant::now() + Duration::from_millis(self.demand.wait_ms_max());
        loop {
            let (what, unconfirmed) = match self.wait_ordered(need, deadline, &attempt).await? {
                Ordered::Unconfirmed(what, unconfirmed) => (what, unconfirmed),
                found => return Ok(found),
            };
            match self.confirm(unconfirmed, deadline).await? {
                Confirmation::Stands => return Ok(Ordered::Have(what)),
                Confirmation::GivenUp => {}
            }
        }
    }

    /// Waits for a refill while this program is active, and else until it is known which one is.
    async fn wait_ordered<T>(
        &self,
        need: u64,
        deadline: Instant,
        attempt: &impl Fn() -> Ordered<T>,
    ) -> Result<Ordered<T>, Failure> {
        let wait_ms_max = self.demand.wait_ms_max();
        let side = &self.ordered;
        let mut changes = side.seat.changes();
        // The refill task finds out who gives them; or it is the store that is waited for.
        let refills =
            || side.order().is_none() || (side.seat.right().is_some() && !side.seat.is_overdue());
        loop {
            changes.borrow_and_update();
            match attempt() {
                Ordered::Wait => {}
                found => return Ok(found),
            }
            if let Some(refusal) = self.order_trouble() {
                return Err(refusal);
            }
            let refilled = async {
                if !refills() {
                    return std::future::pending().await;
                }
                self.demand
                    .take(need, || match attempt() {
                        Ordered::Wait if refills() => None,
                        found => Some(found),
                    })
                    .await
            };
            let changed = async {
                // The sender lives as long as the supply.
                let _ = changes.changed().await;
            };
            let overdue = async {
                match side.seat.is_overdue() {
                    true => sleep(Duration::from_millis(OVERDUE_LOOK_MS)).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                refilled = refilled => match refilled? {
                    Ordered::Wait => {}
                    found => return Ok(found),
                },
                () = changed => {}
                () = overdue => {}
                () = sleep_until(deadline) => return Err(self.nobody(wait_ms_max)),
            }
        }
    }

    fn nobody(&self, waited_ms: u64) -> Failure {
        if let Some(failure) = self.demand.last_failure() {
            return failure;
        }
        let failure = Failure::new(
            Cause::NobodyActive,
            format!("no program was found within {waited_ms} ms that issues keys of ordered tags"),
        );
        failure.hint("one takes over when the lease of the last has run out; the log says what is in the way")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use keywright_core::residue::Residue;
    use keywright_core::slot::SlotGroups;
    use keywright_core::{Readings, Tag};

    use super::*;
    use crate::clock::Clock;
    use crate::order::{Candidate, Holder, LeaseRow, Renewal, Written};
    use crate::seat::{OrderSettings, Seat, Standing};
    use crate::settings::Limits;

    const LIMITS: Limits = Limits {
        connections_max: 1,
        store_ms_max: 1_000,
        wait_ms_max: 300,
        waiters_max: 10,
        backoff_ms_min: 1,
        backoff_ms_max: 1,
        range_ids_max: 1_000,
    };

    #[derive(Debug)]
    struct At(u64);

    impl Clock for At {
        fn wall_ms(&self) -> i64 {
            0
        }

        fn readings(&self) -> Readings {
            Readings {
                wall_ms: 0,
                boot_ms: self.0,
            }
        }
    }

    /// Of a program that took the lease at 0, for 90 ms.
    fn active(now_ms: u64) -> SegmentSupply {
        let mut candidate = Candidate::new(100);
        let row = LeaseRow {
            renewal: Renewal {
                epoch: 0,
                number: 0,
                server: "s".to_owned(),
            },
            holder: Holder::Nobody,
        };
        candidate.has_read(&row, 0);
        candidate.took_over(1, Written::Yes, 0, 0);
        let seat = Seat::new(Arc::new(At(now_ms)), SlotGroups::ONE.of(b"orders"));
        seat.state().standing = Some(Standing {
            settings: OrderSettings {
                address: "one:1".to_owned(),
                ttl_ms: 100,
            },
            owner: "one".into(),
            candidate,
            holder: None,
            began_ms: 0,
            is_taking: false,
            divided: None,
            leaves: false,
        });
        let tag = (Tag::parse("orders").unwrap(), Residue::ALL);
        let name = "segment:orders".to_owned();
        let supply = SegmentSupply::new(name, tag, &LIMITS, Arc::new(seat));
        supply.ordered.learn(TagOrder::Monotonic);
        supply.ordered.publish(1, (1, 1_001), 20);
        supply
    }

    /// While a renewal is under way that hangs, those who wait and the task that refills do not wake each other without end.
    #[tokio::test]
    async fn time_that_is_up_is_waited_for_in_peace() {
        let supply = Arc::new(active(1_000));
        let rounds = Arc::new(AtomicU64::new(0));
        let (its, counted) = (Arc::clone(&supply), Arc::clone(&rounds));
        // What the task does that refills: there is enough for whoever waits.
        let refilling = tokio::spawn(async move {
            while its.demand.asked(None).await {
                counted.fetch_add(1, Ordering::Relaxed);
                assert!(its.ordered.is_full(1));
                its.demand.succeeded();
                tokio::task::yield_now().await;
            }
        });
        let taken = supply.take_ordered(1).await;
        assert_eq!(taken.unwrap_err().cause(), Cause::NobodyActive);
        refilling.abort();
        let rounds = rounds.load(Ordering::Relaxed);
        assert!(rounds < 50, "woken {rounds} times in 300 ms");
        let in_time = active(50).take_ordered(1).await.unwrap();
        assert!(matches!(in_time, Ordered::Have(_)), "{in_time:?}");
    }
}
