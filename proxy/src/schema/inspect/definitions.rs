//! What decides what becomes of statements, besides tables: settings, triggers, views, functions.

use std::collections::HashMap;

use anyhow::{Result, anyhow};
use keywright_session::in_lower_case;
use keywright_store::server_identity;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::rows::{Name, OWN_SCHEMAS};
use crate::schema::snapshot::{ListedView, Settings, StatementContext, Trigger};

pub(super) async fn context(
    conn: &mut Conn,
    mut columns_of_views: HashMap<Name, Vec<String>>,
) -> Result<StatementContext> {
    let identity = server_identity(conn).await;
    let identity = identity.map_err(|failure| anyhow!("{failure}"))?;
    let settings = settings(conn).await?;
    let triggers = triggers(conn).await?;
    let functions: Vec<String> = conn
        .query(
            "SELECT routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION'",
        )
        .await?;
    Ok(StatementContext {
        identity,
        settings,
        triggers,
        views: views(conn, &mut columns_of_views).await?,
        functions: functions.iter().map(|name| in_lower_case(name)).collect(),
    })
}

async fn settings(conn: &mut Conn) -> Result<Settings> {
    let settings: Option<(Option<String>, Option<u64>, Option<u64>)> = conn
        .query_first(
            "SELECT @@global.sql_mode, @@global.auto_increment_increment, @@connect_timeout",
        )
        .await?;
    let (sql_mode, increment, connect_timeout_s) = settings.unwrap_or_default();
    Ok(Settings {
        sql_mode: sql_mode.unwrap_or_default(),
        increment: increment.unwrap_or(1).max(1),
        connect_timeout_s: connect_timeout_s.unwrap_or(u64::MAX),
    })
}

/// A trigger may see LAST_INSERT_ID() through whatever it calls before a row goes in, and behind that where it names it.
async fn triggers(conn: &mut Conn) -> Result<Vec<Trigger>> {
    let rows: Vec<(String, String, bool)> = conn
        .query(
            "SELECT event_object_schema, event_object_table, event_manipulation = 'INSERT' AND action_timing = 'BEFORE' \
             OR LOWER(action_statement) LIKE '%last_insert_id%' OR LOWER(action_statement) LIKE '%@@identity%' \
             FROM information_schema.triggers",
        )
        .await?;
    let triggers = rows
        .into_iter()
        .map(|(schema, table, sees_last_id)| Trigger {
            schema,
            table,
            sees_last_id,
        });
    Ok(triggers.collect())
}

async fn views(
    conn: &mut Conn,
    columns: &mut HashMap<Name, Vec<String>>,
) -> Result<Vec<ListedView>> {
    // It decides how names are quoted.
    conn.query_drop("SET SESSION sql_mode = ''").await?;
    let rows: Vec<(String, String, Option<String>, bool, bool)> = conn
        .query(format!(
            "SELECT table_schema, table_name, view_definition, is_updatable = 'YES', check_option <> 'NONE' \
             FROM information_schema.views WHERE table_schema NOT IN ({OWN_SCHEMAS}) ORDER BY 1, 2"
        ))
        .await?;
    let listed = |(schema, name, definition, is_updatable, is_checked)| {
        let key = (schema, name);
        let columns = columns.remove(&key).unwrap_or_default();
        let (schema, name) = key;
        ListedView {
            schema,
            name,
            columns,
            definition: Option::unwrap_or_default(definition),
            is_updatable,
            is_checked,
        }
    };
    Ok(rows.into_iter().map(listed).collect())
}
