//! Calls into the server, each behind a safe function: state of the session, identity of the server, sequences,
//! write-ahead log, waiting. What can raise a PostgreSQL error says so; such an error unwinds as a panic that the
//! entry point gives back to the server, so guards on the stack are dropped.

use std::ffi::{CStr, CString};
use std::time::Duration;

use pgrx::{GucEnum, GucSetting, IntoDatum, pg_sys};

use crate::backend::BackendCell;

/// Index of SYNC_REP_WAIT_FLUSH in the list of positions that standbys confirmed.
const WAIT_FLUSH: usize = 1;

// These cannot raise an error, so they are called without the guard that pgrx puts around every other call: it costs
// more than they do, on every id.
mod unguarded {
    use pgrx::pg_sys::Oid;
    unsafe extern "C" {
        pub fn GetUserId() -> Oid;
    }
}

/// Process id of this backend.
pub fn process_id() -> i32 {
    // SAFETY: a plain integer set when the process started.
    unsafe { pg_sys::MyProcPid }
}

/// The database this session is connected to.
#[inline]
pub fn database() -> pg_sys::Oid {
    // SAFETY: a plain integer set when the session started.
    unsafe { pg_sys::MyDatabaseId }
}

/// The role whose privileges count now.
#[inline]
pub fn user() -> pg_sys::Oid {
    // SAFETY: reads one integer of the process; GetUserId only asserts that it is set, which it is in every session.
    unsafe { unguarded::GetUserId() }
}

/// Whether the transaction may not write: it said so, or the server is a standby.
#[inline]
pub fn is_read_only() -> bool {
    // SAFETY: a plain flag of the process.
    unsafe { pg_sys::XactReadOnly }
}

/// Whether the database's encoding is Rust's.
pub fn encoding_is_utf8() -> bool {
    // SAFETY: reads what was set when the session started; raises no error.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    encoding == pg_sys::pg_enc::PG_UTF8.cast_signed()
}

/// Whether CREATE EXTENSION or ALTER EXTENSION UPDATE is running a script, which makes new objects the extension's.
pub fn runs_extension_script() -> bool {
    // SAFETY: a plain flag of the process.
    unsafe { pg_sys::creating_extension }
}

/// Whether a parallel query is running, in its leader or in a worker of it.
pub fn is_parallel() -> bool {
    // SAFETY: reads the transaction state of this backend.
    unsafe { pg_sys::IsInParallelMode() }
}

/// Whether the server preloads libraries at this moment.
pub fn is_preloading() -> bool {
    // SAFETY: a plain flag of the process.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// Whether pg_upgrade started this server.
pub fn is_upgrading() -> bool {
    // SAFETY: a plain flag of the process.
    unsafe { pg_sys::IsBinaryUpgrade }
}

/// Has misspelt settings of keywright told of instead of ignored: with a warning in postgresql.conf, with an error (from
/// PostgreSQL 15 on) in SET.
pub fn refuse_unknown_settings() {
    // SAFETY: the prefix is a constant C string, which the server copies.
    unsafe {
        #[cfg(feature = "pg14")]
        pg_sys::EmitWarningsOnPlaceholders(c"keywright".as_ptr());
        #[cfg(not(feature = "pg14"))]
        pg_sys::MarkGUCPrefixReserved(c"keywright".as_ptr());
    }
}

/// Whether changes reach the disk at all.
pub fn fsync_is_on() -> bool {
    // SAFETY: a plain flag of the process.
    unsafe { pg_sys::enableFsync }
}

/// An unpredictable number.
pub fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer is as long as said. Where the machine has no randomness the time of day, to the microsecond, serves.
    unsafe {
        if !pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) {
            return pg_sys::GetCurrentTimestamp().cast_unsigned();
        }
    }
    u64::from_ne_bytes(bytes)
}

