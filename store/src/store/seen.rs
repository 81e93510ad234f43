//! How far ids and leases had come by what this program has seen: of a store that says less, it is known that it was put back.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use keywright_core::Tag;

use super::Store;
use super::bounds::Bounds;
use crate::lease::fed::Handed;

impl Store {
    /// The largest bound of a tag that this program has seen.
    pub(crate) fn seen(&self, tag: &Tag) -> u64 {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(tag).copied().unwrap_or(0)
    }

    /// That was committed.
    pub(crate) fn note_seen(&self, tag: &Tag, bound: u64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen.entry(tag.clone()).or_default();
        *known = bound.max(*known);
    }

    /// The largest bound of a tag of this key space that this program, or one before it on this machine, has seen.
    pub(crate) fn seen_of(&self, tag: &Tag, key_space: &str) -> u64 {
        self.bound_of(tag, key_space).max(self.seen(tag))
    }

    /// The same, but for what is not known to be of this key space.
    pub(super) fn bound_of(&self, tag: &Tag, key_space: &str) -> u64 {
        let bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds.of(tag, key_space)
    }

    pub(super) fn has_bounds(&self) -> bool {
        let bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        !bounds.is_empty()
    }

    pub(super) fn has_leased(&self) -> bool {
        self.has_leased.load(Ordering::Relaxed)
    }

    /// A lease of a worker id was taken: nobody else may have it while this program issues by it.
    pub(crate) fn note_lease(&self) {
        self.has_leased.store(true, Ordering::Relaxed);
    }

    /// All bounds, with their key spaces.
    pub(super) fn bounds(&self) -> Bounds {
        let bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds.clone()
    }

    /// That was committed, or a file of this machine says so.
    pub(crate) fn note_bound(&self, tag: &Tag, (key_space, bound): (String, u64)) {
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds.note(tag, (key_space, bound));
    }

    /// A server that is fed was handed ids of a tag below the bound, of the key space that has this mark.
    pub(crate) fn note_fed(&self, tag: &Tag, (mark, bound): (u64, u64)) {
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds.note_fed(tag, (mark, bound));
    }

    /// What databases that are fed were handed, as far as this program has seen, each with the mark of its key space.
    pub(crate) fn handed(&self) -> Vec<(u64, Handed)> {
        let handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        let all = handed.iter();
        all.map(|((key_space, worker_id), until_ms)| {
            let handed = Handed {
                worker_id: *worker_id,
                until_ms: *until_ms,
            };
            (*key_space, handed)
        })
        .collect()
    }

    pub(super) fn has_handed(&self) -> bool {
        let handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        !handed.is_empty()
    }

    /// That was handed over, or may be.
    pub(crate) fn note_handed(&self, key_space: u64, seen: Handed) {
        let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        let known = handed.entry((key_space, seen.worker_id));
        let known = known.or_insert(seen.until_ms);
        *known = seen.until_ms.max(*known);
    }
}
