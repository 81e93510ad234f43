//! Notices that `pg_resetwal` threw the server's log away, and remembers it in a file of the data directory. What follows from it stands at
//! [`keywright_core::resets`].
//!
//! The file lies where base backups and `pg_rewind` take it along. A start without the preload sees nothing, and writes a checkpoint.

use std::fs::File;
use std::io::{ErrorKind, Read};

use keywright_core::cause::Cause;
use keywright_core::resets::Resets;

use crate::failure::Failure;
use crate::server::backend::BackendCell;
use crate::server::control::Control;
use crate::server::log;
use crate::shmem::kept;

const FILE: &str = "pg_stat/keywright.resets";

/// Longest file that is read, bytes: far above what is written.
const FILE_BYTES_MAX: u64 = 1024;

/// How many lost something, once it is known. Processes have it from the postmaster.
static LOSSY: BackendCell<Option<u32>> = BackendCell::new(None);

/// Looks for one at the start of the server, before any other process is there.
///
/// # Errors
/// There is one, and it cannot be remembered: the next start would not see it.
pub fn look_at_start(was_stopped_in_order: bool) -> Result<(), Failure> {
    let before = read();
    let found = Control::read()
        .ok()
        .and_then(|control| control.begins_log());
    let now = found.map_or(before, |found| before.with(&found, was_stopped_in_order));
    if now != before {
        kept::replace(FILE, |_| Ok(now.write())).map_err(|error| {
            Failure::new(
                Cause::BoundDamaged,
                format!("keywright could not write \"{FILE}\": {error}"),
            )
            .detail("It says that pg_resetwal was run. Without it ids would come twice after the next start.")
            .hint("Make the file writable for the server, and start it again.")
        })?;
        log::tell(if was_stopped_in_order {
            "pg_resetwal was run after the server was stopped in order: no bound was lost"
        } else {
            "pg_resetwal was run, and the server was not stopped in order before: \
             tags from before issue nothing until keywright.advance_tag says how far they were used"
        });
    }
    LOSSY.set(Some(now.lossy));
    Ok(())
}

/// How many lost something.
pub fn lossy() -> u32 {
    LOSSY.get().unwrap_or_else(|| {
        // The server did not preload the library.
        let lossy = read().lossy;
        LOSSY.set(Some(lossy));
        lossy
    })
}

fn read() -> Resets {
    let mut text = String::new();
    let read =
        File::open(FILE).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    let resets = match read {
        Ok(_) => Resets::read(&text).ok_or_else(|| "it is damaged".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Resets::default()),
        Err(error) => Err(error.to_string()),
    };
    resets.unwrap_or_else(|reason| {
        log::tell(&format!(
            "nothing says whether pg_resetwal lost bounds, so tags issue nothing until keywright.advance_tag: \"{FILE}\": {reason}"
        ));
        Resets::unknown()
    })
}
