//! A server that pg_upgrade started: it restores databases before anything of theirs has loaded this library.

use keywright_core::cause::Cause;

use crate::failure::Failure;
use crate::sys;

/// Refuses to be loaded into a server that pg_upgrade started without the preload. pg_upgrade loads every library that the old
/// cluster uses before it changes anything, and would fail half-way at the labels of databases.
///
/// # Errors
/// It is such a server.
pub fn require_preload() -> Result<(), Failure> {
    if !sys::is_upgrading() {
        return Ok(());
    }
    Err(Failure::new(
        Cause::NotPreloaded,
        "keywright is not preloaded, so pg_upgrade cannot carry its databases over",
    )
    .detail("Worker ids are security labels of databases, which the new cluster restores only with the library preloaded.")
    .hint("Add keywright to shared_preload_libraries in postgresql.conf of the new cluster."))
}
