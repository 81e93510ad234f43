//! What tags' and time words' slots have in common, and a slot while it belongs to one key.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use keywright_core::clock::VirtualClock;
use keywright_core::generation::{Generation, Word};

use crate::shmem::area::{Area, Array};
use crate::shmem::gate::Gate;
use crate::shmem::key::{TagKey, TimeKey};
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::time_slot::TimeSlot;

/// What tags' and time words' slots have in common.
pub trait Slot: Sync + Sized + 'static {
    /// What a slot belongs to.
    type Key: Copy + PartialEq + 'static;
    /// The refill flag.
    fn gate(&self) -> &Gate;
    /// Which owner is the present one.
    fn generation(&self) -> &Generation;
    /// The transaction that closes the slot: nothing more is issued of it once that has committed. 0 when none does.
    fn closed_by(&self) -> &AtomicU64;
    /// The one that drops what the slot belongs to, or gives it its ids elsewhere: once that has committed, the place is free for another key. What
    /// only changes goes on in its place. 0 when none does.
    fn dropped_by(&self) -> &AtomicU64;
    /// The one that drops the database, where it is noted by itself.
    fn database_closed_by(&self) -> Option<&AtomicU64>;
    /// Gives up all that may still be issued.
    fn drain(&self);
    /// What it belongs to, which the directory reads and writes under its lock.
    #[doc(hidden)]
    fn key(&self) -> &UnsafeCell<Self::Key>;
    #[doc(hidden)]
    fn parts(&self) -> Parts<'_>;
    #[doc(hidden)]
    fn array(area: &Area) -> Array<Self>;
}

/// What passing a slot on touches, beside its key.
pub struct Parts<'slot> {
    pub(super) clock: Option<&'slot UnsafeCell<VirtualClock>>,
    pub(super) words: [&'slot dyn Word; 2],
    pub(super) numbers: Vec<&'slot AtomicU64>,
    pub(super) moments: Vec<&'slot AtomicI64>,
    pub(super) flags: Vec<&'slot AtomicBool>,
}

impl Slot for TagSlot {
    type Key = TagKey;
    fn gate(&self) -> &Gate {
        &self.gate
    }
    fn generation(&self) -> &Generation {
        &self.generation
    }
    fn closed_by(&self) -> &AtomicU64 {
        &self.closed_by
    }
    fn dropped_by(&self) -> &AtomicU64 {
        &self.dropped_by
    }
    fn database_closed_by(&self) -> Option<&AtomicU64> {
        Some(&self.database_closed_by)
    }
    fn drain(&self) {
        self.word.drain();
        self.left.clear();
    }
    fn key(&self) -> &UnsafeCell<TagKey> {
        &self.key
    }
    fn parts(&self) -> Parts<'_> {
        Parts {
            clock: None,
            words: [&self.word, &self.word],
            numbers: [
                &self.refill_at,
                &self.closed_by,
                &self.dropped_by,
                &self.database_closed_by,
                &self.attempted_start,
                &self.attempted_end,
                &self.step,
                &self.last_size,
                &self.rate_since_boot_ms,
                &self.rate_ids,
                &self.last_refill_boot_ms,
                &self.refills,
                &self.waits,
                &self.wait_us,
            ]
            .into_iter()
            .chain(self.fed.numbers())
            .chain(self.left.numbers())
            .collect(),
            moments: vec![&self.last_refill_ms],
            flags: vec![&self.taken_over],
        }
    }
    fn array(area: &Area) -> Array<Self> {
        Array {
            base: area.tags,
            used: &area.directory.tags_used,
            room: area.directory.tags_max,
        }
    }
}

impl Slot for TimeSlot {
    type Key = TimeKey;
    fn gate(&self) -> &Gate {
        &self.gate
    }
    fn generation(&self) -> &Generation {
        &self.generation
    }
    fn closed_by(&self) -> &AtomicU64 {
        &self.closed_by
    }
    fn dropped_by(&self) -> &AtomicU64 {
        &self.dropped_by
    }
    fn database_closed_by(&self) -> Option<&AtomicU64> {
        // Whoever closes a time word holds the lock on the register.
        None
    }
    fn drain(&self) {
        self.main.word.drain();
        self.spare.word.drain();
    }
    fn key(&self) -> &UnsafeCell<TimeKey> {
        &self.key
    }
    fn parts(&self) -> Parts<'_> {
        let (main, spare) = (&self.main, &self.spare);
        Parts {
            clock: Some(&self.clock),
            words: [&main.word, &spare.word],
            numbers: [
                &main.extend_at,
                &spare.extend_at,
                &self.closed_by,
                &self.dropped_by,
                &self.left_by,
                &self.issued,
                &self.refills,
                &self.waits,
                &self.wait_us,
            ]
            .into_iter()
            .chain(self.fed.numbers())
            .collect(),
            moments: [
                &main.bound_ms,
                &main.attempted_ms,
                &spare.bound_ms,
                &spare.attempted_ms,
                &self.skew_ms,
                &self.highest_ms,
                &self.last_refill_ms,
            ]
            .into_iter()
            .chain(self.fed.moments())
            .collect(),
            flags: vec![&self.taken_over],
        }
    }
    fn array(area: &Area) -> Array<Self> {
        Array {
            base: area.words,
            used: &area.directory.words_used,
            room: area.directory.words_max,
        }
    }
}

/// A slot while it belongs to one key.
pub struct Attached<S: Slot> {
    /// The slot.
    pub slot: &'static S,
    generation: u64,
}

impl<S: Slot> Clone for Attached<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Slot> Copy for Attached<S> {}

impl<S: Slot> Attached<S> {
    /// The slot, with the owner that it has at this moment.
    pub fn now(slot: &'static S) -> Self {
        Self {
            slot,
            generation: slot.generation().get(),
        }
    }

    /// Whether the slot still belongs to the key it had. What was taken from it is the caller's only if this holds afterwards.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.slot.generation().is(self.generation)
    }

    /// Whether both are the same slot.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.slot, other.slot) && self.generation == other.generation
    }
}
