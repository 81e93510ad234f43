//! State of this process and of its session. Nothing here raises an error.

use pgrx::pg_sys;

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

/// Whether the transaction may not write: it said so, or the server is a standby.
#[inline]
pub fn is_read_only() -> bool {
    // SAFETY: a plain flag of the process.
    unsafe { pg_sys::XactReadOnly }
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

/// Whether CREATE EXTENSION or ALTER EXTENSION UPDATE is running a script, which makes new objects the extension's.
pub fn runs_extension_script() -> bool {
    // SAFETY: a plain flag of the process.
    unsafe { pg_sys::creating_extension }
}

/// Whether a background worker makes changes that came from elsewhere: a subscription's, or those of another kind of replication.
pub fn applies_changes() -> bool {
    // SAFETY: plain integers of the process.
    unsafe {
        pg_sys::MyBackendType == pg_sys::BackendType::B_BG_WORKER
            && pg_sys::SessionReplicationRole
                == pg_sys::SESSION_REPLICATION_ROLE_REPLICA.cast_signed()
    }
}

/// Whether the database's encoding is Rust's.
pub fn encoding_is_utf8() -> bool {
    // SAFETY: reads what was set when the session started; raises no error.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    encoding == pg_sys::pg_enc::PG_UTF8.cast_signed()
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
