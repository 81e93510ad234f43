//! What the settings of a store bound.

use keywright_core::Step;

use super::problems::Problems;
use super::raw::RawStoreSettings;

/// What is bounded, and by how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) connections_max: usize,
    pub(crate) store_ms_max: u64,
    pub(crate) wait_ms_max: u64,
    pub(crate) waiters_max: u32,
    pub(crate) backoff_ms_min: u64,
    pub(crate) backoff_ms_max: u64,
    pub(crate) range_ids_max: u64,
}

/// As they are written.
pub(super) fn limits(store: &RawStoreSettings) -> Limits {
    Limits {
        connections_max: usize::try_from(store.connections_max).unwrap_or(1),
        store_ms_max: store.store_ms_max,
        wait_ms_max: store.wait_ms_max,
        waiters_max: store.waiters_max,
        backoff_ms_min: store.backoff_ms_min,
        backoff_ms_max: store.backoff_ms_max,
        range_ids_max: store.range_ids_max,
    }
}

/// Tells what is out of bounds, of the defaults of tags too.
pub(super) fn check_limits(store: &RawStoreSettings, problems: &mut Problems) {
    const HOUR_MS: u64 = 3_600_000;
    problems.within("store.connections_max", store.connections_max, 1, 64);
    problems.within("store.store_ms_max", store.store_ms_max, 10, HOUR_MS);
    problems.within("store.wait_ms_max", store.wait_ms_max, 1, HOUR_MS);
    problems.within("store.waiters_max", store.waiters_max, 1, 1_000_000);
    problems.within("store.backoff_ms_min", store.backoff_ms_min, 1, HOUR_MS);
    problems.within(
        "store.backoff_ms_max",
        store.backoff_ms_max,
        store.backoff_ms_min,
        HOUR_MS,
    );
    problems.within("store.range_ids_max", store.range_ids_max, 1, 1_000_000_000);
    problems.within("store.refill_percent", store.refill_percent, 1, 99);
    problems.within("store.step_max", store.step_max, 1, Step::MAX);
    problems.within("store.cover_ms", store.cover_ms, 1, 24 * HOUR_MS);
}
