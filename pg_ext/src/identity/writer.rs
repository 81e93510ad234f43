//! Which writer of this database writes bounds now.

use keywright_core::writer::Writer;

use crate::server::{cluster, process};
use crate::shmem::resets;

/// Who writes bounds now.
pub fn current() -> Writer {
    Writer {
        system_identifier: cluster::system_identifier(),
        timeline: cluster::timeline(),
        database_oid: process::database().to_u32(),
        resets: resets::lossy(),
    }
}
