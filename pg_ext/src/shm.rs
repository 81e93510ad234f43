//! Shared memory: one slot per tag and one per snowflake (or readable) word, found by key.
//!
//! A slot is given to its key once and never to another while the server runs, so a backend may keep a
//! reference for good. Everything in a slot is an atomic, or plain data owned by whoever holds its gate.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use keywright_core::clock::VirtualClock;
use keywright_core::segment::SegmentWord;
use keywright_core::snowflake::SnowflakeWord;
use pgrx::pg_sys;

use crate::backend::BackendCell;
use crate::gate::Gate;
use crate::keys::{TagKey, TimeKey};
use crate::{settings, sys};

const TRANCHE: &CStr = c"keywright";
/// Index of AddinShmemInitLock in the server's main lock array: the same from PostgreSQL 9.6 to 18.
const ADDIN_SHMEM_INIT_LOCK: usize = 21;

/// The segment of one tag, and its figures.
#[repr(C, align(128))]
pub struct TagSlot {
    /// Cursor and bound.
    pub word: SegmentWord,
    /// Ids from here on ask for the next refill.
    pub refill_at: AtomicU64,
    /// Set once the bound has been taken over since the server started.
    pub taken_over: AtomicBool,
    key: UnsafeCell<TagKey>,
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
    /// Boot time of the last reservation in milliseconds: what the step policy measures with.
    pub last_refill_boot_ms: AtomicU64,
    /// Reservations since the server started.
    pub refills: AtomicU64,
    /// Calls that had to wait for one.
    pub waits: AtomicU64,
    /// Their waiting time, microseconds.
    pub wait_us: AtomicU64,
}

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
    /// What the wall clock reads too much, milliseconds: subtracted before use.
    pub skew_ms: AtomicI64,
    /// Highest reading of the wall clock, less its skew, that ids were issued with under a policy other than carry.
    pub highest_ms: AtomicI64,
    /// Set once the bound has been taken over since the server started.
    pub taken_over: AtomicBool,
    /// The spare worker's word.
    pub spare: TimeTrack,
    key: UnsafeCell<TimeKey>,
    /// The refill flag.
    pub gate: Gate,
    clock: UnsafeCell<VirtualClock>,
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

// SAFETY: all fields are atomics except `key`, written once before the slot is published through the header's
// counter and read-only afterwards, and `clock`, reached only through `with_clock` by the holder of `gate`.
unsafe impl Sync for TagSlot {}
// SAFETY: as for TagSlot.
unsafe impl Sync for TimeSlot {}

impl TagSlot {
    /// Which tag this is.
    pub fn key(&self) -> &TagKey {
        // SAFETY: written once by `slot_of` under the directory lock before the release store of the counter
        // that made this reference possible; never written again.
        unsafe { &*self.key.get() }
    }
}

impl TimeSlot {
    /// Which worker or readable key space this is.
    pub fn key(&self) -> &TimeKey {
        // SAFETY: as for TagSlot::key.
        unsafe { &*self.key.get() }
    }

    /// Runs `work` on the slot's clock. `_held` shows that the caller holds the slot's gate.
    pub fn with_clock<T>(
        &self,
        _held: &crate::gate::Held<'_>,
        work: impl FnOnce(&mut VirtualClock) -> T,
    ) -> T {
        // SAFETY: the gate admits one backend at a time, the borrow ends with `work`, and `work` gets no way to
        // reach the clock a second time.
        work(unsafe { &mut *self.clock.get() })
    }

    /// The word in use and its bound: the spare one after a step back under policy spare_worker.
    pub fn track(&self, spare: bool) -> &TimeTrack {
        if spare { &self.spare } else { &self.main }
    }
}

/// Sizes and fill of the two slot arrays that follow it in shared memory.
#[repr(C, align(128))]
struct Directory {
    life: u64,
    tags_max: u32,
    words_max: u32,
    tags_used: AtomicU32,
    words_used: AtomicU32,
}

