//! The server, and the tables that rules match.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result};
use keywright_session::{Mode, Rules};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::rows::{Name, OWN_SCHEMAS, number, text};
use crate::config::Config;
use crate::schema::column_type::ColumnType;
use crate::schema::key_column::KeyColumn;
use crate::schema::matched::key_columns;
use crate::schema::snapshot::{Column, Server, Snapshot, Table};
use crate::schema::statistics::forget_old_statistics;

/// What servers call tables that rows go into. MariaDB has a word of its own for those that keep their history.
const BASE_TYPES: [&str; 2] = ["BASE TABLE", "SYSTEM VERSIONED"];

pub(super) async fn server(conn: &mut Conn) -> Result<Server> {
    let state: Option<(String, u64)> = conn
        .query_first("SELECT VERSION(), @@lower_case_table_names")
        .await?;
    let (version, lower_case) = state.context("the server says nothing of itself")?;
    Ok(Server {
        version,
        lower_case: lower_case != 0,
    })
}

/// What information_schema lists.
pub(super) struct Listed {
    /// The tables that rules match.
    pub(super) tables: Vec<Table>,
    /// The others, if a rule matches none.
    pub(super) others: Vec<Name>,
    pub(super) columns_of_views: HashMap<Name, Vec<String>>,
}

/// The tables that rules match, and of all views the columns.
///
/// Tables and columns are asked for apart: MariaDB joins names in another case, too.
pub(super) async fn tables(conn: &mut Conn, rules: &Rules) -> Result<Listed> {
    // How far tags are raised, and which tables have the fence, is read off these counters.
    let forgotten = forget_old_statistics(conn).await;
    forgotten.context("the server does not say counters of tables as they are now")?;
    let rows: Vec<Row> = conn
        .query(format!(
            "SELECT table_schema, table_name, table_type, auto_increment, engine, create_options FROM information_schema.tables \
             WHERE table_schema NOT IN ({OWN_SCHEMAS}) ORDER BY table_schema, table_name"
        ))
        .await?;
    let (views, rows): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| text(row, 2) == "VIEW");
    let mut of_views: HashMap<Name, Vec<String>> =
        views.iter().map(|row| (name(row), Vec::new())).collect();
    let (mut tables, others) = by_rules(&rows, rules);
    let rows: Vec<Row> = conn
        .query(format!(
            "SELECT table_schema, table_name, column_name, column_type, character_maximum_length, extra, is_nullable \
             FROM information_schema.columns WHERE table_schema NOT IN ({OWN_SCHEMAS}) \
             ORDER BY table_schema, table_name, ordinal_position"
        ))
        .await?;
    let mut of_tables: HashMap<Name, Vec<Column>> = tables
        .iter()
        .map(|table| ((table.schema.clone(), table.name.clone()), Vec::new()))
        .collect();
    for row in &rows {
        let name = name(row);
        if let Some(columns) = of_tables.get_mut(&name) {
            columns.push(column(row));
        } else if let Some(columns) = of_views.get_mut(&name) {
            columns.push(text(row, 2));
        }
    }
    for table in &mut tables {
        let name = (table.schema.clone(), table.name.clone());
        table.columns = of_tables.remove(&name).unwrap_or_default();
    }
    Ok(Listed {
        tables,
        others,
        columns_of_views: of_views,
    })
}

/// Tables that rules match, yet without columns, and the others, if a rule matches none.
fn by_rules(rows: &[Row], rules: &Rules) -> (Vec<Table>, Vec<Name>) {
    let (mut tables, mut others) = (Vec::new(), Vec::new());
    let mut matching = HashSet::new();
    for row in rows {
        let (schema, name) = name(row);
        let is_base = BASE_TYPES.contains(&text(row, 2).as_str());
        match rules.find(schema.as_bytes(), name.as_bytes()) {
            Some((rule, _)) => {
                matching.insert(rule);
                tables.push(Table {
                    schema,
                    name,
                    is_base,
                    counter: number(row, 3),
                    engine: text(row, 4),
                    is_partitioned: text(row, 5).contains("partitioned"),
                    ..Table::default()
                });
            }
            None if is_base => others.push((schema, name)),
            None => {}
        }
    }
    if matching.len() == rules.rules().len() {
        others.clear();
    }
    (tables, others)
}

fn name(row: &Row) -> Name {
    (text(row, 0), text(row, 1))
}

fn column(row: &Row) -> Column {
    let extra = text(row, 5);
    Column {
        name: text(row, 2),
        kind: ColumnType {
            name: text(row, 3).to_lowercase(),
            length: number(row, 4).unwrap_or(0),
        },
        auto_increment: extra.contains("auto_increment"),
        is_not_null: text(row, 6) == "NO",
        is_invisible: extra.to_uppercase().contains("INVISIBLE"),
    }
}

/// Reads the largest number in each key column in which it is found at once.
pub(super) async fn largest(
    conn: &mut Conn,
    config: &Config,
    snapshot: &mut Snapshot,
) -> Result<()> {
    let leading = leading_columns(conn).await?;
    for column in key_columns(snapshot, config) {
        let name = [&column.schema, &column.table, &column.name].map(String::clone);
        let is_found_at_once =
            column.auto_increment || column.integer_max().is_some() && leading.contains(&name);
        if !is_found_at_once {
            continue;
        }
        let largest = largest_in(conn, &column).await?;
        note_largest(snapshot, &column, largest);
    }
    Ok(())
}

/// The same of tables whose rules observe and that have a fence, or what looks like one: the counter of a full column. What cannot be read of one, as while
/// somebody has locked it, is not known.
pub(super) async fn largest_behind_fences(
    conn: &mut Conn,
    config: &Config,
    snapshot: &mut Snapshot,
) {
    let observes = |column: &KeyColumn| {
        let rule = config.rules.get(column.rule);
        rule.is_some_and(|rule| rule.rule.mode == Mode::Observe)
    };
    for column in key_columns(snapshot, config) {
        if column.auto_increment
            && column.fenced
            && observes(&column)
            && let Ok(largest) = largest_in(conn, &column).await
        {
            note_largest(snapshot, &column, largest);
        }
    }
}

fn note_largest(snapshot: &mut Snapshot, column: &KeyColumn, largest: u64) {
    let mut tables = snapshot.tables.iter_mut();
    let table = tables.find(|table| table.schema == column.schema && table.name == column.table);
    if let Some(table) = table {
        table.largest = Some(largest);
    }
}

/// The columns with which an index begins: schema, table and column.
async fn leading_columns(conn: &mut Conn) -> Result<HashSet<[String; 3]>> {
    let rows: Vec<Row> = conn
        .query(format!(
            "SELECT table_schema, table_name, column_name FROM information_schema.statistics \
             WHERE seq_in_index = 1 AND table_schema NOT IN ({OWN_SCHEMAS})"
        ))
        .await?;
    let names = rows
        .iter()
        .map(|row| [0, 1, 2].map(|index| text(row, index)));
    Ok(names.collect())
}

/// 0 if there is none, or only ids below.
async fn largest_in(conn: &mut Conn, column: &KeyColumn) -> Result<u64> {
    let (table, name) = (column.quoted_table(), column.quoted_name());
    let question = format!("SELECT CAST(GREATEST(MAX({name}), 0) AS UNSIGNED) FROM {table}");
    let largest: Option<Option<u64>> = conn.query_first(question).await?;
    Ok(largest.flatten().unwrap_or(0))
}
