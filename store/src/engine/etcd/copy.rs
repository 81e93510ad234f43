//! A copy of the store's rows in memory, in which statements are carried out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value as Cell;
use serde_json::{Map, Value as Json};

use super::error::EtcdError;
use super::row_key::row_key;
use crate::engine::sqlite::{self, Answer, TooLarge};
use crate::engine::value::Value;

/// The tables, as a file has them.
const TABLES: &str = include_str!("../../../../sql/sqlite/keywright_store.sql");

/// What a transaction did to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Put { key: String, value: String },
    Remove { key: String },
}

/// The rows.
pub(super) struct RowsCopy {
    connection: Connection,
    /// What statements take for the time, unix milliseconds.
    clock_ms: Arc<AtomicI64>,
    tables: HashMap<String, Table>,
    /// As they were read or committed last: keys, without the prefix, and values.
    rows: BTreeMap<String, String>,
}

struct Table {
    columns: Vec<String>,
    /// Places of the primary key's columns, in its order.
    primary: Vec<usize>,
}

impl RowsCopy {
    pub(super) fn new() -> Result<Self, EtcdError> {
        let connection = Connection::open_in_memory()?;
        let clock_ms = Arc::new(AtomicI64::new(0));
        go_by(&connection, Arc::clone(&clock_ms))?;
        connection.execute_batch(TABLES)?;
        let tables = tables(&connection)?;
        Ok(Self {
            connection,
            clock_ms,
            tables,
            rows: BTreeMap::new(),
        })
    }

    pub(super) fn set_clock(&self, moment_ms: i64) {
        self.clock_ms.store(moment_ms, Ordering::Relaxed);
    }

    pub(super) fn begin(&self) -> Result<(), EtcdError> {
        Ok(self.connection.execute_batch("BEGIN")?)
    }

    pub(super) fn rollback(&self) -> Result<(), EtcdError> {
        Ok(self.connection.execute_batch("ROLLBACK")?)
    }

    /// Keeps what the transaction did: these changes.
    pub(super) fn commit(&mut self, changes: Vec<Change>) -> Result<(), EtcdError> {
        self.connection.execute_batch("COMMIT")?;
        for change in changes {
            match change {
                Change::Put { key, value } => self.rows.insert(key, value),
                Change::Remove { key } => self.rows.remove(&key),
            };
        }
        Ok(())
    }

    pub(super) fn ask(&self, sql: &str, values: Vec<Value>) -> Result<Answer, EtcdError> {
        let values =
            sqlite::cells(values).map_err(|TooLarge(number)| EtcdError::TooLarge(number))?;
        Ok(sqlite::ask(&self.connection, sql, values)?)
    }

    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.rows.len()).unwrap_or(u64::MAX)
    }

    pub(super) fn clear(&mut self) -> Result<(), EtcdError> {
        for table in self.tables.keys() {
            self.connection
                .execute(&format!("DELETE FROM {table}"), ())?;
        }
        self.rows.clear();
        Ok(())
    }

    /// Takes a row over, as it stands in etcd.
    pub(super) fn put(&mut self, key: &str, value: &[u8]) -> Result<(), EtcdError> {
        let damaged = |what: &str| EtcdError::Damaged(format!("key {key:?}: {what}"));
        let (name, _) = key.split_once('/').unwrap_or((key, ""));
        let table = self.tables.get(name);
        let table = table.ok_or_else(|| damaged("it is no row of the store's"))?;
        let row: Map<String, Json> =
            serde_json::from_slice(value).map_err(|error| damaged(&error.to_string()))?;
        let mut cells = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            let value = row.get(column);
            let value = value.ok_or_else(|| damaged(&format!("there is no {column:?}")))?;
            let cell = cell(value);
            cells.push(cell.ok_or_else(|| damaged(&format!("{column:?} is {value}")))?);
        }
        if row.len() != table.columns.len() {
            return Err(damaged("it has other columns than the table"));
        }
        if table.key(name, &cells).as_deref() != Some(key) {
            return Err(damaged("the row is another's"));
        }
        let places = vec!["?"; cells.len()].join(", ");
        let insert = format!(
            "INSERT OR REPLACE INTO {name} ({}) VALUES ({places})",
            table.columns.join(", ")
        );
        let done = sqlite::ask(&self.connection, &insert, cells);
        done.map_err(|error| damaged(&error.to_string()))?;
        self.rows.insert(key.to_owned(), String::new());
        Ok(())
    }

    /// From here on these are the rows that changes are told from.
    pub(super) fn settle(&mut self) -> Result<(), EtcdError> {
        if self.rows.values().any(String::is_empty) {
            self.rows = self.rows_now()?;
        }
        Ok(())
    }

    /// What the transaction has done so far.
    pub(super) fn changes(&self) -> Result<Vec<Change>, EtcdError> {
        let now = self.rows_now()?;
        let removed = self.rows.keys().filter(|key| !now.contains_key(*key));
        let mut changes: Vec<Change> = removed
            .map(|key| Change::Remove { key: key.clone() })
            .collect();
        for (key, value) in now {
            if self.rows.get(&key) != Some(&value) {
                changes.push(Change::Put { key, value });
            }
        }
        Ok(changes)
    }

    fn rows_now(&self) -> Result<BTreeMap<String, String>, EtcdError> {
        let mut rows = BTreeMap::new();
        for (name, table) in &self.tables {
            let select = format!("SELECT {} FROM {name}", table.columns.join(", "));
            let mut statement = self.connection.prepare_cached(&select)?;
            let mut found = statement.query(())?;
            while let Some(row) = found.next()? {
                let cells = (0..table.columns.len()).map(|at| row.get::<_, Cell>(at));
                let cells = cells.collect::<rusqlite::Result<Vec<Cell>>>()?;
                let key = table.key(name, &cells);
                let (Some(key), Some(value)) = (key, table.value(cells)) else {
                    return Err(EtcdError::Other(format!(
                        "a row of {name} cannot be written"
                    )));
                };
                rows.insert(key, value);
            }
        }
        Ok(rows)
    }
}

