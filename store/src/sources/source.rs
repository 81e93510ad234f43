//! Where the keys of a rule come from, ready to use.

use std::sync::Arc;
use std::time::Duration;

use keywright_core::readable::Biz;
use keywright_core::{Cause, KeyBatch};
use thiserror::Error;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::seat::confirming::Confirmation;
use crate::sources::buckets::Buckets;
use crate::sources::demand::Demand;
use crate::sources::ordered::{Ordered, Unconfirmed};
use crate::sources::segment::SegmentSupply;
use crate::sources::stats::{Remaining, SourceStats};
use crate::sources::time::supply::TimeSupply;
use crate::sources::uuids::UuidMaker;
use crate::spec::{KeySpec, UuidForm, UuidVersion};
use crate::tag_order::TagFacts;

/// A source of keys. Cheap to clone, shared by all threads.
#[derive(Debug, Clone)]
pub struct Source(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: KeySpec,
    range_ids_max: u64,
    supply: Supply,
}

/// What keys come out of.
#[derive(Debug)]
pub(crate) enum Supply {
    Segment(Arc<SegmentSupply>),
    Time(Arc<TimeSupply>),
    Buckets(Buckets, Biz),
    Uuid(Arc<UuidMaker>, UuidVersion, UuidForm),
}

/// There is no key at this moment: [`Source::take`] waits for one, or tells why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no key at this moment")]
pub struct NotNow;

impl Source {
    pub(crate) fn new(spec: KeySpec, range_ids_max: u64, supply: Supply) -> Self {
        Self(Arc::new(Inner {
            spec,
            range_ids_max,
            supply,
        }))
    }

    /// What it draws from, where that is made of time.
    pub(crate) fn time_supply(&self) -> Option<Arc<TimeSupply>> {
        match &self.0.supply {
            Supply::Time(supply) => Some(Arc::clone(supply)),
            Supply::Segment(_) | Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => None,
        }
    }

    /// The asking and waiting of what it draws from, where that is its own.
    pub(crate) fn demand(&self) -> Option<&Demand> {
        match &self.0.supply {
            Supply::Segment(supply) => Some(&supply.demand),
            Supply::Time(supply) => Some(&supply.demand),
            Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => None,
        }
    }

    /// Somebody uses it from here on.
    pub(crate) fn want(&self) {
        if let Some(demand) = self.demand() {
            demand.want();
        }
    }

    /// What was asked for.
    pub fn spec(&self) -> &KeySpec {
        &self.0.spec
    }

    /// Takes `count` keys if they are there: no waiting, no lock, one compare-and-swap. `contiguous`: numbers at equal
    /// distances, as drivers compute them from the first; for snowflake that means of one tick.
    ///
    /// # Errors
    /// [`NotNow`].
    #[inline]
    pub fn try_take(&self, count: u64, contiguous: bool) -> Result<KeyBatch, NotNow> {
        if count == 0 || count > self.0.range_ids_max {
            return Err(NotNow);
        }
        let keys = match &self.0.supply {
            Supply::Segment(supply) => supply.try_take(count, contiguous),
            Supply::Time(supply) => self.try_time(supply, count, contiguous),
            Supply::Buckets(buckets, biz) => buckets.try_take(count, biz),
            Supply::Uuid(maker, version, form) => Some(maker.make(*version, *form, count)),
        };
        keys.ok_or(NotNow)
    }

    fn try_time(&self, supply: &TimeSupply, count: u64, contiguous: bool) -> Option<KeyBatch> {
        match &self.0.spec {
            KeySpec::Readable(biz) => supply.try_readables(count, biz),
            KeySpec::Snowflake
            | KeySpec::Segment(_)
            | KeySpec::Stride(_)
            | KeySpec::Uuid {
                version: _,
                form: _,
            } => supply.try_snowflakes(count, contiguous),
        }
    }

    /// As [`Source::try_take`], and waits for a refill up to `wait_ms_max`. May be dropped at any moment: keys that were
    /// taken and not delivered are lost, nothing else.
    ///
    /// # Errors
    /// [`Failure`] says why there is no key.
    pub async fn take(&self, count: u64, contiguous: bool) -> Result<KeyBatch, Failure> {
        self.check(count)?;
        match &self.0.supply {
            Supply::Segment(supply) => supply.take(count, contiguous).await,
            Supply::Time(supply) => {
                let in_tick = contiguous && self.0.spec == KeySpec::Snowflake;
                supply
                    .take(count, in_tick, || self.try_time(supply, count, contiguous))
                    .await
            }
            Supply::Buckets(buckets, biz) => buckets.take(count, biz).await,
            Supply::Uuid(maker, version, form) => Ok(maker.make(*version, *form, count)),
        }
    }

