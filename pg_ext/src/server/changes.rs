//! When something that a session looked up may have changed: the server's invalidation messages, sent and heard.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use pgrx::pg_sys;

use crate::server::backend::BackendCell;

/// Makes every session of this database look again at what it knows about `relation`, once the transaction commits; of every database, where all share it.
pub fn announce(relation: pg_sys::Oid) {
    // SAFETY: queues an invalidation message for an existing relation. The command counter moves on so that this session
    // hears of it as well, now and again if the change is rolled back.
    unsafe {
        pg_sys::CacheInvalidateRelcacheByRelid(relation);
        pg_sys::CommandCounterIncrement();
    }
}

/// Hears now what others committed. The server does so when it takes the lock of a relation that it does not have yet, and not after a wait for a row.
/// Catalogues are read anew also after those who have committed and not said so yet.
pub fn hear() {
    // SAFETY: called inside a transaction, where the server does the one at each such lock, and the other with what it hears of catalogues. Whoever reads one
    // with the snapshot keeps a copy.
    unsafe {
        pg_sys::AcceptInvalidationMessages();
        pg_sys::InvalidateCatalogSnapshot();
    }
}

/// Counts how often the server said that something known about relations or roles changed.
static CHANGES: AtomicU32 = AtomicU32::new(1);
static LISTENING: BackendCell<bool> = BackendCell::new(false);

/// A number that grows whenever something cached may have changed: compare it before trusting a cached look-up.
#[inline]
pub fn count() -> u32 {
    CHANGES.load(Ordering::Relaxed)
}

/// Starts to listen for changes in this backend; may be called often.
pub fn listen() {
    if !LISTENING.replace(true) {
        // SAFETY: the callbacks are functions of this library, which the server never unloads.
        unsafe {
            pg_sys::CacheRegisterRelcacheCallback(
                Some(on_relation_change),
                pg_sys::Datum::from(0usize),
            );
            for cache in [
                pg_sys::SysCacheIdentifier::AUTHMEMROLEMEM,
                pg_sys::SysCacheIdentifier::AUTHOID,
            ] {
                pg_sys::CacheRegisterSyscacheCallback(
                    cache.cast_signed(),
                    Some(on_role_change),
                    pg_sys::Datum::from(0usize),
                );
            }
        }
    }
}

extern "C-unwind" fn on_relation_change(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    if depends_on(relation) {
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }
}

extern "C-unwind" fn on_role_change(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

thread_local! {
    static WATCHED: RefCell<HashSet<pg_sys::Oid>> = RefCell::default();
}

/// Whether anything cached was read from `relation`; `InvalidOid` stands for all.
pub fn depends_on(relation: pg_sys::Oid) -> bool {
    relation == pg_sys::InvalidOid
        || WATCHED.with(|watched| {
            watched
                .try_borrow()
                .map_or(true, |watched| watched.contains(&relation))
        })
}

/// Has [`count`] move on whenever the server says that `relation` changed. Says whether it did not before: then what changed since the caller looked it
/// up may have gone by unheard.
pub fn watch(relation: pg_sys::Oid) -> bool {
    WATCHED.with(|watched| watched.borrow_mut().insert(relation))
}
