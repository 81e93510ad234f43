//! Heavyweight locks, taken without waiting: on relations, and advisory ones.

use pgrx::pg_sys;

/// What a relation is locked for.
#[derive(Clone, Copy)]
pub enum LockedFor {
    /// Reading a table, as a query locks it.
    Reading,
    /// Changing a sequence, as `nextval` locks it; does not conflict with itself.
    Changing,
    /// Keeping every other session from changing a sequence.
    BeingAlone,
    /// Dropping a sequence.
    Dropping,
}

impl LockedFor {
    fn mode(self) -> pg_sys::LOCKMODE {
        match self {
            Self::Reading => pg_sys::AccessShareLock.cast_signed(),
            Self::Changing => pg_sys::RowExclusiveLock.cast_signed(),
            Self::BeingAlone => pg_sys::ShareRowExclusiveLock.cast_signed(),
            Self::Dropping => pg_sys::AccessExclusiveLock.cast_signed(),
        }
    }
}

/// Locks a relation without waiting, until the transaction ends or [`give_back`] gives the lock back.
pub fn try_relation(relation: pg_sys::Oid, purpose: LockedFor) -> bool {
    // SAFETY: locking by object id, without waiting.
    unsafe { pg_sys::ConditionalLockRelationOid(relation, purpose.mode()) }
}

/// Gives back a lock that [`try_relation`] took; one that the transaction holds besides stays.
pub fn give_back(relation: pg_sys::Oid, purpose: LockedFor) {
    // SAFETY: a lock that this transaction holds, by object id.
    unsafe { pg_sys::UnlockRelationOid(relation, purpose.mode()) };
}

/// Class of the advisory locks that are ours.
const LOCKS_CLASS: u32 = 0x6b77_7267;
/// Their kind of advisory lock. 1 and 2 are those of pg_advisory_lock, by which anybody could hold up sessions that issue ids.
const LOCKS_KIND: u16 = 3;
/// Object number of the server-wide lock under which worker ids are given out: an advisory lock of no database, so that it
/// stands in the way of nothing else.
const WORKERS_LOCK: u32 = 1;
/// The lock of [`try_register`] as `pg_locks` shows it: class, object, kind.
pub const REGISTER: (u32, u32, u16) = (LOCKS_CLASS, WORKERS_LOCK, LOCKS_KIND);
/// The mode of locks that one session at a time has.
pub const EXCLUSIVE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock.cast_signed();

/// One of our advisory locks, of a database or of none.
pub fn advisory(database: pg_sys::Oid, object: u32) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        locktag_field1: database.to_u32(),
        locktag_field2: LOCKS_CLASS,
        locktag_field3: object,
        locktag_field4: LOCKS_KIND,
        locktag_type: u8::try_from(pg_sys::LockTagType::LOCKTAG_ADVISORY).unwrap_or(0),
        locktag_lockmethodid: u8::try_from(pg_sys::USER_LOCKMETHOD).unwrap_or(0),
    }
}

/// Takes the server-wide lock on the register of worker ids until the transaction ends, if it is free.
pub fn try_register() -> bool {
    let tag = advisory(pg_sys::InvalidOid, WORKERS_LOCK);
    // SAFETY: a complete lock tag; the call does not wait.
    let result = unsafe { pg_sys::LockAcquire(&tag, EXCLUSIVE, false, true) };
    result != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
}

/// Gives back the lock that [`try_register`] took; one that the transaction holds besides stays.
pub fn give_back_register() {
    let tag = advisory(pg_sys::InvalidOid, WORKERS_LOCK);
    // SAFETY: a complete lock tag, of a lock that this transaction holds.
    unsafe { pg_sys::LockRelease(&tag, EXCLUSIVE, false) };
}
