//! Counts of one source, for the statistics.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// Upper bounds of the classes that waits are counted in, microseconds; the last class has none.
pub const WAIT_BOUNDS_US: [u64; 9] = [
    500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000,
];

/// Counts for the statistics.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) issued: AtomicU64,
    pub(crate) refills: AtomicU64,
    pub(crate) refill_failures: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) wait_us: AtomicU64,
    /// Waits that have ended, by how long they were.
    pub(crate) waited: [AtomicU64; WAIT_BOUNDS_US.len() + 1],
    pub(crate) clock_steps: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) rate_per_s: AtomicU64,
    pub(crate) step: AtomicU64,
    /// Not set before the first reservation.
    tag_left: OnceLock<AtomicU64>,
}

impl Figures {
    /// So many ids of the tag are not reserved yet.
    pub(crate) fn set_tag_left(&self, left: u64) {
        let known = self.tag_left.get_or_init(|| AtomicU64::new(left));
        known.store(left, Ordering::Relaxed);
    }

    /// How many were not, the last time that it was known.
    pub(crate) fn tag_left(&self) -> Option<u64> {
        let left = self.tag_left.get()?;
        Some(left.load(Ordering::Relaxed))
    }

    /// Somebody waits from now on.
    pub(super) fn begin_wait(&self) -> CountedWait<'_> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        CountedWait {
            figures: self,
            began: Instant::now(),
        }
    }
}

/// A wait, whose time is counted when it is over, also when the waiting statement is dropped.
pub(super) struct CountedWait<'a> {
    figures: &'a Figures,
    began: Instant,
}

impl CountedWait<'_> {
    /// Since when it lasts.
    pub(super) fn began(&self) -> Instant {
        self.began
    }
}

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        let waited_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.figures.wait_us.fetch_add(waited_us, Ordering::Relaxed);
        let class = WAIT_BOUNDS_US.partition_point(|bound| *bound < waited_us);
        if let Some(count) = self.figures.waited.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::super::Demand;
    use super::*;

    #[tokio::test]
    async fn a_wait_that_is_given_up_is_counted_as_one_that_has_ended() {
        let demand = Demand::new("segment:orders".to_owned(), 60_000, 10);
        let taken = timeout(Duration::from_millis(1), demand.take(1, || None::<u64>));
        assert!(taken.await.is_err());
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let figures = &demand.figures;
        assert_eq!(figures.waited.iter().map(read).sum::<u64>(), 1);
        assert_eq!((read(&figures.waits), read(&figures.refused)), (1, 0));
        assert!(read(&figures.wait_us) > 0);
    }
}
