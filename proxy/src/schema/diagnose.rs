//! What is to be said of a server, out of its snapshot alone.

mod accounts;
mod columns;
mod fence;
mod programs;
mod server;
mod switching;
mod views;

use super::finding::Finding;
use super::key_column::KeyColumn;
use super::matched::{Matched, key_columns};
use super::snapshot::Snapshot;
use crate::config::{Config, Configured};

/// All that is to be said, the worst first.
pub fn diagnose(snapshot: &Snapshot, config: &Config) -> Vec<Finding> {
    let matched = Matched::new(snapshot, config);
    let mut findings = [
        fence::findings(&matched),
        views::findings(&matched),
        columns::findings(&matched),
        server::findings(&matched),
        switching::findings(&matched),
        programs::findings(&matched),
        accounts::findings(&matched),
    ]
    .concat();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Rules that no table of any listener's server is for.
pub fn unmatched(config: &Config, snapshots: &[&Snapshot]) -> Vec<String> {
    let columns = columns_of(config, snapshots);
    let rules = config.rules.iter().enumerate();
    rules
        .filter(|(rule, _)| !columns.iter().any(|column| column.rule == *rule))
        .map(|(_, configured)| {
            taken(config, configured, &columns, snapshots).unwrap_or_else(|| no_table(configured))
        })
        .collect()
}

fn columns_of(config: &Config, snapshots: &[&Snapshot]) -> Vec<KeyColumn> {
    snapshots
        .iter()
        .flat_map(|snapshot| key_columns(snapshot, config))
        .collect()
}

fn no_table(configured: &Configured) -> String {
    let (pattern, column) = (&configured.rule.table, &configured.rule.column);
    let pattern = format!("{}.{}", pattern.schema(), pattern.table());
    let hint = if pattern.contains('`') {
        ". Names in a rule stand without backticks"
    } else if pattern.contains('%') {
        ". In a rule * stands for any characters, not %"
    } else {
        ""
    };
    format!(
        "no table matches \"{pattern}\" with a column \"{column}\" on any listener's server: are pattern and column right, and \
         may the admin account see the table?{hint}"
    )
}

/// That the rule would have tables, if rules before it had not.
fn taken(
    config: &Config,
    configured: &Configured,
    columns: &[KeyColumn],
    snapshots: &[&Snapshot],
) -> Option<String> {
    let alone = Config {
        rules: vec![configured.clone()],
        ..config.clone()
    };
    let wanted = columns_of(&alone, snapshots);
    let is_wanted = |column: &&KeyColumn| {
        let mut wanted = wanted.iter();
        wanted.any(|of| (&of.schema, &of.table) == (&column.schema, &column.table))
    };
    let first = config.rules.get(columns.iter().find(is_wanted)?.rule)?;
    Some(format!(
        "no table is left for rule {}: the rule {} stands before it and takes all of them. Put the narrower one first, or take one out",
        configured.name(),
        first.name()
    ))
}