/// Number that initdb gave this cluster; copies and standbys share it.
pub fn system_identifier() -> u64 {
    // SAFETY: reads the control data that the server mapped at start.
    unsafe { pg_sys::GetSystemIdentifier() }
}

/// Timeline that write-ahead log is inserted on. The control file's lags a promotion by minutes; this one does not.
/// Only outside recovery.
pub fn timeline() -> u32 {
    // SAFETY: callers are past the read-only check, so the server is not in recovery; on 14 RecoveryInProgress() is what
    // sets the process's copy of the timeline.
    unsafe {
        #[cfg(feature = "pg14")]
        {
            pg_sys::RecoveryInProgress();
            pg_sys::ThisTimeLineID
        }
        #[cfg(not(feature = "pg14"))]
        pg_sys::GetWALInsertionTimeLine()
    }
}

/// The ordinal of a setting's choice, without the check of the calling thread that pgrx puts before every look.
#[inline]
pub fn choice<T: GucEnum>(setting: &'static GucSetting<T>) -> i32 {
    // SAFETY: the setting's value is one integer, which the server changes on this, the process's only thread.
    unsafe { *setting.as_ptr() }
}

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

/// Object id of a relation, if it is there. Raises only what a catalogue look-up raises.
pub fn relation(schema: &CStr, name: &str) -> Option<pg_sys::Oid> {
    let name = CString::new(name).ok()?;
    // SAFETY: both names are valid C strings for the duration of the calls.
    let oid = unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        if schema == pg_sys::InvalidOid {
            return None;
        }
        pg_sys::get_relname_relid(name.as_ptr(), schema)
    };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// The number of a relation's column; `None` if there is no such column, or it is one of the system's.
pub fn column_number(relation: pg_sys::Oid, column: &CStr) -> Option<i16> {
    // SAFETY: a catalogue look-up by object id and a valid C string.
    let number = unsafe { pg_sys::get_attnum(relation, column.as_ptr()) };
    (number > 0).then_some(number)
}

/// Object id of a role. Raises the server's error if there is none.
pub fn role(name: &CStr) -> pg_sys::Oid {
    // SAFETY: a catalogue look-up by a valid C string.
    unsafe { pg_sys::get_role_oid(name.as_ptr(), false) }
}

/// Whether `user` may use the tag of this sequence. SELECT stands for it: USAGE would also let the role advance the
/// sequence itself with `nextval`, past what shared memory knows.
pub fn may_use_sequence(sequence: pg_sys::Oid, user: pg_sys::Oid) -> bool {
    let wanted = pg_sys::AclMode::from(pg_sys::ACL_SELECT);
    // SAFETY: a catalogue look-up by object id; a relation that is gone raises an ordinary error.
    let verdict = unsafe { pg_sys::pg_class_aclcheck(sequence, user, wanted) };
    verdict == pg_sys::AclResult::ACLCHECK_OK
}

/// What a relation is locked for.
#[derive(Clone, Copy)]
pub enum LockedFor {
    /// Reading a table, as a query locks it.
    Reading,
    /// Changing a sequence, as `nextval` locks it; does not conflict with itself.
    Changing,
    /// Keeping every other session from changing a sequence.
    BeingAlone,
}

impl LockedFor {
    fn mode(self) -> pg_sys::LOCKMODE {
        match self {
            Self::Reading => pg_sys::AccessShareLock.cast_signed(),
            Self::Changing => pg_sys::RowExclusiveLock.cast_signed(),
            Self::BeingAlone => pg_sys::ShareRowExclusiveLock.cast_signed(),
        }
    }
}

/// Locks a relation without waiting, until the transaction ends or [`unlock`] gives the lock back.
pub fn try_lock(relation: pg_sys::Oid, purpose: LockedFor) -> bool {
    // SAFETY: locking by object id, without waiting.
    unsafe { pg_sys::ConditionalLockRelationOid(relation, purpose.mode()) }
}

