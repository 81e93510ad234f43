//! What else touches the tables that rules are for: references to their keys, routines, accounts.

use anyhow::Result;
use keywright_rewrite::{Modes, Server, TableName, tables_filled};
use keywright_session::Rules;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::columns::{Column, OWN_SCHEMAS};
use super::columns::{number, text};
use super::inspection::Inspection;
use crate::config::Config;
use crate::handshake::server_of;

/// Accounts that a warning names.
const ACCOUNTS_SHOWN_MAX: usize = 10;

/// Columns that refer to a key must have room for it too.
pub(super) async fn references(
    server: &mut Conn,
    config: &Config,
    keys: &[Column],
    found: &mut Inspection,
) -> Result<()> {
    let rows: Vec<Row> = server
        .query(format!(
            "SELECT k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name, \
             k.table_schema, k.table_name, k.column_name, c.column_type, c.character_maximum_length \
             FROM information_schema.key_column_usage k JOIN information_schema.columns c \
             ON c.table_schema = k.table_schema AND c.table_name = k.table_name AND c.column_name = k.column_name \
             WHERE k.referenced_table_name IS NOT NULL AND k.table_schema NOT IN ({OWN_SCHEMAS})"
        ))
        .await?;
    for row in &rows {
        let key = keys.iter().find(|key| {
            // The server writes the name in one case here and in another there.
            let is = |one: &str, index| one.eq_ignore_ascii_case(&text(row, index));
            is(&key.schema, 0) && is(&key.table, 1) && is(&key.name, 2)
        });
        let Some((key, configured)) = key.and_then(|key| Some((key, config.rules.get(key.rule)?)))
        else {
            continue;
        };
        let child = Column {
            rule: key.rule,
            schema: text(row, 3),
            table: text(row, 4),
            name: text(row, 5),
            data_type: text(row, 6).to_lowercase(),
            length: number(row, 7).unwrap_or(0),
            ..Column::default()
        };
        if let Some(lack) = child.lacks_room(configured) {
            found.left_out.push(format!(
                "{}.{}.{}, which refers to {}.{}.{}, {lack}",
                child.schema, child.table, child.name, key.schema, key.table, key.name
            ));
        }
    }
    Ok(())
}

/// Something with a body.
struct Program {
    what: String,
    schema: String,
    name: String,
    sql_mode: String,
    /// `None`: we may not see it.
    body: Option<String>,
}

impl Program {
    fn of(row: &Row) -> Self {
        Self {
            what: text(row, 0).to_lowercase(),
            schema: text(row, 1),
            name: text(row, 2),
            sql_mode: text(row, 3),
            body: row.get::<Option<String>, usize>(4).flatten(),
        }
    }
}

/// What carries out INSERTs that the proxy does not see.
pub(super) async fn programs(
    server: &mut Conn,
    config: &Config,
    rules: &Rules,
    found: &mut Inspection,
) -> Result<()> {
    let version: Option<String> = server.query_first("SELECT VERSION()").await?;
    let Some(server_version) = version.and_then(|version| server_of(version.as_bytes())) else {
        return Ok(());
    };
    let rows: Vec<Row> = server
        .query(format!(
            "SELECT routine_type, routine_schema, routine_name, sql_mode, routine_definition \
             FROM information_schema.routines WHERE routine_schema NOT IN ({OWN_SCHEMAS}) \
             UNION ALL SELECT 'trigger', trigger_schema, trigger_name, sql_mode, action_statement \
             FROM information_schema.triggers WHERE trigger_schema NOT IN ({OWN_SCHEMAS}) \
             UNION ALL SELECT 'event', event_schema, event_name, sql_mode, event_definition \
             FROM information_schema.events WHERE event_schema NOT IN ({OWN_SCHEMAS}) \
             ORDER BY 2, 3"
        ))
        .await?;
    let mut unseen = 0_u64;
    for program in rows.iter().map(Program::of) {
        match &program.body {
            Some(body) => judge(&program, body, (config, rules, server_version), found),
            None => unseen += 1,
        }
    }
    if unseen > 0 {
        found.warnings.push(format!(
            "{unseen} routine(s) cannot be read with the privileges of the listener's admin url: whether they insert into tables with rules is not known"
        ));
    }
    Ok(())
}

fn judge(
    program: &Program,
    body: &str,
    (config, rules, server): (&Config, &Rules, Server),
    found: &mut Inspection,
) {
    let has = |mode| program.sql_mode.split(',').any(|part| part == mode);
    let modes = Modes {
        ansi_quotes: has("ANSI_QUOTES"),
        no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
        ..Modes::plain(server)
    };
    let mut tables = tables_filled(body.as_bytes(), &modes);
    tables.dedup();
    for TableName { schema, table } in tables {
        let schema = schema.unwrap_or_else(|| program.schema.clone().into_bytes());
        let Some((rule, _)) = rules.find(&schema, &table) else {
            continue;
        };
        let table = format!(
            "{}.{}",
            String::from_utf8_lossy(&schema),
            String::from_utf8_lossy(&table)
        );
        let Program {
            what, schema, name, ..
        } = program;
        let is_fenced = config.rules.get(rule).is_some_and(|rule| rule.fence);
        let then = if is_fenced {
            "fails at the fence"
        } else {
            "takes a key of the server's own"
        };
        found.warnings.push(format!(
            "{what} {schema}.{name} inserts into {table}: the proxy does not see that, and what brings no key {then}"
        ));
    }
}

/// Accounts that applications may use and that cannot come from where the server sees the proxy.
pub(super) async fn accounts(server: &mut Conn, found: &mut Inspection) -> Result<()> {
    let seen_as: Option<String> = server
        .query_first("SELECT SUBSTRING_INDEX(USER(), '@', -1)")
        .await?;
    let seen_as = seen_as.unwrap_or_default();
    // A host with a mask cannot be compared like that; roles have no host.
    let rows: std::result::Result<Vec<(String, String)>, _> = server
        .exec(
            "SELECT DISTINCT CAST(u.user AS CHAR), CAST(u.host AS CHAR) FROM mysql.user u \
             WHERE u.user NOT IN ('', 'mysql.sys', 'mysql.session', 'mysql.infoschema', 'mariadb.sys') \
             AND u.host <> '' AND u.host NOT LIKE '%/%' AND NOT EXISTS (SELECT 1 FROM mysql.user o WHERE o.user = u.user \
             AND (o.host LIKE '%/%' OR ? LIKE o.host OR ? = 'localhost' AND o.host IN ('127.0.0.1', '::1'))) ORDER BY 1, 2",
            (&seen_as, &seen_as),
        )
        .await;
    let Ok(rows) = rows else {
        found.warnings.push(
            "mysql.user cannot be read with the listener's admin url: whether accounts may come from the proxy's address is not known"
                .to_owned(),
        );
        return Ok(());
    };
    if rows.is_empty() {
        return Ok(());
    }
    let mut names: Vec<String> = rows
        .iter()
        .take(ACCOUNTS_SHOWN_MAX)
        .map(|(user, host)| format!("{user}@{host}"))
        .collect();
    if rows.len() > ACCOUNTS_SHOWN_MAX {
        names.push(format!("and {} more", rows.len() - ACCOUNTS_SHOWN_MAX));
    }
    found.warnings.push(format!(
        "to the server, whoever comes through the proxy comes from \"{seen_as}\"; these accounts may not come from there: {}",
        names.join(", ")
    ));
    Ok(())
}
