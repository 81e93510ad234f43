//! The thread of an open file: SQLite blocks, and a disk may take its time.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};
use tokio::sync::oneshot;

use super::error::FileError;
use super::open::OpenFile;
use super::place::Inode;
use super::shared::{FileSettings, SharedFile};
use crate::engine::value::{Row, Value};

/// A statement, and where its answer goes.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
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
        let answer = carry_out(file, settings, shared, request.sql.as_str(), request.values);
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
    if let Some(why) = shared.suspended() {
        return Err(FileError::Suspended(why));
    }
    // Before each statement, a COMMIT too: what is written to a file without a name nobody else sees.
    if Inode::at(&settings.path).ok() != Some(file.inode) {
        return Err(FileError::Replaced);
    }
    let values = values.into_iter().map(cell);
    let values = values.collect::<Result<Vec<Cell>, FileError>>()?;
    let done = ask(&file.connection, sql, values);
    done.map_err(|error| FileError::of(&error, shared.busy_ms))
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
