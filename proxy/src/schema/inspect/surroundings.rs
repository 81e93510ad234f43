//! What is around tables with rules, for people: foreign keys, programs, and what a switch meets.

use anyhow::Result;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::privileges::privileges;
use super::replication::replication;
use super::rows::{OWN_SCHEMAS, number, text};
use crate::config::Config;
use crate::schema::column_type::ColumnType;
use crate::schema::obstacles::obstacles;
use crate::schema::snapshot::{Program, Reference, Snapshot, Surroundings, SwitchContext};

pub(super) async fn surroundings(
    conn: &mut Conn,
    config: &Config,
    snapshot: &Snapshot,
) -> Result<Surroundings> {
    let switch = match config.rules.iter().any(|rule| rule.is_switched) {
        true => Some(switch(conn, config, snapshot).await?),
        false => None,
    };
    let references = references(conn).await?;
    let programs = programs(conn).await?;
    Ok(Surroundings {
        references,
        programs,
        switch,
    })
}

async fn switch(conn: &mut Conn, config: &Config, snapshot: &Snapshot) -> Result<SwitchContext> {
    let replication = replication(conn).await?;
    // In a cluster even a refused ALTER TABLE would go to all nodes.
    let privileges = match obstacles(&replication, config).found.is_empty() {
        true => Some(privileges(conn, config, snapshot).await?),
        false => None,
    };
    let uuid: Option<(String, String)> = conn
        .query_first("SHOW GLOBAL VARIABLES LIKE 'server_uuid'")
        .await?;
    Ok(SwitchContext {
        replication,
        has_uuid: uuid.is_some(),
        server_id: conn.query_first("SELECT @@global.server_id").await?,
        privileges,
    })
}

async fn references(conn: &mut Conn) -> Result<Vec<Reference>> {
    let rows: Vec<Row> = conn
        .query(format!(
            "SELECT k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name, \
             k.table_schema, k.table_name, k.column_name, c.column_type, c.character_maximum_length \
             FROM information_schema.key_column_usage k JOIN information_schema.columns c \
             ON c.table_schema = k.table_schema AND c.table_name = k.table_name AND c.column_name = k.column_name \
             WHERE k.referenced_table_name IS NOT NULL AND k.table_schema NOT IN ({OWN_SCHEMAS})"
        ))
        .await?;
    let references = rows.iter().map(|row| Reference {
        to: [0, 1, 2].map(|index| text(row, index)),
        from: [3, 4, 5].map(|index| text(row, index)),
        kind: ColumnType {
            name: text(row, 6).to_lowercase(),
            length: number(row, 7).unwrap_or(0),
        },
    });
    Ok(references.collect())
}

async fn programs(conn: &mut Conn) -> Result<Vec<Program>> {
    let rows: Vec<Row> = conn
        .query(format!(
            "SELECT routine_type, routine_schema, routine_name, sql_mode, routine_definition, NULL \
             FROM information_schema.routines WHERE routine_schema NOT IN ({OWN_SCHEMAS}) \
             UNION ALL SELECT 'trigger', trigger_schema, trigger_name, sql_mode, action_statement, \
             IF(action_timing = 'BEFORE' AND event_manipulation = 'INSERT', event_object_table, NULL) \
             FROM information_schema.triggers WHERE trigger_schema NOT IN ({OWN_SCHEMAS}) \
             UNION ALL SELECT 'event', event_schema, event_name, sql_mode, event_definition, NULL \
             FROM information_schema.events WHERE event_schema NOT IN ({OWN_SCHEMAS}) \
             ORDER BY 2, 3"
        ))
        .await?;
    let programs = rows.iter().map(|row| Program {
        what: text(row, 0).to_lowercase(),
        schema: text(row, 1),
        name: text(row, 2),
        sql_mode: text(row, 3),
        body: row.get::<Option<String>, usize>(4).flatten(),
        before_insert: row.get::<Option<String>, usize>(5).flatten(),
    });
    Ok(programs.collect())
}
