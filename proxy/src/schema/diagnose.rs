//! What is to be said of a server, out of its snapshot alone.

mod accounts;
mod columns;
mod fence;
mod programs;
mod server;
mod switching;
mod views;

use super::finding::Finding;
use super::matched::{Matched, key_columns};
use super::snapshot::Snapshot;
use crate::config::Config;

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
    let columns = snapshots
        .iter()
        .flat_map(|snapshot| key_columns(snapshot, config));
    let matched: Vec<usize> = columns.map(|column| column.rule).collect();
    let rules = config.rules.iter().enumerate();
    rules
        .filter(|(rule, _)| !matched.contains(rule))
        .map(|(_, configured)| {
            let pattern = &configured.rule.table;
            format!(
                "no table matches \"{}.{}\" with a column \"{}\" on any listener's server: are pattern and column right, and \
                 may the admin account see the table?",
                pattern.schema(),
                pattern.table(),
                configured.rule.column
            )
        })
        .collect()
}
