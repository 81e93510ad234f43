//! Shared memory: one slot per tag and one per snowflake (or readable) word, found by key.
//!
//! A slot belongs to one key at a time. When that key can never come again, or all it issued is recorded elsewhere, the slot
//! may be passed on to another ([`crate::reuse`]): its generation tells. Everything in a slot is an atomic, or plain data
//! owned by whoever holds its gate or the directory's lock.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use keywright_core::clock::VirtualClock;
use keywright_core::generation::{Generation, Word};
use keywright_core::segment::SegmentWord;
use keywright_core::snowflake::SnowflakeWord;
use pgrx::pg_sys;

use crate::backend::BackendCell;
use crate::gate::{Gate, Held};
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
    generation: Generation,
    /// Set once the bound has been taken over since the server started.
    pub taken_over: AtomicBool,
    /// The transaction that drops what the slot belongs to; 0 when none does.
    closed_by: AtomicU64,
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
    generation: Generation,
    /// What the wall clock reads too much, milliseconds: subtracted before use.
    pub skew_ms: AtomicI64,
    /// Highest reading of the wall clock, less its skew, that ids were issued with under a policy other than carry.
    pub highest_ms: AtomicI64,
    /// Set once the bound has been taken over since the server started.
    pub taken_over: AtomicBool,
    /// Set when its number was given anew: others may have issued with it since the bound was taken over.
    pub is_stale: AtomicBool,
    /// The transaction that drops what the slot belongs to; 0 when none does.
    closed_by: AtomicU64,
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

// SAFETY: all fields are atomics except `key`, written and read only under the directory's lock, and `clock`, reached only
// through `with_clock` by the holder of `gate`.
unsafe impl Sync for TagSlot {}
// SAFETY: as for TagSlot.
unsafe impl Sync for TimeSlot {}

/// What tags' and time words' slots have in common.
pub trait Slot: Sync + Sized + 'static {
    /// What a slot belongs to.
    type Key: Copy + PartialEq + 'static;
    /// The refill flag.
    fn gate(&self) -> &Gate;
    /// Which owner is the present one.
    fn generation(&self) -> &Generation;
    /// The transaction that drops what the slot belongs to; 0 when none does.
    fn closed_by(&self) -> &AtomicU64;
    /// Gives up all that may still be issued.
    fn drain(&self);
    #[doc(hidden)]
    fn parts(&self) -> Parts<'_, Self::Key>;
    #[doc(hidden)]
    fn array(map: &Map) -> Array<Self>;
}

