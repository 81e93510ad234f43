//! The slot of one snowflake or readable word.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use keywright_core::clock::VirtualClock;
use keywright_core::generation::Generation;
use keywright_core::snowflake::SnowflakeWord;

use crate::shmem::fed_time::FedTime;
use crate::shmem::gate::{Gate, Held};
use crate::shmem::key::TimeKey;

/// No sequence of ours has this value.
const NO_BOUND_MS: i64 = -1;

/// One of the two words of a worker: the normal one or the spare.
#[repr(C)]
pub struct TimeTrack {
    /// Next state and bound.
    pub word: SnowflakeWord,
    /// States from here on ask for the next extension.
    pub extend_at: AtomicU64,
    /// The durable bound, unix milliseconds; 0 before takeover.
    pub bound_ms: AtomicI64,
    /// The bound that was written last, durable or not: one that is found again is our own unfinished work.
    pub attempted_ms: AtomicI64,
}

/// The state of one worker id under one layout, or of one database's readable ids.
#[repr(C, align(128))]
pub struct TimeSlot {
    /// The normal word.
    pub main: TimeTrack,
    pub(super) generation: Generation,
    /// What the wall clock reads too much, milliseconds: subtracted before use.
    pub skew_ms: AtomicI64,
    /// Highest reading of the wall clock, less its skew, that ids were issued with under a policy other than carry.
    pub highest_ms: AtomicI64,
    /// Set once the bound has been taken over since the server started.
    pub taken_over: AtomicBool,
    /// The transaction that drops what the slot belongs to, or lowers its bound; 0 when none does.
    pub(super) closed_by: AtomicU64,
    /// The one that drops it; 0 when none does.
    pub(super) dropped_by: AtomicU64,
    /// The transaction that gives the number up, or takes it from the database; 0: none does, or who issues has looked anew since.
    pub left_by: AtomicU64,
    /// The spare worker's word.
    pub spare: TimeTrack,
    pub(super) key: UnsafeCell<TimeKey>,
    /// What a word has that is fed.
    pub fed: FedTime,
    /// The refill flag.
    pub gate: Gate,
    pub(super) clock: UnsafeCell<VirtualClock>,
    /// Ids issued since the server started, added at the end of each transaction.
    pub issued: AtomicU64,
    /// Extensions of the bound.
    pub refills: AtomicU64,
    /// When the last one was, unix milliseconds of the virtual clock.
    pub last_refill_ms: AtomicI64,
    /// Calls that had to wait.
    pub waits: AtomicU64,
    /// Their waiting time, microseconds.
    pub wait_us: AtomicU64,
}

/// See [`TimeSlot::kept`].
pub struct Kept {
    numbers: [u64; 8],
    floor_ms: i64,
}

// SAFETY: as for TagSlot; and `clock` is reached only by the holder of `gate`, through `with_clock` or to pass the slot on, or before anybody has seen the
// slot.
unsafe impl Sync for TimeSlot {}

impl TimeSlot {
    /// Has the word taken over anew before it issues again: no bound that is found will be the one it wrote.
    pub fn forget_bounds(&self) {
        for track in [&self.main, &self.spare] {
            track.bound_ms.store(NO_BOUND_MS, Ordering::Relaxed);
            track.attempted_ms.store(NO_BOUND_MS, Ordering::Relaxed);
        }
    }

    /// Runs `work` on the slot's clock. `_held` shows that the caller holds the slot's gate.
    pub fn with_clock<T>(&self, _held: &Held<'_>, work: impl FnOnce(&mut VirtualClock) -> T) -> T {
        // SAFETY: the gate admits one backend at a time, the borrow ends with `work`, and `work` gets no way to
        // reach the clock a second time.
        work(unsafe { &mut *self.clock.get() })
    }

    /// What a slot keeps when its word goes over to another worker id of the same database.
    pub fn kept(&self) -> Kept {
        let numbers = self.kept_numbers();
        Kept {
            numbers: numbers.map(|number| number.load(Ordering::Relaxed)),
            floor_ms: self.fed.floor_ms.load(Ordering::Relaxed),
        }
    }

    /// Has it again. The caller holds the gate since it was kept.
    pub fn keep(&self, kept: &Kept, _held: &Held<'_>) {
        for (number, value) in self.kept_numbers().into_iter().zip(kept.numbers) {
            number.store(value, Ordering::Relaxed);
        }
        self.fed.floor_ms.store(kept.floor_ms, Ordering::Relaxed);
    }

    fn kept_numbers(&self) -> [&AtomicU64; 8] {
        [
            &self.fed.key_space,
            &self.fed.kept_key_space,
            &self.fed.floor_worker,
            &self.fed.taken,
            &self.issued,
            &self.refills,
            &self.waits,
            &self.wait_us,
        ]
    }

    /// The word in use and its bound: the spare one after a step back under policy spare_worker.
    pub fn track(&self, spare: bool) -> &TimeTrack {
        if spare { &self.spare } else { &self.main }
    }
}