/// Where the pieces lie in this process; the same for all, they are mapped before the fork.
#[derive(Clone, Copy)]
struct Map {
    directory: &'static Directory,
    tags: *mut TagSlot,
    words: *mut TimeSlot,
    lock: *mut pg_sys::LWLock,
}

static MAP: BackendCell<Option<Map>> = BackendCell::new(None);
static PREVIOUS_STARTUP: BackendCell<pg_sys::shmem_startup_hook_type> = BackendCell::new(None);
#[cfg(not(feature = "pg14"))]
static PREVIOUS_REQUEST: BackendCell<pg_sys::shmem_request_hook_type> = BackendCell::new(None);

/// Shared memory has no room for another key.
#[derive(Debug)]
pub struct Full {
    /// How many there is room for.
    pub room: usize,
}

fn bytes() -> usize {
    size_of::<Directory>()
        + settings::tags_max() * size_of::<TagSlot>()
        + settings::workers_max() * size_of::<TimeSlot>()
}

/// Asks the server for shared memory. Only while it preloads libraries.
pub fn install_hooks() {
    // SAFETY: _PG_init runs this once in the postmaster, single-threaded, before any other code of this library;
    // the previous hooks are kept and called.
    unsafe {
        #[cfg(feature = "pg14")]
        request();
        #[cfg(not(feature = "pg14"))]
        {
            PREVIOUS_REQUEST.set(pg_sys::shmem_request_hook);
            pg_sys::shmem_request_hook = Some(on_request);
        }
        PREVIOUS_STARTUP.set(pg_sys::shmem_startup_hook);
        pg_sys::shmem_startup_hook = Some(on_startup);
    }
}

fn request() {
    // SAFETY: called where the server allows requests: from _PG_init on 14, from the request hook later.
    unsafe {
        pg_sys::RequestAddinShmemSpace(bytes());
        pg_sys::RequestNamedLWLockTranche(TRANCHE.as_ptr(), 1);
    }
}

#[cfg(not(feature = "pg14"))]
#[pgrx::pg_guard]
extern "C-unwind" fn on_request() {
    if let Some(previous) = PREVIOUS_REQUEST.get() {
        // SAFETY: a hook that was installed before ours; the chain calls each once.
        unsafe { previous() };
    }
    request();
}

#[pgrx::pg_guard]
extern "C-unwind" fn on_startup() {
    if let Some(previous) = PREVIOUS_STARTUP.get() {
        // SAFETY: a hook that was installed before ours; the chain calls each once.
        unsafe { previous() };
    }
    // SAFETY: the startup hook runs in the postmaster (again after a crash, over fresh memory) with the named tranche
    // and the space granted. ShmemInitStruct returns at least `bytes()` bytes aligned to a cache line; the directory
    // and both arrays fit in by construction of `bytes`, and zeroed memory is a valid value of every field. No other
    // process exists yet that could look.
    unsafe {
        let add_in_lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
        pg_sys::LWLockAcquire(add_in_lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let mut found = false;
        let base = pg_sys::ShmemInitStruct(TRANCHE.as_ptr(), bytes(), &mut found).cast::<u8>();
        let tags = base.add(size_of::<Directory>()).cast::<TagSlot>();
        let words = tags.add(settings::tags_max()).cast::<TimeSlot>();
        if !found {
            base.write_bytes(0, bytes());
            let directory = base.cast::<Directory>();
            (*directory).life = sys::random();
            (*directory).tags_max = u32::try_from(settings::tags_max()).unwrap_or(0);
            (*directory).words_max = u32::try_from(settings::workers_max()).unwrap_or(0);
            for index in 0..settings::tags_max() {
                (*tags.add(index)).gate.init();
            }
            for index in 0..settings::workers_max() {
                (*words.add(index)).gate.init();
            }
        }
        let lock = &raw mut (*pg_sys::GetNamedLWLockTranche(TRANCHE.as_ptr())).lock;
        MAP.set(Some(Map {
            directory: &*base.cast::<Directory>(),
            tags,
            words,
            lock,
        }));
        pg_sys::LWLockRelease(add_in_lock);
    }
}

/// A number of this life of shared memory: another one after every start of the server and every crash.
pub fn life() -> Option<u64> {
    MAP.get().map(|map| map.directory.life)
}

/// Whether the server preloaded this library.
pub fn is_there() -> bool {
    MAP.get().is_some()
}

/// The slots of an array that are in use.
///
/// # Safety
/// `base` must be the start of an array in the server's shared memory whose first `used` slots are initialised
/// and were published by a release store of `used`.
unsafe fn used_slots<T>(base: *mut T, used: &AtomicU32) -> &'static [T] {
    let used = usize::try_from(used.load(Ordering::Acquire)).unwrap_or(0);
    // SAFETY: the caller's promise; shared memory stays mapped for the life of the process.
    unsafe { std::slice::from_raw_parts(base, used) }
}

