//! Takes snapshots, through connections of the proxy's own.

use std::time::Duration;

use anyhow::{Context, Result};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::time::timeout;

use super::inspect::{Extent, accounts, inspect};
use super::snapshot::Snapshot;
use crate::config::{Config, Listener};

/// How long reading one server may take, milliseconds.
const READ_MS_MAX: u64 = 60_000;

/// The `sql_mode` of the program's own connections. A server reads the whole definition of a table when it sets its counter, and
/// refuses one with a default such as `'0000-00-00'` where the mode forbids zero dates (1067).
pub const ADMIN_SQL_MODE: &str = "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION";

/// Connects to a listener's server as its `admin`: the one place where that is done.
///
/// # Errors
/// There is no admin url, it cannot be read, or the server cannot be reached in time.
pub async fn connect(config: &Config, listener: &Listener) -> Result<Conn> {
    let admin = listener.admin.as_ref().context("there is no admin url")?;
    let connecting = async {
        let mut conn = Conn::new(admin.opts()).await?;
        let mode = format!("SET SESSION sql_mode = '{ADMIN_SQL_MODE}'");
        conn.query_drop(mode).await?;
        Ok(conn)
    };
    let connected = timeout(Duration::from_millis(config.connect_ms_max), connecting)
        .await
        .context("connecting took longer than connect_ms_max")?;
    connected.map_err(|error| anyhow::anyhow!("{}", admin.not_reached(&error)))
}

/// Takes a snapshot of a listener's server.
///
/// # Errors
/// There is no admin url, or the server cannot be asked.
pub async fn take(config: &Config, listener: &Listener, extent: Extent) -> Result<Snapshot> {
    let mut conn = connect(config, listener).await?;
    let read = async {
        let mut snapshot = inspect(&mut conn, config, extent).await?;
        // Else it is clients whom the server sees, wherever they are.
        if extent == Extent::All && !listener.upstream_proxy_protocol {
            snapshot.accounts = Some(accounts(&mut conn).await?);
        }
        Ok(snapshot)
    };
    let snapshot = in_time(read).await?;
    conn.disconnect().await?;
    Ok(snapshot)
}

/// A listener, and a snapshot of its server, or why there is none.
pub struct Taken<'a> {
    /// The listener.
    pub listener: &'a Listener,
    /// The snapshot.
    pub snapshot: Result<Snapshot>,
}

/// Takes a snapshot of each listener's server.
pub async fn take_all(config: &Config, extent: Extent) -> Vec<Taken<'_>> {
    let mut taken = Vec::new();
    for listener in &config.listeners {
        let snapshot = take(config, listener, extent).await;
        taken.push(Taken { listener, snapshot });
    }
    taken
}

pub(super) async fn in_time<T>(read: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(Duration::from_millis(READ_MS_MAX), read)
        .await
        .with_context(|| format!("looking at the tables took longer than {READ_MS_MAX} ms"))?
}
