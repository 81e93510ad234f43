//! What becomes of a file that could not be read: somebody may have been copying an older state into it (`cp backup store.db`). Whoever starts on
//! that later has seen nothing, so it is told in the file, as soon as that can be read again.

use std::thread;
use std::time::Duration;

use rusqlite::TransactionBehavior;
use tracing::warn;

use super::commits::{self, copy_back};
use super::error::FileError;
use super::open::connect;
use super::shared::{FileSettings, SharedFile};

/// How often is looked.
const LOOKS_MAX: u32 = 100;
/// Between two looks, milliseconds.
const LOOK_MS: u64 = 100;
/// So many looks in a row must find the file telling it: who copies may still be at it, and write over that.
const TELLS_MIN: u32 = 3;
/// So many must find what this program has seen: it may stand in the log only, of a file that is being written over.
const AS_SEEN_MIN: u32 = 30;

/// What a look has found.
enum Look {
    /// What this program has seen is there: it was not an older state.
    AsSeen,
    /// The file tells everybody.
    Tells,
}

/// Has the file tell everybody that an older state was written into it, if one was. For so long only, and only where this program has seen more than a
/// file that it has just opened.
pub(super) fn tell_when_readable(settings: &FileSettings, shared: &SharedFile) {
    if !shared.has_seen() {
        return;
    }
    let (mut tells, mut as_seen) = (0, 0);
    for _ in 0..LOOKS_MAX {
        thread::sleep(Duration::from_millis(LOOK_MS));
        (tells, as_seen) = match look(settings, shared) {
            Ok(Look::Tells) => (tells + 1, 0),
            Ok(Look::AsSeen) => (0, as_seen + 1),
            // It is being written, or its disk has failed.
            Err(_) => (0, 0),
        };
        if tells >= TELLS_MIN || as_seen >= AS_SEEN_MIN {
            return;
        }
    }
}

fn look(settings: &FileSettings, shared: &SharedFile) -> Result<Look, FileError> {
    let busy_ms = shared.busy_ms;
    let of = |error: rusqlite::Error| FileError::of(&error, busy_ms);
    let mut connection = connect(&settings.path, busy_ms)?;
    // What is in the log only would hide what is in the file.
    copy_back(&connection, busy_ms)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(of)?;
    match commits::read(&transaction, busy_ms) {
        Err(FileError::Overwritten) => return Ok(Look::Tells),
        Ok(Some(found)) if shared.is_as_seen(&found) => return Ok(Look::AsSeen),
        Ok(Some(_) | None) => {}
        Err(error) => return Err(error),
    }
    commits::spoil(&transaction, busy_ms)?;
    transaction.commit().map_err(of)?;
    copy_back(&connection, busy_ms)?;
    warn!(
        path = %settings.path.display(),
        "an older state was written into the store's file, which says so from now on: nobody uses it before somebody has accepted it"
    );
    Ok(Look::Tells)
}
