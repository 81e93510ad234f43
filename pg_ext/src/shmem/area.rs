//! The piece of the server's shared memory that is ours: sizes, the two slot arrays, and which database is being dropped.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pgrx::pg_sys;

use crate::server::backend::BackendCell;
use crate::shmem::gate::Queue;
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::time_slot::TimeSlot;

/// Sizes and fill of the two slot arrays that follow it in shared memory.
#[repr(C, align(128))]
pub struct Directory {
    pub(super) life: u64,
    /// Drawn when shared memory is set up: what a range is handed over for.
    pub(super) incarnation: u128,
    /// Where programs that hand ranges over wait to be asked for some.
    pub(super) demands: Queue,
    /// Where those wait who need a range.
    pub(super) hand_overs: Queue,
    /// When a program last asked what is wanted, boot time in milliseconds; 0: none did.
    pub(super) asked_boot_ms: AtomicU64,
    pub(super) tags_max: u32,
    pub(super) words_max: u32,
    pub(super) tags_used: AtomicU32,
    pub(super) words_used: AtomicU32,
    /// The database that was dropped last, or is being dropped now, and the transaction that drops it; 0: it has ended.
    pub(super) dropped: AtomicU32,
    pub(super) dropped_by: AtomicU64,
}

/// Where the pieces lie in this process; the same for all, they are mapped before the fork.
#[derive(Clone, Copy)]
pub struct Area {
    pub(super) directory: &'static Directory,
    pub(super) tags: *mut TagSlot,
    pub(super) words: *mut TimeSlot,
    pub(super) lock: *mut pg_sys::LWLock,
}

/// None in a server that did not preload the library.
pub(super) static AREA: BackendCell<Option<Area>> = BackendCell::new(None);

/// One of the two slot arrays. Its first `used` slots have belonged to a key.
pub struct Array<S: 'static> {
    pub(super) base: *mut S,
    pub(super) used: &'static AtomicU32,
    pub(super) room: u32,
}

impl<S> Array<S> {
    pub(super) fn used(&self) -> &'static [S] {
        let used = usize::try_from(self.used.load(Ordering::Acquire)).unwrap_or(0);
        // SAFETY: `base` is the start of an array of `room` slots in the server's shared memory, which stays mapped for the
        // life of the process; all are initialised when the server starts, and `used` never exceeds `room`.
        unsafe { std::slice::from_raw_parts(self.base, used) }
    }

    pub(super) fn room(&self) -> usize {
        usize::try_from(self.room).unwrap_or(0)
    }
}

/// A number of this life of shared memory: another one after every start of the server and every crash.
pub fn life() -> Option<u64> {
    AREA.get().map(|area| area.directory.life)
}

/// What all of one server have in common who are fed, and those who feed them.
#[derive(Clone, Copy)]
pub struct Feeding(&'static Directory);

impl Feeding {
    /// `None`: the server did not preload the library.
    pub fn here() -> Option<Self> {
        AREA.get().map(|area| Self(area.directory))
    }

    /// This life of shared memory: another after every start of the server and every crash.
    pub fn incarnation(self) -> u128 {
        self.0.incarnation
    }

    /// Where programs that hand ranges over wait to be asked for some.
    pub fn demands(self) -> &'static Queue {
        &self.0.demands
    }

    /// Where those wait who need a range.
    pub fn hand_overs(self) -> &'static Queue {
        &self.0.hand_overs
    }

    /// When a program last asked what is wanted, boot time in milliseconds; `None`: none did since the server started.
    pub fn asked_boot_ms(self) -> Option<u64> {
        match self.0.asked_boot_ms.load(Ordering::Relaxed) {
            0 => None,
            boot_ms => Some(boot_ms),
        }
    }

    /// A program asks what is wanted.
    pub fn note_asked(self, boot_ms: u64) {
        self.0
            .asked_boot_ms
            .store(boot_ms.max(1), Ordering::Relaxed);
    }
}

/// Tells all sessions that a transaction drops a database. One at a time: the caller holds the lock on the register.
pub fn announce_drop(database: u32, transaction: u64) {
    if let Some(area) = AREA.get() {
        let directory = area.directory;
        // Whoever sees this transaction sees the database of before no more.
        directory.dropped.store(0, Ordering::Relaxed);
        directory.dropped_by.store(transaction, Ordering::Release);
        directory.dropped.store(database, Ordering::Release);
    }
}

/// The transaction that drops the database, or did, if it is the one of which was told last and has not been forgotten. One that is open drops no
/// other database: of another is told only once it has ended.
pub fn dropped_by(database: u32) -> Option<u64> {
    let directory = AREA.get()?.directory;
    let is_meant = || directory.dropped.load(Ordering::Acquire) == database;
    let was_meant = is_meant();
    let transaction = directory.dropped_by.load(Ordering::Acquire);
    // Asked again, for another drop may have been announced in between.
    (was_meant && transaction != 0 && is_meant()).then_some(transaction)
}

/// The transaction that was to drop a database has ended, and nobody need ask what became of it any more. Who announces another drop meanwhile is heard.
pub fn forget_drop(transaction: u64) {
    if let Some(area) = AREA.get() {
        let dropped_by = &area.directory.dropped_by;
        let _ = dropped_by.compare_exchange(transaction, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Whether the server preloaded this library.
pub fn is_there() -> bool {
    AREA.get().is_some()
}
