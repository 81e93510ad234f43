//! The thread of an open file: SQLite blocks, and a disk may take its time.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};
use tokio::sync::oneshot;

use super::error::FileError;
use super::open::OpenFile;
use super::place::Inodes;
use super::shared::{FileSettings, SharedFile};
use crate::engine::value::{Row, Value};

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

#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) changed: u64,
    pub(super) rows: Vec<Row>,
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
    let values = values.into_iter().map(cell);
    let values = values.collect::<Result<Vec<Cell>, FileError>>()?;
    let done = ask(&file.connection, sql, values);
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

fn ask(connection: &Connection, sql: &str, values: Vec<Cell>) -> rusqlite::Result<Answer> {
    let mut statement = connection.prepare_cached(sql)?;
    if statement.column_count() == 0 {
        let changed = statement.execute(params_from_iter(values))?;
        return Ok(Answer {
            changed: u64::try_from(changed).unwrap_or(u64::MAX),
            rows: Vec::new(),
        });
    }
    let names = statement.column_names();
    let names: Arc<[String]> = names.into_iter().map(str::to_owned).collect();
    let mut found = statement.query(params_from_iter(values))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let cells = (0..names.len()).map(|at| Ok(value(row.get::<_, Cell>(at)?)));
        rows.push(Row {
            names: Arc::clone(&names),
            values: cells.collect::<rusqlite::Result<_>>()?,
        });
    }
    Ok(Answer { changed: 0, rows })
}

fn cell(value: Value) -> Result<Cell, FileError> {
    Ok(match value {
        Value::Null => Cell::Null,
        Value::Int(number) => Cell::Integer(number),
        Value::UInt(number) => {
            Cell::Integer(i64::try_from(number).map_err(|_| FileError::TooLarge(number))?)
        }
        Value::Bytes(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Cell::Text(text),
            Err(error) => Cell::Blob(error.into_bytes()),
        },
    })
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Integer(number) => Value::Int(number),
        Cell::Real(number) => Value::from(number.to_string()),
        Cell::Text(text) => Value::from(text),
        Cell::Blob(bytes) => Value::Bytes(bytes),
    }
}