/// Slots of all tags in use, of every database.
pub fn tag_slots() -> &'static [TagSlot] {
    MAP.get().map_or(&[], |map| {
        // SAFETY: `tags` and `tags_used` belong together and are published as `used_slots` asks.
        unsafe { used_slots(map.tags, &map.directory.tags_used) }
    })
}

/// Slots of all time words in use, of every database.
pub fn time_slots() -> &'static [TimeSlot] {
    MAP.get().map_or(&[], |map| {
        // SAFETY: as for `tag_slots`.
        unsafe { used_slots(map.words, &map.directory.words_used) }
    })
}

/// Finds the slot of a tag or gives it one; `None` when the server did not preload the library.
pub fn tag_slot(key: &TagKey) -> Option<Result<&'static TagSlot, Full>> {
    let map = MAP.get()?;
    Some(slot_of(
        map,
        (tag_slots, |slot: &TagSlot| slot.key() == key),
        (&map.directory.tags_used, map.directory.tags_max),
        |index| {
            // SAFETY: `slot_of` calls this under the exclusive directory lock for an index below the array's size that
            // no other process has seen.
            unsafe { *(*map.tags.add(index)).key.get() = *key }
        },
    ))
}

/// Finds the slot of a time word or gives it one; `None` when the server did not preload the library.
pub fn time_slot(key: &TimeKey) -> Option<Result<&'static TimeSlot, Full>> {
    let map = MAP.get()?;
    Some(slot_of(
        map,
        (time_slots, |slot: &TimeSlot| slot.key() == key),
        (&map.directory.words_used, map.directory.words_max),
        |index| {
            // SAFETY: as for `tag_slot`.
            unsafe { *(*map.words.add(index)).key.get() = *key }
        },
    ))
}

fn slot_of<T>(
    map: Map,
    (slots, is_it): (fn() -> &'static [T], impl Fn(&T) -> bool),
    (used, room): (&AtomicU32, u32),
    claim: impl FnOnce(usize),
) -> Result<&'static T, Full> {
    let find = || slots().iter().find(|slot| is_it(slot));
    if let Some(slot) = find() {
        return Ok(slot);
    }
    // SAFETY: the lock is ours, initialised with the tranche; nothing between acquire and release can raise an error.
    unsafe { pg_sys::LWLockAcquire(map.lock, pg_sys::LWLockMode::LW_EXCLUSIVE) };
    let found = find().ok_or(()).or_else(|()| {
        let next = used.load(Ordering::Relaxed);
        if next >= room {
            return Err(Full {
                room: usize::try_from(room).unwrap_or(0),
            });
        }
        claim(usize::try_from(next).unwrap_or(0));
        used.store(next + 1, Ordering::Release);
        slots().last().ok_or(Full { room: 0 })
    });
    // SAFETY: acquired above by this backend.
    unsafe { pg_sys::LWLockRelease(map.lock) };
    found
}
