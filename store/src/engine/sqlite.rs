//! Statements in SQLite, of a file or of memory.

use std::sync::Arc;

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params_from_iter};

use super::value::{Row, Value};

/// What a statement did, or found.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) changed: u64,
    pub(super) rows: Vec<Row>,
}

/// SQLite's integers are signed: this is more than it can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge(pub(super) u64);

/// The values of a statement's places.
pub(super) fn cells(values: Vec<Value>) -> Result<Vec<Cell>, TooLarge> {
    values.into_iter().map(cell).collect()
}

/// Carries a statement out.
pub(super) fn ask(
    connection: &Connection,
    sql: &str,
    values: Vec<Cell>,
) -> rusqlite::Result<Answer> {
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

fn cell(value: Value) -> Result<Cell, TooLarge> {
    Ok(match value {
        Value::Null => Cell::Null,
        Value::Int(number) => Cell::Integer(number),
        Value::UInt(number) => Cell::Integer(i64::try_from(number).map_err(|_| TooLarge(number))?),
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