/// Gives back a lock that [`try_lock`] took; one that the transaction holds besides stays.
pub fn unlock(relation: pg_sys::Oid, purpose: LockedFor) {
    // SAFETY: a lock that this transaction holds, by object id.
    unsafe { pg_sys::UnlockRelationOid(relation, purpose.mode()) };
}

/// Whether a relation is there, in the state the session sees now.
pub fn is_relation(relation: pg_sys::Oid) -> bool {
    // SAFETY: a catalogue look-up; the name, null if there is none, lies in the caller's memory context.
    unsafe { !pg_sys::get_rel_name(relation).is_null() }
}

/// Indexes of a table that is locked; none of one that was dropped.
pub fn indexes(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: the table is locked, so its entry in the relation cache can be opened, and it is closed again. The list, null
    // when empty, is a copy in the caller's memory context, and is read at places below its length.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(table);
        if relation.is_null() {
            return Vec::new();
        }
        let indexes = pg_sys::RelationGetIndexList(relation);
        pg_sys::RelationClose(relation);
        if indexes.is_null() {
            return Vec::new();
        }
        let count = usize::try_from((*indexes).length).unwrap_or(0);
        (0..count)
            .map(|place| (*(*indexes).elements.add(place)).oid_value)
            .collect()
    }
}

/// Last value of a sequence, `None` if it was never advanced. Raises an error if the role in force may not read it.
pub fn sequence_last(sequence: pg_sys::Oid) -> Option<i64> {
    // SAFETY: the function takes one object id.
    unsafe {
        pgrx::direct_function_call::<i64>(pg_sys::pg_sequence_last_value, &[sequence.into_datum()])
    }
}

/// Sets a sequence so that the next value is `last + 1`. Not undone by a rollback. Raises an error if the transaction
/// may not write or the role in force may not change the sequence.
pub fn sequence_set(sequence: pg_sys::Oid, last: i64) {
    // SAFETY: the function takes an object id and a bigint.
    unsafe {
        pgrx::direct_function_call::<i64>(
            pg_sys::setval_oid,
            &[sequence.into_datum(), last.into_datum()],
        )
    };
}

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
/// Only after [`flush_log`], and only for records that do not depend on the transaction's outcome.
pub fn settle_log(before: LogPosition) {
    if before == LogPosition(0) {
        // SAFETY: a plain integer of the process that the commit compares with zero; what it stood for is on disk.
        unsafe { pg_sys::XactLastRecEnd = 0 };
    }
}

/// Makes all changes of this backend so far durable on this server and says up to where.
pub fn flush_log() -> LogPosition {
    // SAFETY: XactLastRecEnd is the end of the last record this backend inserted, which exists; XLogFlush of it waits
    // for the disk.
    unsafe {
        let end = pg_sys::XactLastRecEnd;
        pg_sys::XLogFlush(end);
        LogPosition(end)
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
    senders_max > 0 && standbys_word_demands(server_version(), word, names)
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

/// The version of the server that runs, which may be a later minor release than the one this was built for.
fn server_version() -> u32 {
    static VERSION: BackendCell<u32> = BackendCell::new(0);
    if VERSION.get() == 0 {
        // SAFETY: a setting that every server has; the answer is a C string of the server's.
        let text = unsafe {
            let text = pg_sys::GetConfigOption(c"server_version_num".as_ptr(), false, false);
            CStr::from_ptr(text)
        };
        let built_for = pg_sys::PG_VERSION_NUM;
        let number = text.to_str().ok().and_then(|text| text.parse().ok());
        VERSION.set(number.unwrap_or(built_for));
    }
    VERSION.get()
}

/// Runs as the owner of the extension until dropped. An error in between leaves the switch to the abort of the
/// (sub)transaction, which restores the role as well.
pub struct AsOwner {
    user: pg_sys::Oid,
    context: i32,
}

impl AsOwner {
    /// Switches to `owner`, in the way the server's own maintenance commands do.
    pub fn new(owner: pg_sys::Oid) -> Self {
        let mut user = pg_sys::InvalidOid;
        let mut context = 0;
        // SAFETY: both out parameters are valid; neither call raises an error.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
            pg_sys::SetUserIdAndSecContext(
                owner,
                context | pg_sys::SECURITY_LOCAL_USERID_CHANGE.cast_signed(),
            );
        }
        Self { user, context }
    }
}

impl Drop for AsOwner {
    fn drop(&mut self) {
        // SAFETY: restores what `new` read; raises no error.
        unsafe { pg_sys::SetUserIdAndSecContext(self.user, self.context) };
    }
}

/// Makes the newest committed state the active snapshot until dropped, also under REPEATABLE READ.
pub struct LatestSnapshot(());

impl LatestSnapshot {
    /// Takes the snapshot. Raises an error outside a transaction.
    pub fn push() -> Self {
        // SAFETY: functions run inside a transaction with an active snapshot; the pushed one is popped on drop or by abort.
        // A parallel query may take no new one; all its workers see what the query sees.
        unsafe {
            let snapshot = if is_parallel() {
                pg_sys::GetActiveSnapshot()
            } else {
                pg_sys::GetLatestSnapshot()
            };
            pg_sys::PushActiveSnapshot(snapshot);
        }
        Self(())
    }
}

impl Drop for LatestSnapshot {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: pops what `push` pushed; while an error unwinds the abort of the transaction does it.
            unsafe { pg_sys::PopActiveSnapshot() };
        }
    }
}

