//! The fence of tables whose rules take no part in the switch: where it is missing, and the step that applies it.

use anyhow::Result;
use keywright_session::Mode;
use keywright_store::switch::{KeySpace, RuleName};
use mysql_async::prelude::Queryable;

use super::finding::{Finding, OfTable, Severity};
use super::inspect::LOCK_WAIT_S_MAX;
use super::key_column::KeyColumn;
use super::matched::{Matched, plain_rules};
use super::snapshot::Snapshot;
use super::take::{connect, in_time};
use crate::config::{Config, Configured, Listener};

/// Why a table has no fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// The server keeps none of such a table.
    Impossible,
    /// The switch applies it: under the table's lock, and after asking the store.
    Switch,
    /// It was not applied.
    Missing,
}

/// The tables that could have a fence and have none, and why.
pub(super) fn lacking<'a>(
    matched: &'a Matched<'_>,
) -> impl Iterator<Item = (&'a Configured, &'a KeyColumn, Lack)> {
    let columns = matched.with_rule();
    columns.filter_map(|(configured, column)| {
        // While a rule only observes, the server's own keys are the only ones.
        let observes = configured.rule.mode == Mode::Observe;
        if !column.auto_increment || column.fenced || observes {
            return None;
        }
        let lack = if column.is_unfenceable() {
            Lack::Impossible
        } else if configured.is_switched {
            Lack::Switch
        } else {
            Lack::Missing
        };
        Some((configured, column, lack))
    })
}

/// How many tables of rules with `fence = true` have none.
pub fn unfenced(snapshot: &Snapshot, config: &Config) -> u64 {
    let matched = Matched::new(snapshot, config);
    let wanted = lacking(&matched).filter(|(configured, _, _)| configured.fence);
    u64::try_from(wanted.count()).unwrap_or(u64::MAX)
}

/// What the store has recorded of a table that has a fence, or seems to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FenceRecord {
    /// It has its fence by this rule in force, which gives it these keys.
    SetBy(RuleName, KeySpace),
    /// Its fence was lifted: programs lift none there.
    Lifted,
}

/// What is to be said of tables with a fence whose rules give no keys, where `is_native` says so of the rule: its tables are not just going over. It is told,
/// too, whether programs leave the fence alone: a rule in force behind that one is for the table as well, another one has set it, it was lifted before, or
/// the column is full. `recorded` says what the store has recorded of a table.
pub fn left_fences(
    snapshot: &Snapshot,
    config: &Config,
    is_native: impl Fn(&Configured, bool) -> bool,
    recorded: impl Fn(&KeyColumn) -> Option<FenceRecord>,
) -> Vec<Finding> {
    let matched = Matched::new(snapshot, config);
    let in_force = |rule: &&Configured| rule.is_switched && rule.rule.mode == Mode::Rewrite;
    let giving = Config {
        rules: config.rules.iter().filter(in_force).cloned().collect(),
        ..config.clone()
    };
    let rules = plain_rules(&giving, &snapshot.server);
    let (mut others, mut left) = (Vec::new(), Vec::new());
    for (configured, column) in matched.with_rule() {
        let observes = configured.rule.mode == Mode::Observe;
        if !(observes && column.auto_increment && column.fenced) {
            continue;
        }
        let gives = rules.find(column.schema.as_bytes(), column.table.as_bytes());
        let gives = gives.and_then(|(rule, _)| giving.rules.get(rule));
        let gives = gives.filter(|its| its.rule.column.eq_ignore_ascii_case(&column.name));
        let recorded = recorded(column);
        let is_kept = gives.is_some() || recorded.is_some() || column.is_full();
        if !is_native(configured, is_kept) {
            continue;
        }
        let name = column.quoted_table();
        match (gives, recorded) {
            (Some(gives), _) => others.push(of_another(&name, configured, gives)),
            (None, Some(FenceRecord::SetBy(rule, keys))) => {
                left.push(of_another_file(&name, (&rule, &keys)));
            }
            // On MariaDB it may have no fence: its counter is there all the same.
            (None, Some(FenceRecord::Lifted) | None) if column.is_full() => {
                left.push(OfTable::new(&name, column.why_full()));
            }
            (None, Some(FenceRecord::Lifted)) => left.push(of_lifted(&name)),
            (None, None) => left.push(of_nobody(&name)),
        }
    }
    let mut findings = Severity::Error.of_each(others.into_iter());
    findings.extend(Severity::Warning.of_each(left.into_iter()));
    findings
}