/// What passing a slot on touches.
pub struct Parts<'slot, Key> {
    key: &'slot UnsafeCell<Key>,
    clock: Option<&'slot UnsafeCell<VirtualClock>>,
    words: [&'slot dyn Word; 2],
    numbers: Vec<&'slot AtomicU64>,
    moments: Vec<&'slot AtomicI64>,
    flags: Vec<&'slot AtomicBool>,
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
    fn drain(&self) {
        self.word.drain();
    }
    fn parts(&self) -> Parts<'_, TagKey> {
        Parts {
            key: &self.key,
            clock: None,
            words: [&self.word, &self.word],
            numbers: vec![
                &self.refill_at,
                &self.closed_by,
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
            ],
            moments: vec![&self.last_refill_ms],
            flags: vec![&self.taken_over],
        }
    }
    fn array(map: &Map) -> Array<Self> {
        Array {
            base: map.tags,
            used: &map.directory.tags_used,
            room: map.directory.tags_max,
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
    fn drain(&self) {
        self.main.word.drain();
        self.spare.word.drain();
    }
    fn parts(&self) -> Parts<'_, TimeKey> {
        let (main, spare) = (&self.main, &self.spare);
        Parts {
            key: &self.key,
            clock: Some(&self.clock),
            words: [&main.word, &spare.word],
            numbers: vec![
                &main.extend_at,
                &spare.extend_at,
                &self.closed_by,
                &self.issued,
                &self.refills,
                &self.waits,
                &self.wait_us,
            ],
            moments: vec![
                &main.bound_ms,
                &main.attempted_ms,
                &spare.bound_ms,
                &spare.attempted_ms,
                &self.skew_ms,
                &self.highest_ms,
                &self.last_refill_ms,
            ],
            flags: vec![&self.taken_over, &self.is_stale],
        }
    }
    fn array(map: &Map) -> Array<Self> {
        Array {
            base: map.words,
            used: &map.directory.words_used,
            room: map.directory.words_max,
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

impl TimeSlot {
    /// Runs `work` on the slot's clock. `_held` shows that the caller holds the slot's gate.
    pub fn with_clock<T>(&self, _held: &Held<'_>, work: impl FnOnce(&mut VirtualClock) -> T) -> T {
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
pub struct Map {
    directory: &'static Directory,
    tags: *mut TagSlot,
    words: *mut TimeSlot,
    lock: *mut pg_sys::LWLock,
}

static MAP: BackendCell<Option<Map>> = BackendCell::new(None);
static PREVIOUS_STARTUP: BackendCell<pg_sys::shmem_startup_hook_type> = BackendCell::new(None);
#[cfg(not(feature = "pg14"))]
static PREVIOUS_REQUEST: BackendCell<pg_sys::shmem_request_hook_type> = BackendCell::new(None);

/// One of the two slot arrays. Its first `used` slots have belonged to a key.
pub struct Array<S: 'static> {
    base: *mut S,
    used: &'static AtomicU32,
    room: u32,
}

impl<S> Array<S> {
    fn used(&self) -> &'static [S] {
        let used = usize::try_from(self.used.load(Ordering::Acquire)).unwrap_or(0);
        // SAFETY: `base` is the start of an array of `room` slots in the server's shared memory, which stays mapped for the
        // life of the process; all are initialised when the server starts, and `used` never exceeds `room`.
        unsafe { std::slice::from_raw_parts(self.base, used) }
    }

    fn room(&self) -> usize {
        usize::try_from(self.room).unwrap_or(0)
    }
}

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

/// The directory's lock while this backend holds it. Nothing in between may raise an error of the server.
struct Lock(*mut pg_sys::LWLock);

impl Lock {
    fn acquire(map: &Map, mode: pg_sys::LWLockMode::Type) -> Self {
        // SAFETY: the lock is ours, initialised with the tranche; it is released when this is dropped.
        unsafe { pg_sys::LWLockAcquire(map.lock, mode) };
        Self(map.lock)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: acquired by this backend in `acquire`.
        unsafe { pg_sys::LWLockRelease(self.0) };
    }
}

fn attached<S: Slot>(slot: &'static S) -> Attached<S> {
    Attached {
        slot,
        generation: slot.generation().get(),
    }
}

/// The key of a slot. The caller holds the directory's lock, which `_lock` shows.
fn key_of<S: Slot>(slot: &S, _lock: &Lock) -> S::Key {
    // SAFETY: keys are written only by holders of the lock in exclusive mode.
    unsafe { *slot.parts().key.get() }
}

/// All slots that belong to a key, of every database, with their keys.
pub fn slots<S: Slot>() -> Vec<(Attached<S>, S::Key)> {
    let Some(map) = MAP.get() else {
        return Vec::new();
    };
    let used = S::array(&map).used();
    // Room for all before the lock is taken.
    let mut found = Vec::with_capacity(used.len());
    let lock = Lock::acquire(&map, pg_sys::LWLockMode::LW_SHARED);
    found.extend(
        used.iter()
            .map(|slot| (attached(slot), key_of(slot, &lock))),
    );
    found
}

/// How many slots belong to a key.
pub fn used<S: Slot>() -> usize {
    MAP.get().map_or(0, |map| S::array(&map).used().len())
}

/// The slot that belongs to `key`, if there is one.
pub fn find<S: Slot>(key: &S::Key) -> Option<Attached<S>> {
    let map = MAP.get()?;
    let lock = Lock::acquire(&map, pg_sys::LWLockMode::LW_SHARED);
    find_locked(&S::array(&map), key, &lock)
}

fn find_locked<S: Slot>(array: &Array<S>, key: &S::Key, lock: &Lock) -> Option<Attached<S>> {
    let mut slots = array.used().iter();
    slots.find(|slot| key_of(*slot, lock) == *key).map(attached)
}

/// Finds the slot that belongs to `key` or gives it one that nobody has had; `None` when the server did not preload the
/// library.
pub fn attach<S: Slot>(key: &S::Key) -> Option<Result<Attached<S>, Full>> {
    let map = MAP.get()?;
    if let Some(found) = find(key) {
        return Some(Ok(found));
    }
    let array = S::array(&map);
    let lock = Lock::acquire(&map, pg_sys::LWLockMode::LW_EXCLUSIVE);
    if let Some(found) = find_locked(&array, key, &lock) {
        return Some(Ok(found));
    }
    let next = array.used.load(Ordering::Relaxed);
    if next >= array.room {
        return Some(Err(Full { room: array.room() }));
    }
    // SAFETY: `next` is below the size of the array, and no other process has seen that slot: those that may be looked at end
    // before it. The lock is held, so nobody else gives it away.
    let slot: &'static S = unsafe { &*array.base.add(usize::try_from(next).unwrap_or(0)) };
    pass_on_locked(slot, key, &lock);
    array.used.store(next + 1, Ordering::Release);
    Some(Ok(attached(slot)))
}

/// Passes a slot on to `key`, unless the key has got one meanwhile. The caller has made sure that nothing the slot issued can
/// come again, drained it, and holds its gate.
pub fn pass_on<S: Slot>(slot: &'static S, key: &S::Key, _held: &Held<'_>) -> Attached<S> {
    let Some(map) = MAP.get() else {
        return attached(slot);
    };
    let lock = Lock::acquire(&map, pg_sys::LWLockMode::LW_EXCLUSIVE);
    if let Some(found) = find_locked(&S::array(&map), key, &lock) {
        return found;
    }
    pass_on_locked(slot, key, &lock);
    attached(slot)
}

fn pass_on_locked<S: Slot>(slot: &S, key: &S::Key, _lock: &Lock) {
    let parts = slot.parts();
    slot.generation().pass_on(&parts.words, || {
        // SAFETY: the lock is held in exclusive mode, so nobody reads or writes the key. The clock is the gate's, which the
        // caller holds too, unless nobody has seen the slot yet.
        unsafe {
            *parts.key.get() = *key;
            if let Some(clock) = parts.clock {
                *clock.get() = VirtualClock::default();
            }
        }
        for number in &parts.numbers {
            number.store(0, Ordering::Relaxed);
        }
        for moment in &parts.moments {
            moment.store(0, Ordering::Relaxed);
        }
        for flag in &parts.flags {
            flag.store(false, Ordering::Relaxed);
        }
    });
}
