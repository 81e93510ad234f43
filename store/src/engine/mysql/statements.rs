//! Statements on a MySQL or MariaDB server.

use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params};

use crate::engine::error::StoreError;
use crate::engine::value::{Row, Value};

/// Begins a transaction that sees one moment.
const BEGIN_READING: &str =
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION READ ONLY";
const BEGIN_READING_STATEMENTS: usize = 2;

/// Without values in the text protocol, which takes one round trip, and knows statements that cannot be prepared.
pub(in crate::engine) async fn change(
    conn: &mut Conn,
    sql: &str,
    values: Vec<Value>,
) -> Result<u64, StoreError> {
    if values.is_empty() {
        conn.query_drop(sql).await?;
    } else {
        conn.exec_drop(sql, params(values)).await?;
    }
    Ok(conn.affected_rows())
}

pub(in crate::engine) async fn rows(
    conn: &mut Conn,
    sql: &str,
    values: Vec<Value>,
) -> Result<Vec<Row>, StoreError> {
    let rows: Vec<mysql_async::Row> = match values.is_empty() {
        true => conn.query(sql).await?,
        false => conn.exec(sql, params(values)).await?,
    };
    Ok(own(rows))
}

/// Begins a transaction, and finds in it what a query says: in one text, which takes one round trip.
pub(super) async fn begin(conn: &mut Conn, query: &str) -> Result<Vec<Row>, StoreError> {
    let mut results = conn
        .query_iter(format!("START TRANSACTION; {query}"))
        .await?;
    results.collect::<mysql_async::Row>().await?;
    let found = own(results.collect().await?);
    results.drop_result().await?;
    Ok(found)
}

/// In one transaction, and in one text, which takes one round trip: every program asks this several times a second.
pub(in crate::engine) async fn rows_together(
    conn: &mut Conn,
    queries: &[String],
    found: &mut [Vec<Row>],
) -> Result<(), StoreError> {
    let text = format!("{BEGIN_READING}; {}; COMMIT", queries.join("; "));
    let mut results = conn.query_iter(text).await?;
    for _ in 0..BEGIN_READING_STATEMENTS {
        results.collect::<mysql_async::Row>().await?;
    }
    for rows in found {
        *rows = own(results.collect().await?);
    }
    results.drop_result().await?;
    Ok(())
}

/// Rows as engines give them.
fn own(rows: Vec<mysql_async::Row>) -> Vec<Row> {
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    let names = first.columns_ref().iter();
    let names: Arc<[String]> = names.map(|its| its.name_str().into_owned()).collect();
    let row = |row: mysql_async::Row| Row {
        names: Arc::clone(&names),
        values: row.unwrap().into_iter().map(value).collect(),
    };
    rows.into_iter().map(row).collect()
}

fn params(values: Vec<Value>) -> Params {
    Params::Positional(values.into_iter().map(mysql_value).collect())
}

fn mysql_value(value: Value) -> mysql_async::Value {
    match value {
        Value::Null => mysql_async::Value::NULL,
        Value::Int(number) => mysql_async::Value::Int(number),
        Value::UInt(number) => mysql_async::Value::UInt(number),
        Value::Bytes(bytes) => mysql_async::Value::Bytes(bytes),
    }
}

fn value(value: mysql_async::Value) -> Value {
    match value {
        mysql_async::Value::NULL => Value::Null,
        mysql_async::Value::Int(number) => Value::Int(number),
        mysql_async::Value::UInt(number) => Value::UInt(number),
        mysql_async::Value::Bytes(bytes) => Value::Bytes(bytes),
        other @ (mysql_async::Value::Float(_)
        | mysql_async::Value::Double(_)
        | mysql_async::Value::Date(..)
        | mysql_async::Value::Time(..)) => Value::from(other.as_sql(true)),
    }
}
