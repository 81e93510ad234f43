//! How long things took, by classes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the classes, microseconds; the last class has none.
pub(super) const BOUNDS_US: [u64; 12] = [
    10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000,
];
/// Classes, with the one that has no upper bound.
const CLASSES: usize = BOUNDS_US.len() + 1;

/// How long something took, each time. All threads add to it.
#[derive(Debug, Default)]
pub(super) struct Latency {
    classes: [AtomicU64; CLASSES],
    sum_ns: AtomicU64,
}

impl Latency {
    /// So many took so long each.
    pub(super) fn add(&self, count: u64, each: Duration) {
        let ns = u64::try_from(each.as_nanos()).unwrap_or(u64::MAX);
        let is_within = |bound_us: &u64| ns <= bound_us.saturating_mul(1_000);
        let class = BOUNDS_US.iter().position(is_within);
        if let Some(class) = self.classes.get(class.unwrap_or(CLASSES - 1)) {
            class.fetch_add(count, Ordering::Relaxed);
        }
        self.sum_ns
            .fetch_add(ns.saturating_mul(count), Ordering::Relaxed);
    }

    /// How many there are in each class.
    pub(super) fn classes(&self) -> [u64; CLASSES] {
        std::array::from_fn(|at| {
            let class = self.classes.get(at);
            class.map_or(0, |class| class.load(Ordering::Relaxed))
        })
    }

    /// All of it together.
    pub(super) fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BOUNDS_US, Latency};

    #[test]
    fn each_is_in_the_first_class_that_holds_it() {
        let latency = Latency::default();
        for us in [0, 10, 11, 5_000_000, 5_000_001, u64::MAX / 1_000] {
            latency.add(2, Duration::from_micros(us));
        }
        let mut expected = [0; BOUNDS_US.len() + 1];
        (expected[0], expected[1], expected[11], expected[12]) = (4, 2, 2, 4);
        assert_eq!(latency.classes(), expected);
        let latency = Latency::default();
        latency.add(3, Duration::from_millis(2));
        assert_eq!(latency.sum(), Duration::from_millis(6));
    }
}
