//! What keeps a server's tables from being switched, as far as the server tells.

use anyhow::Result;
use keywright_session::Rule;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::replication::{Sources, sources};
use crate::config::Config;

/// What is in the way, for people.
#[derive(Debug, Default)]
pub struct Obstacles {
    /// What is.
    pub found: Vec<String>,
    /// What the account may not see.
    pub unknown: Vec<String>,
}

/// Of one server.
///
/// # Errors
/// The server cannot be asked.
pub async fn obstacles(conn: &mut Conn, config: &Config) -> Result<Obstacles> {
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    let read_only: Option<i64> = conn.query_first("SELECT @@global.read_only").await?;
    if read_only == Some(1) {
        found.push(
            "the server is read_only, so it is not the one that rows are written to".to_owned(),
        );
    }
    let switched = config.rules.iter().filter(|rule| rule.is_switched);
    let switched: Vec<&Rule> = switched.map(|configured| &configured.rule).collect();
    match sources(conn, &switched).await? {
        // A standby is one, and is told above.
        Sources::Known(_) if !found.is_empty() => {}
        Sources::Known(sources) => found.extend(sources),
        Sources::Hidden => unknown.push(
            "whether rows come from another server, which takes REPLICATION CLIENT (MariaDB: SLAVE MONITOR)"
                .to_owned(),
        ),
    }
    let cluster: Option<(String, String)> = conn
        .query_first("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'")
        .await?;
    let nodes = cluster.and_then(|(_, size)| size.parse::<u64>().ok());
    if let Some(nodes) = nodes.filter(|nodes| *nodes > 1) {
        found.push(format!(
            "the server is one of {nodes} nodes of a Galera cluster: a lock on one of them holds no writer of the others"
        ));
    }
    // Only MySQL has such groups, and not every account may see them.
    let primaries: Option<u64> = conn
        .query_first(
            "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_role = 'PRIMARY'",
        )
        .await
        .unwrap_or(None);
    if let Some(primaries) = primaries.filter(|primaries| *primaries > 1) {
        found.push(format!(
            "the server is one of {primaries} primaries of a replication group: a lock on one of them holds no writer of the others"
        ));
    }
    let prepared = conn.query("XA RECOVER").await.unwrap_or_else(|_| {
        unknown.push(
            "whether XA transactions are prepared, which takes XA_RECOVER_ADMIN on MySQL"
                .to_owned(),
        );
        Vec::<Row>::new()
    });
    if !prepared.is_empty() {
        found.push(format!(
            "{} XA transaction(s) are prepared and not ended (XA RECOVER lists them): they may keep a table locked",
            prepared.len()
        ));
    }
    Ok(Obstacles { found, unknown })
}
