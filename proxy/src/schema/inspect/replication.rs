//! Who else writes to a server's tables, as far as it tells.

use std::collections::BTreeSet;

use anyhow::Result;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use crate::schema::replication::{Filter, Replication, Source};

/// The servers' statements that list where a server's rows come from, newest first. MariaDB's second shows one source only.
const SOURCES: [&str; 3] = [
    "SHOW REPLICA STATUS",
    "SHOW ALL SLAVES STATUS",
    "SHOW SLAVE STATUS",
];
/// Those that list who is connected as its replica.
const REPLICAS: [&str; 2] = ["SHOW REPLICAS", "SHOW SLAVE HOSTS"];
/// The server's error for a statement that it does not know.
const NO_SUCH_STATEMENT: u16 = 1064;

/// Of one server.
///
/// # Errors
/// The server cannot be asked.
pub async fn replication(conn: &mut Conn) -> Result<Replication> {
    let read_only: Option<i64> = conn.query_first("SELECT @@global.read_only").await?;
    let sources = sources(conn).await?;
    let mut running = sources.iter().flatten().filter(|source| source.is_running);
    let replicas = match running.next() {
        // Who may not see them is told of a replica, which the server is all the same.
        Some(_) => first_known(conn, &REPLICAS).await?.unwrap_or_default(),
        None => Vec::new(),
    };
    let cluster: Option<(String, String)> = conn
        .query_first("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'")
        .await?;
    Ok(Replication {
        read_only: read_only == Some(1),
        sources,
        replicas: replicas
            .iter()
            .filter_map(|row| number(row, &["Server_Id", "Server_id"]))
            .collect::<BTreeSet<u64>>(),
        galera_nodes: cluster.and_then(|(_, size)| size.parse().ok()),
        // Only MySQL has such groups, and not every account may see them.
        group_primaries: conn
            .query_first(
                "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_role = 'PRIMARY'",
            )
            .await
            .unwrap_or(None),
        prepared: conn
            .query::<Row, _>("XA RECOVER")
            .await
            .ok()
            .map(|rows| rows.len()),
    })
}

async fn sources(conn: &mut Conn) -> mysql_async::Result<Option<Vec<Source>>> {
    let is_maria = is_maria(conn).await?;
    // On MariaDB "SHOW REPLICA STATUS" shows the one without a name.
    let known = SOURCES.get(usize::from(is_maria)..).unwrap_or_default();
    let rows = first_known(conn, known).await?;
    Ok(rows.map(|rows| rows.iter().map(source).collect()))
}

async fn is_maria(conn: &mut Conn) -> mysql_async::Result<bool> {
    let version: Option<String> = conn.query_first("SELECT VERSION()").await?;
    Ok(version.is_some_and(|version| version.contains("MariaDB")))
}

/// What the first of these statements says that the server knows; `None`: the account may not ask.
async fn first_known(
    conn: &mut Conn,
    statements: &[&str],
) -> mysql_async::Result<Option<Vec<Row>>> {
    for statement in statements {
        match conn.query(*statement).await {
            Ok(rows) => return Ok(Some(rows)),
            Err(mysql_async::Error::Server(error)) if error.code == NO_SUCH_STATEMENT => {}
            Err(mysql_async::Error::Server(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The first of these columns that a row has.
fn text(row: &Row, names: &[&str]) -> String {
    let mut found = names
        .iter()
        .filter_map(|name| row.get_opt::<Option<String>, &str>(name));
    found
        .next()
        .and_then(Result::ok)
        .flatten()
        .unwrap_or_default()
}

fn number(row: &Row, names: &[&str]) -> Option<u64> {
    text(row, names).parse().ok()
}

fn source(row: &Row) -> Source {
    let host = text(row, &["Source_Host", "Master_Host"]);
    let port = text(row, &["Source_Port", "Master_Port"]);
    let list = |name: &str| -> Vec<String> {
        let text = text(row, &[name]);
        let parts = text.split(',').map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let runs = |names: &[&str]| text(row, names) != "No";
    Source {
        server_id: number(row, &["Source_Server_Id", "Master_Server_Id"]),
        at: format!("{host}:{port}"),
        is_running: runs(&["Replica_IO_Running", "Slave_IO_Running"])
            || runs(&["Replica_SQL_Running", "Slave_SQL_Running"]),
        filter: Filter {
            only: list("Replicate_Do_DB"),
            never: list("Replicate_Ignore_DB"),
            only_tables: list("Replicate_Do_Table"),
            only_like: list("Replicate_Wild_Do_Table"),
            is_renaming: !list("Replicate_Rewrite_DB").is_empty(),
        },
    }
}