/// Class of the advisory locks that are ours.
const LOCKS_CLASS: u32 = 0x6b77_7267;
/// Object number of the server-wide lock under which worker ids are given out: an advisory lock of no database, so that it
/// stands in the way of nothing else.
const WORKERS_LOCK: u32 = 1;
/// The mode of locks that one session at a time has.
pub const EXCLUSIVE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock.cast_signed();

/// One of our advisory locks, of a database or of none.
pub fn advisory_lock(database: pg_sys::Oid, object: u32) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        locktag_field1: database.to_u32(),
        locktag_field2: LOCKS_CLASS,
        locktag_field3: object,
        locktag_field4: 2,
        locktag_type: u8::try_from(pg_sys::LockTagType::LOCKTAG_ADVISORY).unwrap_or(0),
        locktag_lockmethodid: u8::try_from(pg_sys::USER_LOCKMETHOD).unwrap_or(0),
    }
}

/// Takes the server-wide lock on the register of worker ids until the transaction ends, if it is free.
pub fn try_lock_workers() -> bool {
    let tag = advisory_lock(pg_sys::InvalidOid, WORKERS_LOCK);
    // SAFETY: a complete lock tag; the call does not wait.
    let result = unsafe { pg_sys::LockAcquire(&tag, EXCLUSIVE, false, true) };
    result != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
}

/// The number of this backend's transaction, which gets one if it has none yet. Subtransactions have their parent's. Raises
/// an error where the server gives none: in recovery, or in a parallel worker.
pub fn transaction() -> u64 {
    // SAFETY: called inside a transaction.
    unsafe { pg_sys::GetTopFullTransactionId().value }
}

/// Has the commit of this transaction flushed to disk, whatever synchronous_commit says.
pub fn force_flush_at_commit() {
    // SAFETY: sets a flag of the process that the end of the transaction clears.
    unsafe { pg_sys::ForceSyncCommit() };
}

/// The number of the innermost subtransaction, which ends as that does. Raises errors as [`transaction`].
pub fn subtransaction() -> u64 {
    // SAFETY: called inside a transaction.
    unsafe { pg_sys::GetCurrentFullTransactionId().value }
}

/// The number of this backend's transaction, if it has one.
pub fn transaction_if_any() -> Option<u64> {
    // SAFETY: reads the transaction state of this backend.
    let number = unsafe { pg_sys::GetTopFullTransactionIdIfAny().value };
    (number != 0).then_some(number)
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
    /// It ended so long ago that the server does not know any more.
    Forgotten,
}

