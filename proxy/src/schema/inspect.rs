//! Asks a server for what a snapshot has. Nothing on it is changed.

mod accounts;
mod definitions;
mod grants;
mod native;
mod privileges;
mod replication;
mod rows;
mod surroundings;
mod tables;

use anyhow::Result;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

pub(super) use self::accounts::accounts;
pub(super) use self::privileges::DENIED_TABLE;
pub use self::replication::replication;
use self::tables::Listed;
use super::counting::counts;
use super::matched::plain_rules;
use super::snapshot::Snapshot;
use crate::config::Config;

/// How long a table's lock is waited for, seconds. Who comes after a waiting ALTER TABLE waits with it.
pub(super) const LOCK_WAIT_S_MAX: u32 = 2;

/// How much of a server a snapshot has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The tables that rules match.
    Tables,
    /// And how far their ids have come.
    Ids,
    /// Tables, and what else decides what becomes of statements: all that may change while the proxy runs.
    Statements,
    /// The same, and what people need to know.
    All,
}

/// Reads the server's schema, as far as it concerns the rules.
///
/// # Errors
/// The server cannot be asked.
pub async fn inspect(conn: &mut Conn, config: &Config, extent: Extent) -> Result<Snapshot> {
    let server = tables::server(conn).await?;
    let rules = plain_rules(config, &server);
    let Listed {
        tables,
        others,
        columns_of_views,
    } = tables::tables(conn, &rules).await?;
    let mut snapshot = Snapshot {
        server,
        tables,
        others,
        ..Snapshot::default()
    };
    let (has_context, has_all) = match extent {
        Extent::Tables => (false, false),
        Extent::Ids => {
            tables::largest(conn, config, &mut snapshot).await?;
            (false, false)
        }
        Extent::Statements => (true, false),
        Extent::All => (true, true),
    };
    if has_context {
        conn.query_drop(format!("SET SESSION lock_wait_timeout = {LOCK_WAIT_S_MAX}"))
            .await?;
        tables::largest_behind_fences(conn, config, &mut snapshot).await;
        snapshot.context = Some(definitions::context(conn, columns_of_views).await?);
        if !counts(&snapshot, config).is_empty() {
            snapshot.native = Some(native::native(conn).await?);
        }
    }
    if has_all {
        snapshot.surroundings = Some(surroundings::surroundings(conn, config, &snapshot).await?);
    }
    Ok(snapshot)
}
