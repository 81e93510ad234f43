//! Waiting: interruptible sleep with a wait event.

use std::time::Duration;

use pgrx::pg_sys;

use crate::server::backend::BackendCell;

/// What pg_stat_activity shows while a backend waits here.
pub fn wait_event() -> u32 {
    static EVENT: BackendCell<u32> = BackendCell::new(0);
    if EVENT.get() == 0 {
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        // SAFETY: registers the name in shared memory once; later calls give the same number.
        EVENT.set(unsafe { pg_sys::WaitEventExtensionNew(c"KeywrightRefill".as_ptr()) });
        #[cfg(not(any(feature = "pg17", feature = "pg18")))]
        EVENT.set(pg_sys::PG_WAIT_EXTENSION);
    }
    EVENT.get()
}

/// Sleeps for at most `limit` or until something is sent to this backend. Raises the error of a cancelled or timed-out
/// statement.
pub fn sleep(limit: Duration) {
    let timeout_ms = i64::try_from(limit.as_millis()).unwrap_or(1).max(1);
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is this backend's own latch, valid for its life.
    unsafe {
        if pg_sys::WaitLatch(
            pg_sys::MyLatch,
            events.cast_signed(),
            timeout_ms,
            wait_event(),
        ) & pg_sys::WL_LATCH_SET.cast_signed()
            != 0
        {
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
    }
    check_for_interrupts();
}

/// Raises the error of a cancelled, timed-out or terminated statement.
pub fn check_for_interrupts() {
    pgrx::check_for_interrupts!();
}
