//! Statements on a PostgreSQL server. Values go as text, and the server finds out of which type each is.

use std::error::Error;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::engine::error::StoreError;
use crate::engine::value::{Row, Value};

/// Begins a transaction that sees one moment.
const BEGIN_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

pub(super) async fn change(
    client: &Client,
    sql: &str,
    values: Vec<Value>,
) -> Result<u64, StoreError> {
    Ok(client
        .execute_typed(&numbered(sql), &params(&values))
        .await?)
}

pub(super) async fn rows(
    client: &Client,
    sql: &str,
    values: Vec<Value>,
) -> Result<Vec<Row>, StoreError> {
    let rows = client.query_typed(&numbered(sql), &params(&values)).await?;
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let names = first.columns().iter().map(|its| its.name().to_owned());
    let names: Arc<[String]> = names.collect();
    let row = |row: &tokio_postgres::Row| {
        let values = (0..row.len()).map(|at| value(row, at));
        Ok(Row {
            names: Arc::clone(&names),
            values: values.collect::<Result<_, StoreError>>()?,
        })
    };
    rows.iter().map(row).collect()
}

/// In one text, which takes one round trip: every program asks this several times a second.
pub(super) async fn rows_together(
    client: &Client,
    queries: &[String],
    found: &mut [Vec<Row>],
) -> Result<(), StoreError> {
    let text = format!("{BEGIN_READING}; {}; COMMIT", queries.join("; "));
    let answer = client.simple_query(&text).await?;
    // The first end is that of BEGIN.
    let mut ended = 0_usize;
    for message in &answer {
        match message {
            SimpleQueryMessage::Row(row) => {
                let names = row.columns().iter().map(|its| its.name().to_owned());
                let mut values = Vec::with_capacity(row.len());
                for at in 0..row.len() {
                    values.push(Value::from(row.try_get(at)?));
                }
                if let Some(rows) = ended.checked_sub(1).and_then(|at| found.get_mut(at)) {
                    rows.push(Row {
                        names: names.collect(),
                        values,
                    });
                }
            }
            SimpleQueryMessage::CommandComplete(_) => ended += 1,
            _ => {}
        }
    }
    Ok(())
}

/// PostgreSQL numbers the places of values. No text of ours has a question mark elsewhere.
fn numbered(sql: &str) -> String {
    let mut numbered = String::with_capacity(sql.len());
    for (at, part) in sql.split('?').enumerate() {
        if at > 0 {
            numbered.push_str(&format!("${at}"));
        }
        numbered.push_str(part);
    }
    numbered
}

fn params(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    let mut params = Vec::<(&(dyn ToSql + Sync), Type)>::with_capacity(values.len());
    for value in values {
        params.push((value, Type::UNKNOWN));
    }
    params
}

impl ToSql for Value {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Int(number) => out.put_slice(number.to_string().as_bytes()),
            Self::UInt(number) => out.put_slice(number.to_string().as_bytes()),
            Self::Bytes(bytes) => out.put_slice(bytes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// A truth is a number, as it is elsewhere.
fn value(row: &tokio_postgres::Row, at: usize) -> Result<Value, StoreError> {
    let data_type = row.columns().get(at).map(|its| its.type_().clone());
    let found = match data_type {
        Some(Type::INT8) => row.try_get::<_, Option<i64>>(at)?.map(Value::from),
        Some(Type::INT4) => {
            let number = row.try_get::<_, Option<i32>>(at)?;
            number.map(|number| Value::from(i64::from(number)))
        }
        Some(Type::BOOL) => {
            let truth = row.try_get::<_, Option<bool>>(at)?;
            truth.map(|truth| Value::from(i64::from(truth)))
        }
        Some(_) => row.try_get::<_, Option<&str>>(at)?.map(Value::from),
        None => None,
    };
    Ok(found.unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn places_are_numbered_in_their_order() {
        assert_eq!(
            numbered("UPDATE t SET a = ? WHERE b = ?"),
            "UPDATE t SET a = $1 WHERE b = $2"
        );
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
    }
}
