//! The thread of an open file: SQLite blocks, and a disk may take its time.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::FileError;
use super::open::OpenFile;
use super::place::Inodes;
use super::shared::{FileSettings, SharedFile};
use crate::engine::sqlite::{self, Answer, TooLarge};
use crate::engine::value::Value;

/// How long those who read are waited for, milliseconds, before what was committed is copied into the file.
const READERS_MS_MAX: u64 = 100;

/// A statement, and where its answer goes.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
    /// It ends a transaction that may have written.
    pub(super) commits: bool,
    /// Nobody waits any more: the transaction is undone when the thread ends.
    pub(super) reply: oneshot::Sender<Result<Answer, FileError>>,
}

/// Carries requests out until nobody can send any more.
pub(super) fn run(
    file: &OpenFile,
    settings: &FileSettings,
    shared: &SharedFile,
    requests: &Receiver<Request>,
) {
    while let Ok(request) = requests.recv() {
        let (sql, values) = (request.sql.as_str(), request.values);
        let mut answer = carry_out(file, settings, shared, sql, values);
        if request.commits && answer.is_ok() {
            answer = copy_back(&file.connection, shared.busy_ms).and(answer);
        }
        if let Err(error) = &answer
            && error.suspends()
        {
            shared.suspend(error);
        }
        // Whoever asked may have given up.
        let _ = request.reply.send(answer);
    }
}

fn carry_out(
    file: &OpenFile,
    settings: &FileSettings,
    shared: &SharedFile,
    sql: &str,
    values: Vec<Value>,
) -> Result<Answer, FileError> {
    if let Some(error) = shared.suspended() {
        return Err(error);
    }
    // Before each statement, a COMMIT too: what is written to a file without a name nobody else sees.
    match Inodes::at(&settings.path) {
        Ok(inodes) if inodes == file.inodes => {}
        Ok(_) | Err(FileError::Missing) => return Err(FileError::Replaced),
        Err(error) => return Err(error),
    }
    let values = sqlite::cells(values).map_err(|TooLarge(number)| FileError::TooLarge(number))?;
    let done = sqlite::ask(&file.connection, sql, values);
    done.map_err(|error| FileError::of(&error, shared.busy_ms))
}

/// Copies what was committed from the log into the file itself, so that whoever renames the file after a crash, or deletes the log, takes
/// nothing back. What somebody keeps from being copied, who has been reading for longer, stays in the log until the next commit.
fn copy_back(connection: &Connection, busy_ms: u64) -> Result<(), FileError> {
    let copied = connection
        .busy_timeout(Duration::from_millis(READERS_MS_MAX.min(busy_ms)))
        .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(FULL)", (), |_| Ok(())))
        .and_then(|()| connection.busy_timeout(Duration::from_millis(busy_ms)));
    copied.map_err(|error| FileError::of(&error, busy_ms))
}
