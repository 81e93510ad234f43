//! Figures of a source, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sources::demand::{Demand, WAIT_BOUNDS_US};
use crate::sources::time::supply::TimeSupply;

/// What a source may still issue before its next reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remaining {
    /// Keys left in memory.
    Keys(u64),
    /// Milliseconds left below the bound of keys that are made of time.
    Ms(u64),
}

impl Remaining {
    /// Whether nothing is left.
    #[must_use]
    pub fn is_none(self) -> bool {
        match self {
            Remaining::Keys(left) | Remaining::Ms(left) => left == 0,
        }
    }
}

/// Figures of what one or several sources draw from; counters since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStats {
    /// `segment:orders`, `stride:orders 1/3`, `snowflake`, `readable`.
    pub name: String,
    /// The name of its store, where that has one.
    pub store: String,
    /// Keys issued.
    pub issued: u64,
    /// Its tag is ordered, and this program is not the one that issues its keys.
    pub is_standby: bool,
    /// What it may still issue.
    pub remaining: Remaining,
    /// Keys of the last reservation; 0 for `snowflake` and `readable`.
    pub step: u64,
    /// Ids of its tag, up to the largest, that were not reserved yet at the last reservation; `None`: there was none, it has no tag, or its store does not
    /// say where the tag ends.
    pub tag_left: Option<u64>,
    /// Reservations made, leases taken and bounds extended.
    pub refills: u64,
    /// Attempts that failed.
    pub refill_failures: u64,
    /// Statements that had to wait.
    pub waits: u64,
    /// How long in total, microseconds.
    pub wait_us: u64,
    /// Waits that have ended, by [`WAIT_BOUNDS_US`].
    pub waited: [u64; WAIT_BOUNDS_US.len() + 1],
    /// How often the clock was set, forward or back, as seen by sources whose keys are made of time.
    pub clock_steps: u64,
    /// Statements that got no key.
    pub refused: u64,
    /// Keys per second, while the last reservation but one was used up.
    pub rate_per_s: u64,
    /// The worker id that is leased; the bucket for `readable`.
    pub worker_id: Option<u32>,
    /// What keeps it from refilling now; nothing where nobody uses it.
    pub trouble: Option<String>,
}

impl SourceStats {
    pub(crate) fn of(demand: &Demand, remaining: Remaining, worker_id: Option<u32>) -> Self {
        let figures = &demand.figures;
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        Self {
            name: demand.name().to_owned(),
            store: String::new(),
            issued: read(&figures.issued),
            is_standby: false,
            remaining,
            step: read(&figures.step),
            tag_left: figures.tag_left(),
            refills: read(&figures.refills),
            refill_failures: read(&figures.refill_failures),
            waits: read(&figures.waits),
            wait_us: read(&figures.wait_us),
            waited: figures.waited.each_ref().map(read),
            clock_steps: read(&figures.clock_steps),
            refused: read(&figures.refused),
            rate_per_s: read(&figures.rate_per_s),
            worker_id,
            trouble: demand
                .failure_of_wanted()
                .map(|failure| failure.to_string()),
        }
    }

    /// Those of a source whose keys are made of time.
    pub(crate) fn of_time(supply: &TimeSupply) -> Self {
        let left = Remaining::Ms(supply.remaining_ms());
        Self::of(&supply.demand, left, supply.worker_id())
    }

    /// Whether it has no keys, and cannot reserve. Those of an ordered tag are the business of the program that issues them.
    #[must_use]
    pub fn gives_nothing(&self) -> bool {
        self.remaining.is_none() && !self.is_standby && self.trouble.is_some()
    }
}
