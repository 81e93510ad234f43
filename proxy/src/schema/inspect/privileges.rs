//! What the listener's own account is not allowed to do, or to see.
//!
//! Lists of grants do not tell: those of roles, revokes in part and names with wildcards are missing in one or another of them. So the
//! server is asked to do it, in a way that it must refuse for another reason, which it comes to only behind its look at privileges.
//! Nobody waits for that: an ALTER TABLE of a column that is not there takes the lock that other sessions' rows do not mind, and LOCK
//! TABLES, a privilege of schemas, is tried on a table that is not there. A table that somebody else alters or locks keeps it waiting.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::grants::has_trigger;
use crate::config::Config;
use crate::schema::key_column::KeyColumn;
use crate::schema::matched::key_columns;
use crate::schema::quote::quoted;
use crate::schema::snapshot::{Denied, Privileges, Snapshot, Unshown};

/// The servers' errors for want of a privilege: on a schema, on a table or a column.
const DENIED_SCHEMA: &[u16] = &[1044];
pub(in crate::schema) const DENIED_TABLE: &[u16] = &[1044, 1142, 1143];
/// What a server with a binary log says to those without SUPER before it looks at TRIGGER.
const NEEDS_SUPER: u16 = 1419;
/// A name that neither a table nor a column has.
const NOBODY: &str = "keywright asks whether it may";

pub(super) async fn privileges(
    conn: &mut Conn,
    config: &Config,
    snapshot: &Snapshot,
) -> Result<Privileges> {
    let columns = key_columns(snapshot, config);
    let denied = denied(conn, config, &columns).await?;
    let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for column in &columns {
        let of_schema = tables.entry(&column.schema).or_default();
        of_schema.push(&column.table);
    }
    let mut unshown = Vec::new();
    for (schema, tables) in tables {
        unshown.extend(unshown_in(conn, schema, &tables).await?);
    }
    Ok(Privileges { denied, unshown })
}

/// Whether the server refuses a statement for want of a privilege, and what it says then.
async fn refusal(
    conn: &mut Conn,
    statement: String,
    errors: &[u16],
) -> Result<Option<mysql_async::ServerError>> {
    match conn.query_drop(statement).await {
        Err(mysql_async::Error::Server(error)) if errors.contains(&error.code) => Ok(Some(error)),
        // Whatever else it says, it comes behind the privilege, or says nothing of it.
        Ok(()) | Err(mysql_async::Error::Server(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a switch would do and may not.
async fn denied(conn: &mut Conn, config: &Config, columns: &[KeyColumn]) -> Result<Vec<Denied>> {
    let mut found = Vec::new();
    let mut schemas = BTreeSet::new();
    for column in columns {
        let configured = config.rules.get(column.rule);
        let is_switched = configured.is_some_and(|configured| configured.is_switched);
        if !is_switched || !column.auto_increment {
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
        for (privilege, errors, statement) in statements {
            if let Some(error) = refusal(conn, statement, errors).await? {
                found.push(Denied {
                    privilege,
                    table: table.clone(),
                    message: error.message,
                });
            }
        }
    }
    Ok(found)
}

/// Whether triggers and events of a schema, whose INSERTs would fail at the fence, are not all shown to the account.
async fn unshown_in(conn: &mut Conn, schema: &str, tables: &[&str]) -> Result<Vec<Unshown>> {
    let (name, nobody) = (quoted(schema), quoted(NOBODY));
    let create = format!(
        "CREATE TRIGGER {name}.{nobody} BEFORE INSERT ON {name}.{nobody} FOR EACH ROW SET @keywright = 1"
    );
    let trigger = refusal(conn, create, &[1044, 1142, NEEDS_SUPER]).await?;
    let hides_triggers = match trigger.map(|error| error.code) {
        Some(NEEDS_SUPER) => !has_trigger(conn, schema, tables).await?,
        Some(_) => true,
        None => false,
    };
    let show = format!("SHOW EVENTS FROM {name}");
    let hides_events = refusal(conn, show, &[1044, 1142]).await?.is_some();
    let unshown = |what, privilege| Unshown {
        what,
        privilege,
        schema: name.clone(),
    };
    let mut found = Vec::new();
    if hides_triggers {
        found.push(unshown("triggers", "TRIGGER"));
    }
    if hides_events {
        found.push(unshown("events", "EVENT"));
    }
    Ok(found)
}
