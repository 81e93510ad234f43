//! Asking the server for shared memory while it preloads libraries, and setting it up when it starts.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::failure::OrRaise;
use crate::server::backend::BackendCell;
use crate::server::process;
use crate::settings;
use crate::shmem::area::{AREA, Area, Directory};
use crate::shmem::resets;
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::time_slot::TimeSlot;
use crate::shmem::unused;

const TRANCHE: &CStr = c"keywright";

/// Index of AddinShmemInitLock in the server's main lock array: the same from PostgreSQL 9.6 to 18.
const ADDIN_SHMEM_INIT_LOCK: usize = 21;

static PREVIOUS_STARTUP: BackendCell<pg_sys::shmem_startup_hook_type> = BackendCell::new(None);
#[cfg(not(feature = "pg14"))]
static PREVIOUS_REQUEST: BackendCell<pg_sys::shmem_request_hook_type> = BackendCell::new(None);

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
            (*directory).life = process::random();
            (*directory).incarnation =
                u128::from(process::random()) << u64::BITS | u128::from(process::random());
            (*directory).demands.init();
            (*directory).hand_overs.init();
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
        AREA.set(Some(Area {
            directory: &*base.cast::<Directory>(),
            tags,
            words,
            lock,
        }));
        pg_sys::LWLockRelease(add_in_lock);
    }
    // The file shows what to remember. A start that fails before it has been remembered leaves it to the next one.
    let found = unused::Found::at_start();
    resets::look_at_start(found.was_stopped_in_order()).or_raise();
    found.take().or_raise();
    // SAFETY: the callback is a function of this library, which the server never unloads. The processes that the postmaster starts
    // forget its callbacks; after a crash it has called all, and this hook runs again.
    unsafe { pg_sys::on_shmem_exit(Some(on_stop), pg_sys::Datum::from(0usize)) };
}

/// The postmaster leaves, or sets shared memory up anew after a crash, which `code` tells. Shared memory is still there: what was
/// registered last is called first.
#[pgrx::pg_guard]
extern "C-unwind" fn on_stop(code: i32, _argument: pg_sys::Datum) {
    if code == 0 {
        unused::keep_at_stop();
    }
}
