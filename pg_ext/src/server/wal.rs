//! The write-ahead log: flushing it, and whether the synchronous standbys have it.

use pgrx::pg_sys;

use crate::server::cluster;

/// Index of SYNC_REP_WAIT_FLUSH in the list of positions that standbys confirmed.
const WAIT_FLUSH: usize = 1;

/// What headers of pages are rounded up to: MAXALIGN.
const ALIGNMENT: usize = 8;

/// A position in the write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition(u64);

/// Where the last record that this transaction wrote ends; zero if it wrote none.
pub fn last_record() -> LogPosition {
    // SAFETY: a plain integer of the process.
    LogPosition(unsafe { pg_sys::XactLastRecEnd })
}

/// Tells the server that what this transaction wrote since `before` needs no flush at its commit. A transaction that wrote
/// nothing else then commits without waiting for the disk a second time.
///
/// Only after [`flush`], and only for records that do not depend on the transaction's outcome.
pub fn settle(before: LogPosition) {
    if before == LogPosition(0) {
        // SAFETY: a plain integer of the process that the commit compares with zero; what it stood for is on disk.
        unsafe { pg_sys::XactLastRecEnd = 0 };
    }
}

/// Makes all changes of this backend so far durable on this server and says up to where: where the transaction wrote nothing, all that anybody
/// has, so what it read is among it.
pub fn flush() -> LogPosition {
    // SAFETY: XactLastRecEnd is the end of the last record this transaction inserted, and the other one that of a record of anybody's; both exist.
    // XLogFlush of it waits for the disk.
    unsafe {
        let end = match pg_sys::XactLastRecEnd {
            0 => end_before(pg_sys::GetXLogInsertRecPtr()),
            end => end,
        };
        pg_sys::XLogFlush(end);
        LogPosition(end)
    }
}

/// The end of the last record before the place of the next one. At the beginning of a page the header lies between them, which nobody has
/// written, so that it cannot be flushed.
fn end_before(next: u64) -> u64 {
    let page = u64::from(pg_sys::XLOG_BLCKSZ);
    // SAFETY: a plain integer of the process, set at server start.
    let segment = u64::try_from(unsafe { pg_sys::wal_segment_size }).unwrap_or(page);
    let in_page = next % page;
    let header = match (next - in_page).is_multiple_of(segment.max(page)) {
        true => size_of::<pg_sys::XLogLongPageHeaderData>(),
        false => size_of::<pg_sys::XLogPageHeaderData>(),
    };
    match u64::try_from(header.next_multiple_of(ALIGNMENT)) {
        Ok(header) if header == in_page => next - in_page,
        Ok(_) | Err(_) => next,
    }
}

/// Whether the synchronous standbys that the configuration demands, if any, have `position` on disk.
///
/// The server's own wait cannot be used: cancelled, it reports success with a warning.
pub fn standbys_have(position: LogPosition) -> bool {
    if !standbys_are_demanded() {
        return true;
    }
    // SAFETY: the control structure is mapped for the life of the process, and the confirmed position is an aligned 64-bit
    // word that only grows; reading it late only makes us wait longer.
    unsafe { (&raw const (*pg_sys::WalSndCtl).lsn[WAIT_FLUSH]).read_volatile() >= position.0 }
}

/// Has the commit of this transaction wait for these standbys, whatever synchronous_commit says.
pub fn have_commit_wait() {
    // SAFETY: a plain integer of the process.
    let level = u32::try_from(unsafe { pg_sys::synchronous_commit }).unwrap_or(0);
    let waits = level >= pg_sys::SyncCommitLevel::SYNCHRONOUS_COMMIT_REMOTE_FLUSH;
    if waits || !standbys_are_demanded() {
        return;
    }
    // SAFETY: as SET LOCAL does it, inside a transaction, whose end puts the setting back.
    unsafe {
        pg_sys::set_config_option(
            c"synchronous_commit".as_ptr(),
            c"on".as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_LOCAL,
            true,
            0,
            false,
        );
    }
}

/// Whether `synchronous_standby_names` names any, as the server's own commits see it: a backend's copy of the setting is
/// as old as its statement, the checkpointer's word in shared memory is not.
fn standbys_are_demanded() -> bool {
    // SAFETY: a plain integer of the process, set at server start. The control structure is mapped for the life of the
    // process; the byte after its array of positions is the checkpointer's word on every version and minor release from 14
    // to 18, though its name and meaning changed, and reading it late only makes us look again. The setting is a C string
    // or null.
    let (senders_max, word, names) = unsafe {
        let word = (&raw const (*pg_sys::WalSndCtl).lsn).add(1).cast::<u8>();
        let names = pg_sys::SyncRepStandbyNames;
        let named = !names.is_null() && *names != 0;
        (pg_sys::max_wal_senders, word.read_volatile(), named)
    };
    senders_max > 0 && standbys_word_demands(cluster::version(), word, names)
}

/// What the checkpointer's word means; `named` is what the backend's own copy of the setting says, which counts until the
/// checkpointer has looked at the setting for the first time.
fn standbys_word_demands(version: u32, word: u8, named: bool) -> bool {
    const INITIALISED: u8 = 1;
    const DEFINED: u8 = 2;
    // The minor releases of May 2025 tell "not looked at yet" from "none".
    let has_status = match version / 10_000 {
        14 => version >= 140_018,
        15 => version >= 150_013,
        16 => version >= 160_009,
        17 => version >= 170_005,
        _ => true,
    };
    match (has_status, word & INITIALISED != 0) {
        (true, true) => word & DEFINED != 0,
        (true, false) => named,
        (false, defined) => defined || named,
    }
}
