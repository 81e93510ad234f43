//! Locking keywright's own tables, to read them.

use std::time::{Duration, Instant};

use pgrx::pg_sys;

use crate::catalog::damage;
use crate::durable::locks::Wanted;
use crate::failure::Failure;
use crate::server::relation;
use crate::settings;

/// Locks one of keywright's tables for reading; a transaction that keeps it locked is not waited for without end.
///
/// # Errors
/// It is not free before keywright.refill_wait_ms_max has passed, or was dropped, or would not outlast a crash.
pub fn lock(table: pg_sys::Oid) -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    let name = || "keywright's own tables".to_owned();
    Wanted::to_read(table).lock(deadline, &name)?;
    if !relation::exists(table) {
        Err(damage::dropped_meanwhile())
    } else if !relation::is_permanent(table) {
        Err(damage::unlogged("one of them"))
    } else {
        Ok(())
    }
}
