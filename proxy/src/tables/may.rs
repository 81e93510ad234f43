//! What would end a switch: what is in its way on the server, and what the listener's own account is not allowed to do.
//!
//! Lists of grants do not tell: those of roles, revokes in part and names with wildcards are missing in one or another of them. So the
//! server is asked to do it, in a way that it must refuse for another reason, which it comes to only behind its look at privileges.
//! Nobody waits for that: an ALTER TABLE of a column that is not there takes the lock that other sessions' rows do not mind, and LOCK
//! TABLES, a privilege of schemas, is tried on a table that is not there. A table that somebody else alters or locks keeps it waiting.

use std::collections::BTreeSet;

use anyhow::Result;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::columns::quoted;
use super::columns::{Column, with_rule};
use super::inspection::Inspection;
use crate::config::Config;
use crate::switch::{Obstacles, obstacles};

/// The servers' errors for want of a privilege: on a schema, on a table or a column.
const DENIED_SCHEMA: &[u16] = &[1044];
const DENIED_TABLE: &[u16] = &[1044, 1142, 1143];
/// The same, and what a server with a binary log says to those without SUPER before it looks at TRIGGER.
const NOT_SHOWN: &[u16] = &[1044, 1142, 1419];
/// MariaDB's server_id unless somebody sets it.
const DEFAULT_ID: u64 = 1;
/// A name that neither a table nor a column has.
const NOBODY: &str = "keywright asks whether it may";

/// Says what would end a switch.
pub(super) async fn switchable(
    server: &mut Conn,
    config: &Config,
    columns: &[Column],
    found: &mut Inspection,
) -> Result<()> {
    let Obstacles {
        found: mut report,
        unknown,
    } = obstacles(server, config).await?;
    // In a cluster even a refused ALTER TABLE would go to all nodes.
    if report.is_empty() {
        report = not_allowed(server, config, columns).await?;
        let unseen = not_seen(server, columns).await?;
        found.notes.extend(unseen);
    }
    found.notes.extend(common_id(server).await?);
    let report = report
        .into_iter()
        .map(|what| format!("no table can be switched over to keys, or back: {what}"));
    found.warnings.extend(report);
    let unknown = unknown
        .into_iter()
        .map(|what| format!("the listener's admin account may not see {what}"));
    found.notes.extend(unknown);
    Ok(())
}

/// Of which schemas triggers and events, whose INSERTs would fail at the fence, are not shown to the account, for people.
async fn not_seen(server: &mut Conn, columns: &[Column]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let schemas: BTreeSet<String> = columns.iter().map(|its| quoted(&its.schema)).collect();
    let nobody = quoted(NOBODY);
    for schema in schemas {
        for (what, privilege, statement) in [
            (
                "triggers",
                "TRIGGER",
                format!(
                    "CREATE TRIGGER {schema}.{nobody} BEFORE INSERT ON {schema}.{nobody} FOR EACH ROW SET @keywright = 1"
                ),
            ),
            ("events", "EVENT", format!("SHOW EVENTS FROM {schema}")),
        ] {
            match server.query_drop(statement).await {
                Err(mysql_async::Error::Server(error)) if NOT_SHOWN.contains(&error.code) => {
                    found.push(format!(
                        "the listener's admin account may not see all {what} of {schema}, which takes {privilege}: one that inserts fails at \
                         the fence"
                    ));
                }
                Ok(()) | Err(mysql_async::Error::Server(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(found)
}

/// MariaDB servers have no identity of their own, and many have the id that is the default.
async fn common_id(server: &mut Conn) -> Result<Option<String>> {
    let uuid: Option<(String, String)> = server
        .query_first("SHOW GLOBAL VARIABLES LIKE 'server_uuid'")
        .await?;
    let id: Option<u64> = server.query_first("SELECT @@global.server_id").await?;
    let is_common = uuid.is_none() && id == Some(DEFAULT_ID);
    Ok(is_common.then(|| {
        format!("server_id is {DEFAULT_ID}, as by default: servers of one id, host name, port and data directory are taken for one, so give each an id of its own")
    }))
}

/// What a switch would do and may not, for people.
async fn not_allowed(
    server: &mut Conn,
    config: &Config,
    columns: &[Column],
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut schemas = BTreeSet::new();
    for (configured, column) in with_rule(config, columns) {
        if !configured.is_switched || !column.auto_increment {
            continue;
        }
        let (table, name, nobody) = (column.quoted_table(), column.quoted_name(), quoted(NOBODY));
        let mut statements = vec![
            (
                "SELECT",
                DENIED_TABLE,
                format!("SELECT {name} FROM {table} LIMIT 0"),
            ),
            (
                "ALTER",
                DENIED_TABLE,
                format!("ALTER TABLE {table} ALTER COLUMN {nobody} DROP DEFAULT"),
            ),
        ];
        let schema = quoted(&column.schema);
        if schemas.insert(schema.clone()) {
            let statement = format!("LOCK TABLES {schema}.{nobody} READ LOCAL");
            // SELECT, which it takes too, may be granted on the tables that are there.
            statements.push(("LOCK TABLES", DENIED_SCHEMA, statement));
        }
        for (privilege, denied, statement) in statements {
            match server.query_drop(statement).await {
                Err(mysql_async::Error::Server(error)) if denied.contains(&error.code) => {
                    found.push(format!(
                        "the listener's admin account lacks {privilege} on {table}: {}",
                        error.message
                    ));
                }
                // Whatever else it says, it comes behind the privilege, or says nothing of it.
                Ok(()) | Err(mysql_async::Error::Server(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(found)
}
