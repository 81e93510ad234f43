//! Where backends wait for one another: queues, and the refill flag of a slot: one backend at a time makes a bound durable, the
//! others wait for it.
//!
//! It is not a lock of the server: the holder sleeps, reads tables and flushes. But it waits for no lock: who has that one may
//! be waiting for the gate. And it must come free however the
//! holder ends: an error unwinds and drops [`Held`]; a terminated backend runs [`release_at_exit`]; a killed one
//! makes the server start over with fresh shared memory.

use std::cell::UnsafeCell;
use std::time::Instant;

use keywright_core::gate::Holder;
use pgrx::pg_sys;

use crate::server::backend::BackendCell;
use crate::server::{latch, process};

/// Longest single sleep; a waiter then looks again even if nobody woke it.
const SLEEP_MS_MAX: u64 = 100;

/// Backends that sleep until they are told something.
#[repr(C)]
pub struct Queue(UnsafeCell<pg_sys::ConditionVariable>);

impl Queue {
    /// Prepares it; once, before other processes see it.
    ///
    /// # Safety
    /// It must lie in shared memory that nobody else uses yet.
    pub unsafe fn init(&self) {
        // SAFETY: the caller's promise makes the pointer valid and exclusive.
        unsafe { pg_sys::ConditionVariableInit(self.0.get()) };
    }

    /// Sleeps until the queue was told something, `deadline` passed or a moment went by; not at all unless `is_needed` once those
    /// who tell would be heard. Raises the error of a cancelled or timed-out statement.
    pub fn wait(&'static self, deadline: Instant, is_needed: impl FnOnce() -> bool) {
        let left = deadline.saturating_duration_since(Instant::now());
        let sleep_ms = u64::try_from(left.as_millis())
            .unwrap_or(SLEEP_MS_MAX)
            .clamp(1, SLEEP_MS_MAX);
        // SAFETY: `init` ran before other processes saw the queue. An error raised inside (cancel) leaves the queue through
        // the server's own abort processing; the normal way leaves it here.
        unsafe {
            pg_sys::ConditionVariablePrepareToSleep(self.0.get());
            if is_needed() {
                pg_sys::ConditionVariableTimedSleep(
                    self.0.get(),
                    i64::try_from(sleep_ms).unwrap_or(1),
                    latch::wait_event(),
                );
            }
            pg_sys::ConditionVariableCancelSleep();
        }
    }

    /// Wakes all who sleep in it.
    pub fn tell(&self) {
        // SAFETY: initialised by `init`; broadcasting takes only the queue's own spin lock and raises no error.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) };
    }
}

/// A refill flag with the queue of those who wait for it.
#[repr(C)]
pub struct Gate {
    /// The process that is in it.
    holder: Holder,
    queue: Queue,
}

/// The gate this backend holds, for the exit callback. A backend holds one at a time.
static HELD: BackendCell<Option<&'static Gate>> = BackendCell::new(None);
static EXIT_CALLBACK: BackendCell<bool> = BackendCell::new(false);

/// Proof that this backend holds a gate; dropping it opens the gate.
pub struct Held<'gate> {
    gate: &'gate Gate,
}

impl Gate {
    /// Prepares the queue; once, before other processes see the gate.
    ///
    /// # Safety
    /// The gate must lie in shared memory that nobody else uses yet.
    pub unsafe fn init(&self) {
        // SAFETY: the caller's promise is the queue's.
        unsafe { self.queue.init() };
    }

    /// Takes the gate if it is free and this backend holds no other.
    pub fn try_enter(&'static self) -> Option<Held<'static>> {
        register_exit_callback();
        if HELD.get().is_some() {
            return None;
        }
        if !self.holder.try_enter(process::process_id()) {
            return None;
        }
        HELD.set(Some(self));
        Some(Held { gate: self })
    }

    /// The process that is in it.
    pub fn holder(&self) -> Option<i32> {
        self.holder.get()
    }

    /// Sleeps until the gate was opened, `deadline` passed or a moment went by. Raises the error of a cancelled or
    /// timed-out statement.
    pub fn wait(&'static self, deadline: Instant) {
        self.queue.wait(deadline, || self.holder.get().is_some());
    }

    fn open(&self) {
        self.holder.leave();
        self.queue.tell();
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        HELD.set(None);
        self.gate.open();
    }
}

fn register_exit_callback() {
    if !EXIT_CALLBACK.replace(true) {
        // SAFETY: the callback is a function of this library, which the server never unloads.
        unsafe { pg_sys::before_shmem_exit(Some(release_at_exit), pg_sys::Datum::from(0usize)) };
    }
}

#[pgrx::pg_guard]
extern "C-unwind" fn release_at_exit(_code: i32, _argument: pg_sys::Datum) {
    if let Some(gate) = HELD.replace(None) {
        gate.open();
    }
}