fn of_nobody(name: &str) -> OfTable {
    let message = format!(
        "{name} has a fence, and its rule gives no keys: the server refuses each INSERT without an id (167, on MySQL 1467). See that nobody \
         else gives it keys, and lift the fence as keywright release says"
    );
    OfTable::new(name, message)
}

/// Programs have lifted its fence, and go by that.
fn of_lifted(name: &str) -> OfTable {
    let message = format!(
        "{name} has a fence, and its rule gives no keys: the server refuses each INSERT without an id (167, on MySQL 1467). Programs have lifted its fence \
         before and do it no more, since what looks like one may be the end of the column, whose last rows were deleted: then make the column larger. If \
         the table has a fence again, as out of a dump or a backup, lift it as keywright release says"
    );
    OfTable::new(name, message)
}

/// A rule is written another way in the files of the programs that give the table keys.
fn of_another_file(name: &str, set_by: (&RuleName, &KeySpace)) -> OfTable {
    let message = format!(
        "{}. Its rule here gives no keys, so the server refuses each INSERT without an id (167, on MySQL 1467). Nobody may lift the fence before",
        has_fence_by(name, set_by)
    );
    OfTable::new(name, message)
}

/// By which rule in force a table has its fence, and what is to be done where a configuration has another one for it, for people.
pub(crate) fn has_fence_by(table: &str, (rule, keys): (&RuleName, &KeySpace)) -> String {
    let RuleName { tables, column } = rule;
    format!(
        "{table} has its fence by rule {tables}.{column} (\"{keys}\"), which is in force: write the rule as it is there, or set mode = \"observe\" in \
         that one first"
    )
}

/// A rule was put before one in force, or its tables are native and somebody has gone by another order of the rules.
fn of_another(name: &str, configured: &Configured, gives: &Configured) -> OfTable {
    let (native, giving) = (configured.name(), gives.name());
    let message = format!(
        "{name} has a fence, and goes by rule {native}, which gives no keys; rule {giving} behind it does, and the fence may be there by that: the server \
         refuses each INSERT without an id (167, on MySQL 1467). SIGHUP refuses to put a rule before one in force: take rule {native} out, or set \
         mode = \"observe\" in {giving} before that. Where no program gives the table keys, lift the fence as keywright release says"
    );
    OfTable::new(name, message)
}

/// Applies the fence where a rule wants it and it is missing, and notes in the snapshot what became of that.
///
/// # Errors
/// The server cannot be reached.
pub async fn apply_fence(
    config: &Config,
    listener: &Listener,
    snapshot: &mut Snapshot,
) -> Result<()> {
    let missing: Vec<KeyColumn> = lacking(&Matched::new(snapshot, config))
        .filter(|(configured, _, lack)| configured.fence && *lack == Lack::Missing)
        .map(|(_, column, _)| column.clone())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut conn = connect(config, listener).await?;
    let applied = async {
        conn.query_drop(format!("SET SESSION lock_wait_timeout = {LOCK_WAIT_S_MAX}"))
            .await?;
        for column in missing {
            let done = conn.query_drop(column.fence_statement()).await;
            note(snapshot, &column, done);
        }
        Ok(())
    };
    in_time(applied).await?;
    conn.disconnect().await?;
    Ok(())
}

fn note(snapshot: &mut Snapshot, column: &KeyColumn, done: mysql_async::Result<()>) {
    let mut tables = snapshot.tables.iter_mut();
    let is_it = |table: &&mut super::snapshot::Table| {
        table.schema == column.schema && table.name == column.table
    };
    let Some(table) = tables.find(is_it) else {
        return;
    };
    match done {
        Ok(()) => {
            tracing::info!(table = column.quoted_table(), "fence applied");
            table.counter = Some(column.fence);
        }
        Err(error) => table.fence_refused = Some(error.to_string()),
    }
}
