//! Statements on a MySQL or MariaDB server.

use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params};

use crate::engine::error::StoreError;
use crate::engine::value::{Row, Value};

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
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let names = first.columns_ref().iter();
    let names: Arc<[String]> = names.map(|its| its.name_str().into_owned()).collect();
    let row = |row: mysql_async::Row| Row {
        names: Arc::clone(&names),
        values: row.unwrap().into_iter().map(value).collect(),
    };
    Ok(rows.into_iter().map(row).collect())
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
