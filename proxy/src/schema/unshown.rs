//! Whether a listener's own account may see tables of rules that no schema refresh has shown: most are newer than the last refresh.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use keywright_session::MetTable;
use keywright_store::server_identity;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Row, ServerError};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::inspect::{DENIED_TABLE, LOCK_WAIT_S_MAX};
use super::quote::{quoted, quoted_string};
use super::take::connect;
use crate::config::{Config, Listener};
use crate::log::on_one_line;

/// How long a server may take to answer of all tables, milliseconds. Meanwhile these get no keys.
pub(super) const NEW_TABLES_MS_MAX: u64 = 3_000;
/// What a server says behind its look at privileges: there is no such schema, table.
const BEHIND: &[u16] = &[1049, 1146];

/// What becomes known of tables that were asked about.
#[derive(Debug)]
pub enum TableAnswer {
    /// Whether a listener's `admin` may see this table.
    Shown(MetTable, bool),
    /// By the listener at this place of the configuration nothing more becomes known.
    End(usize),
}

/// Gives those that are on the listener's server to `answers`, in their order, each with whether its `admin` may see it, as long as anybody hears. A table
/// that is not there any more may be seen: a server says to those who may not see it that they may not, be it there or not. Without those of which it says
/// neither, as where an ALTER TABLE goes on for long.
///
/// # Errors
/// The server cannot be asked, or not about all: what it has answered by then is known.
pub async fn shown(
    config: &Config,
    listener: &Listener,
    tables: &[MetTable],
    answers: &Sender<TableAnswer>,
) -> Result<()> {
    let asked = ask(config, listener, tables, answers);
    timeout(Duration::from_millis(NEW_TABLES_MS_MAX), asked)
        .await
        .with_context(|| format!("the server took longer than {NEW_TABLES_MS_MAX} ms"))?
}

async fn ask(
    config: &Config,
    listener: &Listener,
    tables: &[MetTable],
    answers: &Sender<TableAnswer>,
) -> Result<()> {
    let mut conn = connect(config, listener).await?;
    let identity = server_identity(&mut conn).await;
    let identity = identity.map_err(|failure| anyhow!("{failure}"))?;
    conn.query_drop(format!("SET SESSION lock_wait_timeout = {LOCK_WAIT_S_MAX}"))
        .await?;
    let mut unanswered = None;
    for table in tables {
        if *table.server != *identity.as_bytes() {
            continue;
        }
        match ask_about(&mut conn, table).await? {
            Ok(is_shown) => {
                let answer = TableAnswer::Shown(table.clone(), is_shown);
                if answers.send(answer).await.is_err() {
                    break;
                }
            }
            Err(error) => unanswered = Some((table, error)),
        }
    }
    conn.disconnect().await?;
    match unanswered {
        Some((table, ServerError { code, message, .. })) => {
            let MetTable { schema, name, .. } = table;
            let said = format!("of {schema}.{name} the server says {code}, {message}");
            bail!(on_one_line(&said))
        }
        None => Ok(()),
    }
}

/// Whether the account may see a table with its column, as a schema refresh would; or the error that does not say so. Both statements pass by whoever waits
/// for the table's lock: a client's own ALTER TABLE may wait for the transaction whose statement waits for the answer.
async fn ask_about(conn: &mut Conn, table: &MetTable) -> Result<Result<bool, ServerError>> {
    let [schema, name] = [&table.schema, &table.name].map(|name| quoted(name));
    let statement = format!("SHOW CREATE TABLE {schema}.{name}");
    let may_see = match said(conn.query_drop(statement).await)? {
        Ok(()) => true,
        Err(error) => match is_shown(error.code) {
            Some(true) => return Ok(Ok(true)),
            // Of a view without SHOW VIEW, too, which a schema refresh lists all the same.
            Some(false) => false,
            None => return Ok(Err(error)),
        },
    };
    // Any privilege on a table was enough for that, and a refresh lists columns.
    let column = quoted_string(&table.column);
    let statement = format!("SHOW COLUMNS FROM {schema}.{name} WHERE Field = {column}");
    let listed: mysql_async::Result<Option<Row>> = conn.query_first(statement).await;
    match said(listed)? {
        Ok(column) => Ok(Ok(column.is_some())),
        Err(error) => match is_shown(error.code) {
            // It has gone meanwhile, if it was one that the account may see.
            Some(is_gone) => Ok(Ok(may_see && is_gone)),
            None => Ok(Err(error)),
        },
    }
}

/// What the server says, be it an error.
fn said<T>(output: mysql_async::Result<T>) -> Result<Result<T, ServerError>> {
    match output {
        Ok(output) => Ok(Ok(output)),
        Err(Error::Server(error)) => Ok(Err(error)),
        Err(error) => Err(error.into()),
    }
}

/// Whether it is a table that the account may see of which the server says that; `None`: that does not follow.
fn is_shown(error: u16) -> Option<bool> {
    let is_behind = BEHIND.contains(&error);
    (is_behind || DENIED_TABLE.contains(&error)).then_some(is_behind)
}

#[cfg(test)]
mod tests {
    use super::is_shown;

    #[test]
    fn an_error_that_says_nothing_of_privileges_is_no_answer() {
        for (error, expected) in [
            (1049, Some(true)),
            (1146, Some(true)),
            (1044, Some(false)),
            (1142, Some(false)),
            (1143, Some(false)),
            // A lock that is held, a statement that was ended, a server without memory.
            (1205, None),
            (1317, None),
            (1038, None),
        ] {
            assert_eq!(is_shown(error), expected, "{error}");
        }
    }
}
