//! The slot of one tag.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use keywright_core::clock::Readings;
use keywright_core::generation::Generation;
use keywright_core::segment::SegmentWord;

use crate::shmem::gate::{Gate, Held};
use crate::shmem::key::TagKey;

/// A range that was handed over.
#[derive(Clone, Copy)]
pub struct HandedOver {
    /// First id.
    pub start: u64,
    /// First id after it.
    pub end: u64,
    /// The key space that it is of.
    pub key_space: u64,
}

/// What a tag that is fed wants and was handed over. Changed by the holder of the slot's gate.
#[derive(Default)]
#[repr(C)]
pub struct Fed {
    next_start: AtomicU64,
    /// 0: there is none.
    next_end: AtomicU64,
    next_key_space: AtomicU64,
    /// The key space that the database knows the tag by; 0: not known.
    pub key_space: AtomicU64,
    /// The one that is noted on disk and on the standbys, as this life of the memory knows; 0: none is. One that is only read may be so by an attempt that
    /// did not wait.
    pub kept_key_space: AtomicU64,
    /// First id above all that was handed over for this incarnation, or issued before it as far as the database knows.
    pub floor: AtomicU64,
    /// Ids that are wanted; 0: none are.
    pub wanted: AtomicU64,
    /// When a program was told so, boot time in milliseconds; 0: none was.
    pub told_boot_ms: AtomicU64,
}

impl Fed {
    /// The range that nobody uses yet.
    pub fn next(&self) -> Option<HandedOver> {
        let end = self.next_end.load(Ordering::Acquire);
        (end > 0).then(|| HandedOver {
            start: self.next_start.load(Ordering::Relaxed),
            end,
            key_space: self.next_key_space.load(Ordering::Relaxed),
        })
    }

    /// Keeps a range until somebody needs it.
    pub fn keep(&self, range: HandedOver, _held: &Held<'_>) {
        self.next_start.store(range.start, Ordering::Relaxed);
        self.next_key_space
            .store(range.key_space, Ordering::Relaxed);
        // Whoever reads it knows the key space.
        self.floor.fetch_max(range.end, Ordering::Release);
        self.wanted.store(0, Ordering::Relaxed);
        self.told_boot_ms.store(0, Ordering::Relaxed);
        self.next_end.store(range.end, Ordering::Release);
    }

    /// The range is in use, or worthless.
    pub fn clear(&self, _held: &Held<'_>) {
        self.next_end.store(0, Ordering::Release);
    }

    /// The largest id that was handed over, or issued before as far as the database knows, and its key space: the one that the database knows, or that of
    /// what it uses next; 0: not known. `None`: no such id is known.
    pub fn handed(&self) -> Option<(u64, u64)> {
        let floor = self.floor.load(Ordering::Acquire);
        let key_space = match self.key_space.load(Ordering::Relaxed) {
            0 => self.next_key_space.load(Ordering::Relaxed),
            known => known,
        };
        (floor > 0).then(|| (floor.saturating_sub(1), key_space))
    }

    pub(super) fn numbers(&self) -> [&AtomicU64; 8] {
        [
            &self.next_start,
            &self.next_end,
            &self.next_key_space,
            &self.key_space,
            &self.kept_key_space,
            &self.floor,
            &self.wanted,
            &self.told_boot_ms,
        ]
    }
}

/// What the tag had left when the server was stopped, until it is used for the first time after that. Written at the start of the server,
/// cleared by the holder of the slot's gate.
#[derive(Default)]
#[repr(C)]
pub struct Left {
    start: AtomicU64,
    /// 0: nothing.
    end: AtomicU64,
    step: AtomicU64,
}

impl Left {
    /// First number that was not issued, first that was not reserved, and the step that they were reserved with.
    pub fn get(&self) -> Option<(u64, u64, u64)> {
        let end = self.end.load(Ordering::Acquire);
        let [start, step] = [&self.start, &self.step].map(|number| number.load(Ordering::Relaxed));
        (end > 0).then_some((start, end, step))
    }

