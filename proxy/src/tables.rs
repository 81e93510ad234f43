//! The tables that rules are for, as the proxy's own connection sees them: can they hold the keys, and is the fence in place.

use anyhow::{Context, Result};
use keywright_session::Rules;
use keywright_store::KeyKind;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Row};

use crate::config::{Config, Configured};

/// Where the fence stands: InnoDB refuses every native generation from here on.
const FENCE: u64 = u64::MAX;

/// What was found about one rule's tables on one server.
#[derive(Debug, Default)]
pub struct Found {
    /// What forbids starting.
    pub errors: Vec<String>,
    /// What the operator should know.
    pub warnings: Vec<String>,
    /// What sessions must know.
    pub seen: Seen,
}

/// What sessions must know of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// By rule: whether a trigger on a matching table runs before rows go in.
    pub watched: Vec<bool>,
    /// Whether the server compares names of schemas and tables without case (`lower_case_table_names`).
    pub lower_case: bool,
}

struct Column {
    schema: String,
    table: String,
    name: String,
    data_type: String,
    length: u64,
    auto_increment: bool,
    fenced: bool,
    engine: String,
}

/// Looks at all tables of all rules through one listener's own connection, and applies the fence where it is wanted.
///
/// # Errors
/// The server cannot be asked.
pub async fn look(config: &Config, admin: &str, apply_fence: bool) -> Result<Found> {
    let opts = Opts::from_url(admin).context("reading the listener's admin url")?;
    let mut server = Conn::new(opts)
        .await
        .context("connecting to the upstream with the listener's admin url")?;
    let lower_case: Option<u64> = server
        .query_first("SELECT @@lower_case_table_names")
        .await?;
    let mut found = Found {
        seen: Seen {
            watched: vec![false; config.rules.len()],
            lower_case: lower_case != Some(0),
        },
        ..Found::default()
    };
    let increment: Option<u64> = server
        .query_first("SELECT @@global.auto_increment_increment")
        .await?;
    if increment != Some(1) {
        found.warnings.push(format!(
            "auto_increment_increment is {}: keys of one statement are spaced by it",
            increment.unwrap_or(0)
        ));
    }
    let matcher = Rules::new(
        config
            .rules
            .iter()
            .map(|configured| configured.rule.clone())
            .collect(),
        found.seen.lower_case,
    );
    let columns = columns(&mut server).await?;
    for (index, configured) in config.rules.iter().enumerate() {
        let mut any = false;
        for column in &columns {
            let (schema, table) = (column.schema.as_bytes(), column.table.as_bytes());
            let is_its = matcher
                .find(schema, table)
                .is_some_and(|(rule, _)| rule == index);
            if is_its && column.name.eq_ignore_ascii_case(&configured.rule.column) {
                any = true;
                judge(configured, column, &mut found);
                fence(configured, column, apply_fence, &mut server, &mut found).await?;
            }
        }
        let pattern = configured.rule.table.clone();
        if !any {
            found.warnings.push(format!(
                "no table matches \"{}.{}\" with a column \"{}\"",
                pattern.schema(),
                pattern.table(),
                configured.rule.column
            ));
        }
    }
    for (schema, table) in triggers(&mut server).await? {
        if let Some((rule, _)) = matcher.find(schema.as_bytes(), table.as_bytes())
            && let Some(watched) = found.seen.watched.get_mut(rule)
        {
            *watched = true;
        }
    }
    server.disconnect().await?;
    Ok(found)
}

async fn columns(server: &mut Conn) -> Result<Vec<Column>> {
    // MySQL remembers figures of tables for a day unless told otherwise; MariaDB has no such setting.
    let _ = server
        .query_drop("SET SESSION information_schema_stats_expiry = 0")
        .await;
    let rows: Vec<Row> = server
        .query(
            "SELECT c.table_schema, c.table_name, c.column_name, c.column_type, c.character_maximum_length, c.extra, \
             t.auto_increment, t.engine \
             FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) \
             WHERE t.table_type = 'BASE TABLE' AND c.table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')",
        )
        .await?;
    Ok(rows.iter().map(column).collect())
}

fn column(row: &Row) -> Column {
    let text = |index: usize| {
        let value: Option<Option<String>> = row.get(index);
        value.flatten().unwrap_or_default()
    };
    let number = |index: usize| -> Option<u64> { row.get::<Option<u64>, usize>(index).flatten() };
    Column {
        schema: text(0),
        table: text(1),
        name: text(2),
        data_type: text(3).to_lowercase(),
        length: number(4).unwrap_or(0),
        auto_increment: text(5).contains("auto_increment"),
        fenced: number(6) == Some(FENCE),
        engine: text(7),
    }
}

async fn triggers(server: &mut Conn) -> Result<Vec<(String, String)>> {
    Ok(server
        .query(
            "SELECT event_object_schema, event_object_table FROM information_schema.triggers \
             WHERE event_manipulation = 'INSERT' AND action_timing = 'BEFORE'",
        )
        .await?)
}

fn judge(configured: &Configured, column: &Column, found: &mut Found) {
    let name = format!(
        "{}.{}.{}",
        column.schema, column.table, configured.rule.column
    );
    let kind = &column.data_type;
    match configured.spec.kind() {
        KeyKind::Number => {
            let has_room = kind.starts_with("bigint")
                || (kind.starts_with("int") && configured.rule.bits_max <= 31);
            if !has_room {
                found.errors.push(format!(
                    "{name} is {kind}, which has no room for keys of {} bits: make it bigint, or lower bits_max",
                    configured.rule.bits_max
                ));
            }
        }
        KeyKind::Text { chars } => {
            if !kind.starts_with("uuid") && column.length < u64::from(chars) {
                found.errors.push(format!(
                    "{name} is {kind}, and keys have {chars} characters"
                ));
            }
        }
        KeyKind::Bytes16 => {
            if !kind.starts_with("binary(16)") && !kind.starts_with("varbinary") {
                found
                    .errors
                    .push(format!("{name} is {kind}, and keys have 16 bytes"));
            }
        }
    }
}

async fn fence(
    configured: &Configured,
    column: &Column,
    apply: bool,
    server: &mut Conn,
    found: &mut Found,
) -> Result<()> {
    if !column.auto_increment || column.fenced {
        return Ok(());
    }
    let name = format!(
        "`{}`.`{}`",
        column.schema.replace('`', "``"),
        column.table.replace('`', "``")
    );
    let statement = format!("ALTER TABLE {name} AUTO_INCREMENT = {FENCE}");
    if !column.engine.eq_ignore_ascii_case("InnoDB") {
        found.warnings.push(format!(
            "{name} is {}: the fence needs InnoDB",
            column.engine
        ));
    } else if configured.fence && apply {
        server
            .query_drop(&statement)
            .await
            .with_context(|| format!("applying the fence to {name}"))?;
        tracing::info!(table = name, "fence applied");
    } else {
        found.warnings.push(format!(
            "{name} has no fence: inserts that the proxy does not see take keys of their own; {statement}"
        ));
    }
    Ok(())
}
