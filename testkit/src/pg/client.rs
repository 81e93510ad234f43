//! Asking servers: the few shapes of question that tests have.

use std::io::{BufRead, BufReader};

use anyhow::Context;
use postgres::Client;
use postgres::error::DbError;

use crate::Result;

/// The one `bigint` that the query returns.
///
/// # Errors
/// The server's, as a [`postgres::Error`], so that [`expect_sql_error`] can look at it.
pub fn query_i64(client: &mut Client, sql: &str) -> std::result::Result<i64, postgres::Error> {
    client.query_one(sql, &[])?.try_get(0)
}

/// The one `text` that the query returns.
///
/// # Errors
/// The server's.
pub fn query_text(client: &mut Client, sql: &str) -> std::result::Result<String, postgres::Error> {
    client.query_one(sql, &[])?.try_get(0)
}

/// Runs a query of one `bigint` column as fast as the server can and adds what it returns to `ids`, in order; rows that
/// arrived before an error (a server killed meanwhile) are kept: they were issued.
///
/// # Errors
/// The server's, or the connection broke.
pub fn copy_ids(client: &mut Client, query: &str, ids: &mut Vec<i64>) -> Result<()> {
    let rows = client.copy_out(&format!("COPY ({query}) TO STDOUT"))?;
    let mut rows = BufReader::with_capacity(1 << 16, rows);
    let mut line = String::new();
    while rows.read_line(&mut line).context("reading ids")? > 0 {
        // Without its newline a line is the beginning of one.
        let Some(number) = line.strip_suffix('\n') else {
            break;
        };
        ids.push(
            number
                .parse()
                .with_context(|| format!("{number:?} is no id"))?,
        );
        line.clear();
    }
    Ok(())
}

/// What the server said, if it was the server; a reader hands the client's error on inside its own.
pub(crate) fn from_server(error: &anyhow::Error) -> Option<&DbError> {
    error.chain().find_map(|cause| {
        let direct = cause.downcast_ref::<postgres::Error>();
        let wrapped = cause.downcast_ref::<std::io::Error>();
        let wrapped = wrapped.and_then(|io| io.get_ref()?.downcast_ref());
        direct.or(wrapped)?.as_db_error()
    })
}

/// An error as the server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// Five characters.
    pub sqlstate: String,
    /// The first line.
    pub message: String,
    /// DETAIL, empty when there is none.
    pub detail: String,
    /// HINT, empty when there is none.
    pub hint: String,
}

/// Asserts that the server refused with this SQLSTATE and a message that has the fragment; returns the error, to look at
/// detail and hint.
///
/// # Panics
/// It did not refuse, or with another SQLSTATE or message, or the connection broke.
#[track_caller]
pub fn expect_sql_error<T>(
    result: std::result::Result<T, postgres::Error>,
    sqlstate: &str,
    message_has: &str,
) -> SqlError {
    let error = match result {
        Ok(_) => panic!(
            "expected an error with SQLSTATE {sqlstate} and {message_has:?}, but there was none"
        ),
        Err(error) => error,
    };
    let Some(from_server) = error.as_db_error() else {
        panic!("expected an error with SQLSTATE {sqlstate} from the server, not {error:?}");
    };
    let seen = SqlError {
        sqlstate: from_server.code().code().to_owned(),
        message: from_server.message().to_owned(),
        detail: from_server.detail().unwrap_or_default().to_owned(),
        hint: from_server.hint().unwrap_or_default().to_owned(),
    };
    assert!(
        seen.sqlstate == sqlstate && seen.message.contains(message_has),
        "expected SQLSTATE {sqlstate} and {message_has:?} in the message, not {seen:#?}"
    );
    seen
}