    /// At the start of the server, before anybody can enter the gate.
    pub fn keep(&self, (start, end, step): (u64, u64, u64)) {
        self.start.store(start, Ordering::Relaxed);
        self.step.store(step, Ordering::Relaxed);
        self.end.store(end, Ordering::Release);
    }

    /// It is in use, or must not be used.
    pub fn clear(&self) {
        self.end.store(0, Ordering::Release);
    }

    pub(super) fn numbers(&self) -> [&AtomicU64; 3] {
        [&self.start, &self.end, &self.step]
    }
}

/// The segment of one tag, and its figures.
#[repr(C, align(128))]
pub struct TagSlot {
    /// Cursor and bound.
    pub word: SegmentWord,
    /// Ids from here on ask for the next refill.
    pub refill_at: AtomicU64,
    pub(super) generation: Generation,
    /// Set once the bound has been taken over since the server started.
    pub taken_over: AtomicBool,
    /// The transaction that closes the tag: it drops it, or changes what its ids are; 0 when none does.
    pub(super) closed_by: AtomicU64,
    /// The one of these that drops it, or gives it ids from elsewhere; 0 when none does.
    pub(super) dropped_by: AtomicU64,
    /// The one that drops the database; 0 when none does. It stands by itself: no lock keeps both kinds apart, and either may commit where the other fails.
    pub(super) database_closed_by: AtomicU64,
    pub(super) key: UnsafeCell<TagKey>,
    /// What a tag has that is fed.
    pub fed: Fed,
    /// What a native tag had left at the last stop.
    pub left: Left,
    /// First id of the reservation that was written last, durable or not.
    pub attempted_start: AtomicU64,
    /// First id after it: a bound that is found again is our own unfinished work.
    pub attempted_end: AtomicU64,
    /// The refill flag.
    pub gate: Gate,
    /// Step of the next reservation.
    pub step: AtomicU64,
    /// Ids of the last reservation.
    pub last_size: AtomicU64,
    /// When it was made, unix milliseconds of the virtual clock; 0 before the first.
    pub last_refill_ms: AtomicI64,
    /// When the window began in which the rate is counted, boot time in milliseconds; and the ids used in it.
    pub rate_since_boot_ms: AtomicU64,
    /// See there.
    pub rate_ids: AtomicU64,
    /// Boot time of the last reservation in milliseconds: what the step policy measures with.
    pub last_refill_boot_ms: AtomicU64,
    /// Reservations since the server started.
    pub refills: AtomicU64,
    /// Calls that had to wait for one.
    pub waits: AtomicU64,
    /// Their waiting time, microseconds.
    pub wait_us: AtomicU64,
}

impl TagSlot {
    /// Whether somebody closes it, or drops its database; or did and failed, and nobody has looked since.
    pub fn is_closing(&self) -> bool {
        [&self.closed_by, &self.database_closed_by]
            .iter()
            .any(|closed_by| closed_by.load(Ordering::Acquire) != 0)
    }

    /// Lets a range be issued. `refill_at`: ids from there on ask for the next one, which is to have `step` ids.
    pub fn publish(
        &self,
        (start, end): (u64, u64),
        (refill_at, step): (u64, u64),
        readings: &Readings,
        _held: &Held<'_>,
    ) {
        self.word.publish(start, end);
        self.refill_at.store(refill_at, Ordering::Relaxed);
        self.step.store(step, Ordering::Relaxed);
        self.last_size
            .store(end.saturating_sub(start), Ordering::Relaxed);
        self.last_refill_ms
            .store(readings.wall_ms, Ordering::Relaxed);
        self.last_refill_boot_ms
            .store(readings.boot_ms, Ordering::Relaxed);
    }
}

// SAFETY: all fields are atomics except `key`, written and read only under the directory's lock, and the queue of `gate`, which the server guards by a spin
// lock of its own.
unsafe impl Sync for TagSlot {}
