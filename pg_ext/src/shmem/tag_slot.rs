//! The slot of one tag.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use keywright_core::generation::Generation;
use keywright_core::segment::SegmentWord;

use crate::shmem::gate::Gate;
use crate::shmem::key::TagKey;

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
    /// The transaction that drops what the slot belongs to; 0 when none does.
    pub(super) closed_by: AtomicU64,
    pub(super) key: UnsafeCell<TagKey>,
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

// SAFETY: all fields are atomics except `key`, written and read only under the directory's lock, and `clock`, reached only
// through `with_clock` by the holder of `gate`.
unsafe impl Sync for TagSlot {}
