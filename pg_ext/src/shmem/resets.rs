//! Notices that `pg_resetwal` threw the server's log away, and remembers it in a file of the data directory. What follows from it stands at
//! [`keywright_core::resets`].
//!
//! The file lies where base backups and `pg_rewind` take it along. A start without the preload sees nothing, and writes a checkpoint.

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use keywright_core::cause::Cause;
use keywright_core::resets::Resets;

use crate::failure::Failure;
use crate::server::backend::BackendCell;
use crate::server::control::{self, Control};
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
/// Nothing tells whether there is one, or it cannot be remembered: the next start would not see it.
pub fn look_at_start(was_stopped_in_order: bool) -> Result<(), Failure> {
    let read = read().map_err(|error| unsure(&format!("read \"{FILE}\""), &error))?;
    let found = Control::read()
        .and_then(|control| control.begins_log())
        .map_err(|error| {
            let what = format!("read \"{}\", or the log that it names", control::FILE);
            unsure(&what, &error)
        })?;
    let before = read.unwrap_or_else(Resets::unknown);
    let now = found.map_or(before, |found| before.with(&found, was_stopped_in_order));
    if read != Some(now) {
        kept::replace(FILE, |_| Ok(now.write()))
            .map_err(|error| unsure(&format!("write \"{FILE}\""), &error))?;
    }
    if read.is_none() {
        log::tell(&format!(
            "nothing says whether pg_resetwal lost bounds, so tags issue nothing until keywright.advance_tag: \"{FILE}\": it is damaged"
        ));
    }
    if now != before {
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

/// The failure of a start that could not do what tells it, or the next one, of a loss.
fn unsure(what: &str, error: &io::Error) -> Failure {
    Failure::new(
        Cause::BoundDamaged,
        format!("keywright could not {what}: {error}"),
    )
    .detail("Without it nothing tells whether pg_resetwal lost bounds, and ids would come twice.")
    .hint("Let the server read and write what lies there, and start it again.")
}

/// How many lost something.
pub fn lossy() -> u32 {
    LOSSY.get().unwrap_or_else(|| {
        // The server did not preload the library.
        let read = read().ok().flatten();
        let lossy = read.unwrap_or_else(Resets::unknown).lossy;
        LOSSY.set(Some(lossy));
        lossy
    })
}

/// What is remembered; `None` if the file is damaged.
fn read() -> io::Result<Option<Resets>> {
    let mut text = Vec::new();
    match File::open(FILE).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text)) {
        Ok(_) => Ok(std::str::from_utf8(&text).ok().and_then(Resets::read)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(Resets::default())),
        Err(error) => Err(error),
    }
}
