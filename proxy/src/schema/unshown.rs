//! Whether a listener's own account may see tables that get keys and that no schema refresh has shown: most are newer than the last refresh.

use anyhow::{Result, anyhow};
use keywright_session::MetTable;
use keywright_store::server_identity;
use mysql_async::prelude::Queryable;

use super::inspect::{DENIED_TABLE, LOCK_WAIT_S_MAX, refusal};
use super::quote::quoted;
use super::take::{connect, in_time};
use crate::config::{Config, Listener};

/// Of those that are on the listener's server, each with whether its `admin` may see it. A table that is not there any more may be seen: a server
/// says to those who may not see it that they may not, be it there or not.
///
/// # Errors
/// The server cannot be asked.
pub async fn shown(
    config: &Config,
    listener: &Listener,
    tables: &[MetTable],
) -> Result<Vec<(MetTable, bool)>> {
    let mut conn = connect(config, listener).await?;
    let asked = async {
        let identity = server_identity(&mut conn).await;
        let identity = identity.map_err(|failure| anyhow!("{failure}"))?;
        conn.query_drop(format!("SET SESSION lock_wait_timeout = {LOCK_WAIT_S_MAX}"))
            .await?;
        let mut answered = Vec::new();
        for table in tables {
            if *table.server != *identity.as_bytes() {
                continue;
            }
            let [schema, name, column] =
                [&table.schema, &table.name, &table.column].map(|name| quoted(name));
            let statement = format!("SELECT {column} FROM {schema}.{name} LIMIT 0");
            let denied = refusal(&mut conn, statement, DENIED_TABLE).await?;
            answered.push((table.clone(), denied.is_none()));
        }
        Ok(answered)
    };
    let answered = in_time(asked).await?;
    conn.disconnect().await?;
    Ok(answered)
}
