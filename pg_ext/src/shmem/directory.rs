//! Slots by key: finding one, giving one away, passing one on. All of it under one lock of the server.

use std::sync::atomic::Ordering;

use keywright_core::clock::VirtualClock;
use pgrx::pg_sys;

use crate::shmem::area::{AREA, Area, Array};
use crate::shmem::gate::Held;
use crate::shmem::slot::{Attached, Slot};

/// Shared memory has no room for another key.
#[derive(Debug)]
pub struct Full {
    /// How many there is room for.
    pub room: usize,
}

/// The directory's lock while this backend holds it. Nothing in between may raise an error of the server.
struct Lock(*mut pg_sys::LWLock);

impl Lock {
    fn acquire(area: &Area, mode: pg_sys::LWLockMode::Type) -> Self {
        // SAFETY: the lock is ours, initialised with the tranche; it is released when this is dropped.
        unsafe { pg_sys::LWLockAcquire(area.lock, mode) };
        Self(area.lock)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: acquired by this backend in `acquire`.
        unsafe { pg_sys::LWLockRelease(self.0) };
    }
}

/// The key of a slot. The caller holds the directory's lock, which `_lock` shows.
fn key_of<'lock, S: Slot>(slot: &'lock S, _lock: &'lock Lock) -> &'lock S::Key {
    // SAFETY: keys are written only by holders of the lock in exclusive mode, and the reference lives no longer than the lock is held.
    unsafe { &*slot.key().get() }
}

/// The slots that are meant, of every database, with their keys. There may be very many, so only these are copied. `is_meant` runs under the lock, and
/// calls nothing of the server.
pub fn slots<S: Slot>(is_meant: impl Fn(&S, &S::Key) -> bool) -> Vec<Keyed<S>> {
    let Some(area) = AREA.get() else {
        return Vec::new();
    };
    // Before they are counted: whoever comes later reads what the caller has announced.
    let lock = Lock::acquire(&area, pg_sys::LWLockMode::LW_SHARED);
    let used = S::array(&area).used();
    used.iter()
        .map(|slot| (slot, key_of(slot, &lock)))
        .filter(|(slot, key)| is_meant(slot, key))
        .map(|(slot, key)| (Attached::now(slot), *key))
        .collect()
}

/// How many slots belong to a key.
pub fn used<S: Slot>() -> usize {
    AREA.get().map_or(0, |area| S::array(&area).used().len())
}

/// A slot, and the key that it belongs to.
pub type Keyed<S> = (Attached<S>, <S as Slot>::Key);

/// The slot that belongs to `key`, if there is one.
pub fn find<S: Slot>(key: &S::Key) -> Option<Attached<S>> {
    find_as(|its| its == key).map(|(found, _)| found)
}

/// The slot of a key that is meant, if there is one, and the key.
pub fn find_as<S: Slot>(is_meant: impl Fn(&S::Key) -> bool) -> Option<Keyed<S>> {
    let area = AREA.get()?;
    let lock = Lock::acquire(&area, pg_sys::LWLockMode::LW_SHARED);
    find_locked(&S::array(&area), is_meant, &lock)
}

fn find_locked<S: Slot>(
    array: &Array<S>,
    is_meant: impl Fn(&S::Key) -> bool,
    lock: &Lock,
) -> Option<Keyed<S>> {
    let slots = array.used().iter();
    let mut all = slots.map(|slot| (slot, key_of(slot, lock)));
    let (slot, key) = all.find(|(_, key)| is_meant(key))?;
    Some((Attached::now(slot), *key))
}

/// Runs `work` if the slot still belongs to the key that it had: under the lock, so it belongs to it until `work` has ended. `work` calls nothing of the
/// server.
pub fn if_current<S: Slot, T>(found: &Attached<S>, work: impl FnOnce() -> T) -> Option<T> {
    let area = AREA.get()?;
    let _lock = Lock::acquire(&area, pg_sys::LWLockMode::LW_SHARED);
    found.is_current().then(work)
}

/// Finds the slot that belongs to `key` or gives it one that nobody has had; `None` when the server did not preload the
/// library.
pub fn attach<S: Slot>(key: &S::Key) -> Option<Result<Attached<S>, Full>> {
    attach_as(key, |its| its == key).map(|found| found.map(|(found, _)| found))
}

/// The same of a slot of any key that is meant.
pub fn attach_as<S: Slot>(
    key: &S::Key,
    is_meant: impl Fn(&S::Key) -> bool,
) -> Option<Result<Keyed<S>, Full>> {
    let area = AREA.get()?;
    if let Some(found) = find_as(&is_meant) {
        return Some(Ok(found));
    }
    let array = S::array(&area);
    let lock = Lock::acquire(&area, pg_sys::LWLockMode::LW_EXCLUSIVE);
    if let Some(found) = find_locked(&array, &is_meant, &lock) {
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
    Some(Ok((Attached::now(slot), *key)))
}

/// Passes a slot on to `key`, unless the key has got one meanwhile. The caller has made sure that nothing the slot issued can
/// come again, drained it, and holds its gate.
pub fn pass_on<S: Slot>(slot: &'static S, key: &S::Key, _held: &Held<'_>) -> Attached<S> {
    let Some(area) = AREA.get() else {
        return Attached::now(slot);
    };
    let lock = Lock::acquire(&area, pg_sys::LWLockMode::LW_EXCLUSIVE);
    if let Some((found, _)) = find_locked(&S::array(&area), |its| its == key, &lock) {
        return found;
    }
    pass_on_locked(slot, key, &lock);
    Attached::now(slot)
}

/// Passes a slot on to the key that it has: another owner of the same name. The caller has done as for [`pass_on`].
pub fn renew<S: Slot>(slot: &'static S, key: &S::Key, _held: &Held<'_>) -> Attached<S> {
    if let Some(area) = AREA.get() {
        let lock = Lock::acquire(&area, pg_sys::LWLockMode::LW_EXCLUSIVE);
        pass_on_locked(slot, key, &lock);
    }
    Attached::now(slot)
}

fn pass_on_locked<S: Slot>(slot: &S, key: &S::Key, _lock: &Lock) {
    let parts = slot.parts();
    slot.generation().pass_on(&parts.words, || {
        // SAFETY: the lock is held in exclusive mode, so nobody reads or writes the key. The clock is the gate's, which the
        // caller holds too, unless nobody has seen the slot yet.
        unsafe {
            *slot.key().get() = *key;
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
