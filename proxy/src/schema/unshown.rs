//! Whether a listener's own account may see tables of rules that no schema refresh has shown: most are newer than the last refresh.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use keywright_session::MetTable;
use keywright_store::server_identity;
use mysql_async::Error;
use mysql_async::prelude::Queryable;
use tokio::time::timeout;

use super::inspect::{DENIED_TABLE, LOCK_WAIT_S_MAX};
use super::quote::quoted;
use super::take::connect;
use crate::config::{Config, Listener};

/// How long a server may take to answer of all tables, milliseconds. Meanwhile these get no keys.
pub(super) const NEW_TABLES_MS_MAX: u64 = 3_000;
/// What a server says behind its look at privileges: there is no such schema, column, table.
const BEHIND: &[u16] = &[1049, 1054, 1146];

/// Adds to `answered` those that are on the listener's server, in their order, each with whether its `admin` may see it. A table that is not there
/// any more may be seen: a server says to those who may not see it that they may not, be it there or not. Without those of which it says neither, as
/// where an ALTER TABLE goes on for long.
///
/// # Errors
/// The server cannot be asked, or not about all: what it has answered by then is there.
pub async fn shown(
    config: &Config,
    listener: &Listener,
    tables: &[MetTable],
    answered: &mut Vec<(MetTable, bool)>,
) -> Result<()> {
    let asked = ask(config, listener, tables, answered);
    timeout(Duration::from_millis(NEW_TABLES_MS_MAX), asked)
        .await
        .with_context(|| format!("the server took longer than {NEW_TABLES_MS_MAX} ms"))?
}

async fn ask(
    config: &Config,
    listener: &Listener,
    tables: &[MetTable],
    answered: &mut Vec<(MetTable, bool)>,
) -> Result<()> {
    let mut conn = connect(config, listener).await?;
    let identity = server_identity(&mut conn).await;
    let identity = identity.map_err(|failure| anyhow!("{failure}"))?;
    conn.query_drop(format!("SET SESSION lock_wait_timeout = {LOCK_WAIT_S_MAX}"))
        .await?;
    for table in tables {
        if *table.server != *identity.as_bytes() {
            continue;
        }
        let [schema, name, column] =
            [&table.schema, &table.name, &table.column].map(|name| quoted(name));
        let statement = format!("SELECT {column} FROM {schema}.{name}");
        // It is not executed: that would wait for LOCK TABLES of the very client whose statement waits for the answer.
        let is_shown = match conn.prep(statement).await {
            Ok(_) => Some(true),
            Err(Error::Server(error)) => is_shown(error.code),
            Err(error) => return Err(error.into()),
        };
        answered.extend(is_shown.map(|is_shown| (table.clone(), is_shown)));
    }
    conn.disconnect().await?;
    Ok(())
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
            (1054, Some(true)),
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