impl Table {
    fn key(&self, name: &str, cells: &[Cell]) -> Option<String> {
        let primary = self.primary.iter().map(|at| cells.get(*at).cloned());
        row_key(name, &primary.collect::<Option<Vec<Cell>>>()?)
    }

    fn value(&self, cells: Vec<Cell>) -> Option<String> {
        let mut row = Map::new();
        for (column, cell) in self.columns.iter().zip(cells) {
            row.insert(column.clone(), json(cell)?);
        }
        Some(Json::Object(row).to_string())
    }
}

/// Statements that ask SQLite for the time get the store's, as seconds with milliseconds: the function they call is replaced.
fn go_by(connection: &Connection, clock_ms: Arc<AtomicI64>) -> Result<(), EtcdError> {
    let now = move |_: &Context<'_>| {
        let ms = clock_ms.load(Ordering::Relaxed);
        #[expect(
            clippy::cast_precision_loss,
            reason = "moments have far fewer digits than a double"
        )]
        Ok(ms as f64 / 1000.0)
    };
    connection.create_scalar_function("unixepoch", 1, FunctionFlags::SQLITE_UTF8, now)?;
    Ok(())
}

/// The tables and their columns, as the file of statements makes them.
fn tables(connection: &Connection) -> Result<HashMap<String, Table>, EtcdError> {
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'keywright%'";
    let columns = "SELECT name, pk FROM pragma_table_info(?) ORDER BY cid";
    let mut tables = HashMap::new();
    let mut names = connection.prepare(names)?;
    let names = names.query_map((), |row| row.get::<_, String>(0))?;
    for name in names {
        let name = name?;
        let mut found = connection.prepare_cached(columns)?;
        let found = found.query_map((&name,), |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        let found = found.collect::<rusqlite::Result<Vec<(String, i64)>>>()?;
        let mut primary: Vec<(i64, usize)> = found
            .iter()
            .enumerate()
            .filter(|(_, (_, place))| *place > 0)
            .map(|(at, (_, place))| (*place, at))
            .collect();
        primary.sort_unstable();
        let table = Table {
            columns: found.into_iter().map(|(column, _)| column).collect(),
            primary: primary.into_iter().map(|(_, at)| at).collect(),
        };
        tables.insert(name, table);
    }
    Ok(tables)
}

fn cell(value: &Json) -> Option<Cell> {
    match value {
        Json::Null => Some(Cell::Null),
        Json::Number(number) => number.as_i64().map(Cell::Integer),
        Json::String(text) => Some(Cell::Text(text.clone())),
        Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

fn json(cell: Cell) -> Option<Json> {
    match cell {
        Cell::Null => Some(Json::Null),
        Cell::Integer(number) => Some(Json::from(number)),
        Cell::Text(text) => Some(Json::String(text)),
        Cell::Real(_) | Cell::Blob(_) => None,
    }
}
