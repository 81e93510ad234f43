//! Transactions: their numbers, what became of them, what they wrote, and their end.

use keywright_core::age::Age;
use pgrx::pg_sys;

use crate::server::backend::BackendCell;

/// The number of this backend's transaction, which gets one if it has none yet. Subtransactions have their parent's. Raises
/// an error where the server gives none: in recovery, or in a parallel worker.
pub fn number() -> u64 {
    // SAFETY: called inside a transaction.
    unsafe { pg_sys::GetTopFullTransactionId().value }
}

/// The number of this backend's transaction, if it has one.
pub fn number_if_any() -> Option<u64> {
    // SAFETY: reads the transaction state of this backend.
    let number = unsafe { pg_sys::GetTopFullTransactionIdIfAny().value };
    (number != 0).then_some(number)
}

/// The number of the innermost subtransaction, which ends as that does. Raises errors as [`number`].
pub fn subtransaction_number() -> u64 {
    // SAFETY: called inside a transaction.
    unsafe { pg_sys::GetCurrentFullTransactionId().value }
}

/// Has the commit of this transaction flushed to disk, whatever synchronous_commit says.
pub fn force_flush_at_commit() {
    // SAFETY: sets a flag of the process that the end of the transaction clears.
    unsafe { pg_sys::ForceSyncCommit() };
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has not ended.
    Open,
    /// It committed.
    Committed,
    /// It was rolled back, or ended with its session.
    Failed,
    /// It ended so long ago that the server does not know any more: it may have committed.
    Forgotten,
}

/// The half of a transaction's number that rows and the log of commits go by.
pub fn short_number(transaction: u64) -> u32 {
    u32::try_from(transaction & u64::from(u32::MAX)).unwrap_or(0)
}

/// What became of the transaction with that number.
///
/// No lock keeps the server from cutting off its log of commits meanwhile: then, very rarely, the look-up raises the server's own error ("could not access
/// status of transaction").
pub fn outcome(transaction: u64) -> Outcome {
    // SAFETY: the server sets the pointer when it sets up its shared memory, before any session asks.
    let (next, variables) = unsafe {
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        let variables = pg_sys::TransamVariables;
        #[cfg(not(any(feature = "pg17", feature = "pg18")))]
        let variables = pg_sys::ShmemVariableCache;
        ((*variables).nextXid.value, variables)
    };
    match Age::of(transaction, next) {
        Age::Coming => return Outcome::Open,
        // The server would take it for one that is to come, which counts as open.
        Age::Past => return Outcome::Forgotten,
        Age::Known => {}
    }
    let number = pg_sys::TransactionId::from(short_number(transaction));
    // SAFETY: as above; the transaction is among those that the server compares, and its log of commits is asked only for what it still has.
    unsafe {
        if pg_sys::TransactionIdIsInProgress(number) {
            return Outcome::Open;
        }
        match pg_sys::TransactionIdPrecedes(number, (*variables).oldestClogXid) {
            true => Outcome::Forgotten,
            false if pg_sys::TransactionIdDidCommit(number) => Outcome::Committed,
            false => Outcome::Failed,
        }
    }
}

/// Whether this backend's transaction, or one of its subtransactions that was not rolled back, wrote what carries that
/// number.
pub fn is_own(number: u32) -> bool {
    // SAFETY: reads the transaction state of this backend.
    unsafe { pg_sys::TransactionIdIsCurrentTransactionId(pg_sys::TransactionId::from(number)) }
}

/// Calls `work` at the end of every transaction of this backend.
pub fn at_end(work: fn()) {
    static WORK: BackendCell<Option<fn()>> = BackendCell::new(None);
    extern "C-unwind" fn on_event(
        event: pg_sys::XactEvent::Type,
        _argument: *mut std::ffi::c_void,
    ) {
        let ended = event == pg_sys::XactEvent::XACT_EVENT_COMMIT
            || event == pg_sys::XactEvent::XACT_EVENT_ABORT
            || event == pg_sys::XactEvent::XACT_EVENT_PREPARE;
        if let (true, Some(work)) = (ended, WORK.get()) {
            work();
        }
    }
    if WORK.replace(Some(work)).is_none() {
        // SAFETY: the callback is a function of this library, which the server never unloads.
        unsafe { pg_sys::RegisterXactCallback(Some(on_event), std::ptr::null_mut()) };
    }
}

/// Whether this transaction wrote the row with that `xmin`.
pub fn wrote_row(xmin: &str) -> bool {
    xmin.parse().is_ok_and(is_own)
}
