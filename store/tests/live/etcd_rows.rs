//! What stands in a store in etcd, as SQL: rows are read into memory, and what statements change there is written back by `etcdctl`, as a
//! person would.

use std::collections::BTreeMap;

use anyhow::Context;
use keywright_testkit::Result;
use keywright_testkit::etcd::EtcdCluster;
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::{Map, Value as Json};

use crate::common::rows_of;

const TABLES: &str = include_str!("../../../sql/sqlite/keywright_store.sql");

pub fn in_etcd(cluster: &EtcdCluster, prefix: &str, sql: &str) -> Result<Vec<Vec<String>>> {
    let memory = Connection::open_in_memory()?;
    memory.execute_batch(TABLES)?;
    let rows = rows_in_etcd(cluster, prefix)?;
    for (key, value) in &rows {
        let (table, _) = key.split_once('/').context("a key without table")?;
        let (columns, cells): (Vec<&str>, Vec<Cell>) = columns(value).unzip();
        let places = vec!["?"; cells.len()].join(", ");
        let columns = columns.join(", ");
        let insert = format!("INSERT INTO {table} ({columns}) VALUES ({places})");
        memory.execute(&insert, rusqlite::params_from_iter(cells))?;
    }
    let before = dump(&memory, &rows)?;
    let found = rows_of(&memory, sql)?;
    let mut requests = Vec::new();
    for (key, value) in dump(&memory, &rows)? {
        if before.get(&key) != Some(&value) {
            // `etcdctl` reads quoted text as JSON writes it.
            let key = Json::from(format!("{prefix}{key}"));
            requests.push(match value {
                Some(value) => format!("put {key} {}", Json::from(value.to_string())),
                None => format!("del {key}"),
            });
        }
    }
    cluster.change(&requests)?;
    Ok(found)
}

/// Every row by its key without prefix.
fn rows_in_etcd(
    cluster: &EtcdCluster,
    prefix: &str,
) -> Result<BTreeMap<String, Map<String, Json>>> {
    let text = cluster.ctl(&["get", "--prefix", &format!("{prefix}keywright_")])?;
    let mut lines = text.lines();
    let mut rows = BTreeMap::new();
    while let (Some(key), Some(value)) = (lines.next(), lines.next()) {
        let key = key.strip_prefix(prefix).context("another prefix")?;
        rows.insert(key.to_owned(), serde_json::from_str(value)?);
    }
    Ok(rows)
}

fn columns(row: &Map<String, Json>) -> impl Iterator<Item = (&str, Cell)> {
    row.iter().map(|(column, value)| {
        let cell = match value {
            Json::Number(number) => Cell::Integer(number.as_i64().unwrap()),
            Json::String(text) => Cell::Text(text.clone()),
            other => {
                assert!(other.is_null(), "{column} is {other}");
                Cell::Null
            }
        };
        (column.as_str(), cell)
    })
}

/// What has become of each row: rows are told by the place that they were inserted in, for statements may change primary keys.
fn dump(
    memory: &Connection,
    rows: &BTreeMap<String, Map<String, Json>>,
) -> Result<BTreeMap<String, Option<Json>>> {
    let mut dumped = BTreeMap::new();
    for (key, row) in rows {
        let (table, _) = key.split_once('/').context("a key without table")?;
        let place = rows
            .keys()
            .filter(|other| other.split_once('/').is_some_and(|(its, _)| its == table))
            .position(|other| other == key)
            .context("no such row")?;
        let columns: Vec<&str> = row.keys().map(String::as_str).collect();
        let place = match table {
            // Their primary key is the place.
            "keywright_returned" => row.get("id").context("no id")?.to_string(),
            "keywright_assigned" => row.get("worker_id").context("no number")?.to_string(),
            _ => (place + 1).to_string(),
        };
        let select = format!(
            "SELECT {} FROM {table} WHERE rowid = {place}",
            columns.join(", ")
        );
        let mut statement = memory.prepare(&select)?;
        let mut found = statement.query(())?;
        let value = match found.next()? {
            Some(found) => {
                let mut value = Map::new();
                for (at, column) in columns.iter().enumerate() {
                    let cell = match found.get(at)? {
                        Cell::Integer(number) => Json::from(number),
                        Cell::Text(text) => Json::from(text),
                        other => {
                            assert_eq!(other, Cell::Null);
                            Json::Null
                        }
                    };
                    value.insert((*column).to_owned(), cell);
                }
                Some(Json::Object(value))
            }
            None => None,
        };
        dumped.insert(key.clone(), value);
    }
    Ok(dumped)
}
