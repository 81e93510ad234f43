//! What this server knows of what it received while it was a standby. It lies in the server's shared memory, where it stays
//! after a promotion until the next start.

use keywright_core::evidence::LastMessage;
use pgrx::pg_sys;

use crate::server::{lock, process, timestamp};

fn unix_ms(server_us: pg_sys::TimestampTz) -> i64 {
    server_us
        .saturating_add(timestamp::SERVER_EPOCH_US)
        .div_euclid(1_000)
}

/// Whether the server is a standby, or recovers.
pub fn is_in_recovery() -> bool {
    // SAFETY: reads a flag in the server's shared memory under its own lock.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Whether the server was promoted since it started. Not so after a crash: what shared memory then says of commits is of
/// those that this server made itself.
pub fn was_promoted() -> bool {
    // SAFETY: as above.
    !is_in_recovery() && unsafe { pg_sys::PromoteIsTriggered() }
}

/// When the last commit was made that arrived before the promotion, by the primary's clock.
pub fn last_commit_ms() -> Option<i64> {
    if !was_promoted() {
        return None;
    }
    // SAFETY: reads one number in the server's shared memory under its own lock.
    let server_us = unsafe { pg_sys::GetLatestXTime() };
    (server_us != 0).then(|| unix_ms(server_us))
}

/// What the WAL receiver heard last before the promotion; `None` if there was none, or it still runs.
pub fn last_message() -> Option<LastMessage> {
    if !was_promoted() {
        return None;
    }
    // SAFETY: the structure is mapped for the life of the process. The receiver has stopped and none is started outside
    // recovery, so nobody writes what is read here. The position of replay is read under the server's own lock.
    unsafe {
        let receiver = &raw const *pg_sys::WalRcv;
        if receiver.is_null() || (*receiver).walRcvState != pg_sys::WalRcvState::WALRCV_STOPPED {
            return None;
        }
        let (sent, received) = ((*receiver).lastMsgSendTime, (*receiver).lastMsgReceiptTime);
        let named = (*receiver).latestWalEndTime;
        Some(LastMessage {
            sent_ms: unix_ms(sent),
            received_ms: unix_ms(received),
            named_end: (*receiver).latestWalEnd,
            named_ms: unix_ms(named),
            replayed: pg_sys::GetXLogReplayRecPtr(std::ptr::null_mut()),
            is_silent: sent == received && received == named,
        })
    }
}

/// Object number, beside that of the worker ids, of the lock under which a database notes a promotion.
const PROMOTION_LOCK: u32 = 2;

fn lock_tag() -> pg_sys::LOCKTAG {
    lock::advisory(process::database(), PROMOTION_LOCK)
}

/// Proof that no other session of this database notes a promotion now. An error in between leaves it to the abort of the
/// transaction, which lets go of the lock as well.
pub struct Alone(());

/// Takes the lock if it is free.
pub fn try_alone() -> Option<Alone> {
    // SAFETY: a complete lock tag; the call does not wait.
    let taken = unsafe { pg_sys::LockAcquire(&lock_tag(), lock::EXCLUSIVE, false, true) };
    // Not `then_some`: an `Alone` that is made is dropped, and gives back a lock that somebody else has.
    (taken != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL).then(|| Alone(()))
}

impl Drop for Alone {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: gives back what `try_alone` took.
            unsafe { pg_sys::LockRelease(&lock_tag(), lock::EXCLUSIVE, false) };
        }
    }
}