    /// Whether so many keys may be had at once.
    fn check(&self, count: u64) -> Result<(), Failure> {
        let most = self.0.range_ids_max;
        if (1..=most).contains(&count) {
            return Ok(());
        }
        let failure = Failure::new(
            Cause::ArgumentOutOfRange,
            format!("one statement may have 1 to {most} keys, not {count}"),
        );
        Err(failure.hint("split the statement, or raise range_ids_max"))
    }

    /// So many keys of an ordered tag, if they are there. The request for them must have been read before.
    pub fn try_ordered(&self, count: u64) -> Ordered<KeyBatch> {
        if count == 0 || count > self.0.range_ids_max {
            return Ordered::Wait;
        }
        match &self.0.supply {
            Supply::Segment(supply) => supply.try_ordered(count),
            Supply::Time(_) | Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => Ordered::Distinct,
        }
    }

    /// The same, and waits as [`Source::take`] does; also until it is known who issues them.
    ///
    /// # Errors
    /// [`Failure`] says why there is no key.
    pub async fn take_ordered(&self, count: u64) -> Result<Ordered<KeyBatch>, Failure> {
        self.check(count)?;
        match &self.0.supply {
            Supply::Segment(supply) => supply.take_ordered(count).await,
            Supply::Time(_) | Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => {
                Ok(Ordered::Distinct)
            }
        }
    }

    /// The last key of an ordered tag that was issued, by whichever program; 0: none can have been.
    pub fn try_last_ordered(&self) -> Ordered<u64> {
        match &self.0.supply {
            Supply::Segment(supply) => supply.try_last_ordered(),
            Supply::Time(_) | Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => Ordered::Distinct,
        }
    }

    /// The same, and waits.
    ///
    /// # Errors
    /// [`Failure`] says why nobody knows.
    pub async fn last_ordered(&self) -> Result<Ordered<u64>, Failure> {
        match &self.0.supply {
            Supply::Segment(supply) => supply.last_ordered().await,
            Supply::Time(_) | Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => {
                Ok(Ordered::Distinct)
            }
        }
    }

    /// What is known of the tag whose numbers it gives; nothing where it gives no tag's.
    pub fn tag_facts(&self) -> Option<TagFacts> {
        match &self.0.supply {
            Supply::Segment(supply) => Some(supply.facts()),
            Supply::Time(_) | Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => None,
        }
    }

    /// Waits until what was taken of a strict tag may be told, or was given up; until `wait_ms_max` is over since the request came. All that was
    /// read together can wait together: the request for each must have been read, and each taken, before this is called.
    ///
    /// # Errors
    /// [`Failure`] says why nobody knows. It is given up, too.
    pub async fn confirm(
        &self,
        unconfirmed: Unconfirmed,
        since: Instant,
    ) -> Result<Confirmation, Failure> {
        match &self.0.supply {
            Supply::Segment(supply) => {
                let deadline = since + Duration::from_millis(supply.demand.wait_ms_max());
                supply.confirm(unconfirmed, deadline).await
            }
            Supply::Time(_) | Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => {
                Ok(Confirmation::GivenUp)
            }
        }
    }

    /// Why nothing is told of its keys where no order can be kept; nothing: it is not ordered, or that is not known yet.
    pub fn order_refusal(&self) -> Option<Failure> {
        match &self.0.supply {
            Supply::Segment(supply) => supply.order_refusal(),
            Supply::Time(_) | Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => None,
        }
    }

    /// Why it is not known who issues its keys, which are ordered, where that does not pass by itself.
    pub fn order_trouble(&self) -> Option<Failure> {
        match &self.0.supply {
            Supply::Segment(supply) => supply.order_trouble(),
            Supply::Time(_) | Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => None,
        }
    }

    pub(crate) fn stats(&self) -> Option<SourceStats> {
        match &self.0.supply {
            Supply::Segment(supply) => {
                let left = Remaining::Keys(supply.remaining());
                Some(SourceStats {
                    is_standby: supply.is_standby(),
                    ..SourceStats::of(&supply.demand, left, None)
                })
            }
            Supply::Time(supply) => Some(SourceStats::of_time(supply)),
            Supply::Buckets(_, _) | Supply::Uuid(_, _, _) => None,
        }
    }

    /// Whether it has no keys, and cannot reserve, as far as is known without asking the store: [`SourceStats::gives_nothing`], of all that it draws from.
    pub fn gives_nothing(&self) -> bool {
        match &self.0.supply {
            Supply::Buckets(buckets, _) => buckets.give_nothing(),
            Supply::Segment(_) | Supply::Time(_) | Supply::Uuid(_, _, _) => {
                self.stats().is_some_and(|its| its.gives_nothing())
            }
        }
    }
}