/// The half of a transaction's number that rows and the log of commits go by.
pub fn short_number(transaction: u64) -> u32 {
    u32::try_from(transaction & u64::from(u32::MAX)).unwrap_or(0)
}

/// What became of the transaction with that number.
pub fn outcome(transaction: u64) -> Outcome {
    let number = pg_sys::TransactionId::from(short_number(transaction));
    // SAFETY: looking a transaction up; the log of commits is asked only for those that it still has, which the shared lock
    // keeps so.
    unsafe {
        if pg_sys::TransactionIdIsInProgress(number) {
            return Outcome::Open;
        }
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        let variables = pg_sys::TransamVariables;
        #[cfg(not(any(feature = "pg17", feature = "pg18")))]
        let variables = pg_sys::ShmemVariableCache;
        let next = (*variables).nextXid.value;
        let is_recent = transaction < next
            && next - transaction <= u64::from(u32::MAX)
            && !pg_sys::TransactionIdPrecedes(number, (*variables).oldestClogXid);
        match is_recent {
            false => Outcome::Forgotten,
            true if pg_sys::TransactionIdDidCommit(number) => Outcome::Committed,
            true => Outcome::Failed,
        }
    }
}

/// Whether this backend's transaction, or one of its subtransactions that was not rolled back, wrote what carries that
/// number.
pub fn is_own_transaction(number: u32) -> bool {
    // SAFETY: reads the transaction state of this backend.
    unsafe { pg_sys::TransactionIdIsCurrentTransactionId(pg_sys::TransactionId::from(number)) }
}

/// The server's InvalidSubTransactionId.
const NO_SUBTRANSACTION: pg_sys::SubTransactionId = 0;

/// Whether this transaction, or a subtransaction that was not rolled back, made the relation.
pub fn is_created_here(relation: pg_sys::Oid) -> bool {
    // SAFETY: the entry of the relation cache, null if there is no such relation, is pinned until it is closed. The server
    // keeps this field right whatever it reads anew.
    unsafe {
        let entry = pg_sys::RelationIdGetRelation(relation);
        if entry.is_null() {
            return false;
        }
        let created = (*entry).rd_createSubid != NO_SUBTRANSACTION;
        pg_sys::RelationClose(entry);
        created
    }
}

/// Whether this backend's transaction gave a relation new contents, which a rollback takes back.
pub fn is_rewritten_here(relation: pg_sys::Oid) -> bool {
    // SAFETY: as in `is_created_here`.
    unsafe {
        let entry = pg_sys::RelationIdGetRelation(relation);
        if entry.is_null() {
            return false;
        }
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let rewritten = (*entry).rd_firstRelfilenodeSubid;
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let rewritten = (*entry).rd_firstRelfilelocatorSubid;
        pg_sys::RelationClose(entry);
        rewritten != NO_SUBTRANSACTION
    }
}

/// Whether the role in force is a superuser.
pub fn is_superuser() -> bool {
    // SAFETY: looks the role in force up in the catalogue.
    unsafe { pg_sys::superuser() }
}

/// The name of a sequence in schema keywright; `None` for any other object.
pub fn own_sequence_name(relation: pg_sys::Oid) -> Option<String> {
    // SAFETY: catalogue look-ups by object id; the name, null if there is none, lies in the caller's memory context.
    unsafe {
        if pg_sys::get_rel_relkind(relation).cast_unsigned() != pg_sys::RELKIND_SEQUENCE {
            return None;
        }
        let schema = pg_sys::get_namespace_oid(c"keywright".as_ptr(), true);
        if schema == pg_sys::InvalidOid || pg_sys::get_rel_namespace(relation) != schema {
            return None;
        }
        let name = pg_sys::get_rel_name(relation);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

/// Calls `work` at the end of every transaction of this backend.
pub fn at_transaction_end(work: fn()) {
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
