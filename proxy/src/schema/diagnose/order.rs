//! Tables for which several rules in force are, with different keys: the order of the rules decides which they get.

use crate::config::{Config, Configured};
use crate::schema::finding::{Finding, Severity};
use crate::schema::matched::{Matched, plain_rules};
use crate::schema::patterns::may_share_tables;

pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let rules = &matched.config.rules;
    let mut tables: Vec<String> = Vec::new();
    for (at, second) in rules.iter().enumerate() {
        let mut before = rules.iter().take(at);
        if !before.any(|first| are_at_odds(first, second)) {
            continue;
        }
        let alone = Config {
            rules: vec![second.clone()],
            ..matched.config.clone()
        };
        let alone = plain_rules(&alone, &matched.snapshot.server);
        let shared = matched.with_rule().filter(|(first, column)| {
            let of_second = alone.find(column.schema.as_bytes(), column.table.as_bytes());
            column.rule < at && are_at_odds(first, second) && of_second.is_some()
        });
        tables.extend(shared.map(|(_, column)| format!("{}.{}", column.schema, column.table)));
    }
    tables.sort_unstable();
    tables.dedup();
    if tables.is_empty() {
        return Vec::new();
    }
    let text = "several rules in force are for these, with different keys, and the first one counts: the rules must stand in the same order in the files \
                of all programs. Do not change the order while they are in force";
    vec![Severity::Note.of_all(text, tables)]
}

/// Whether both are in force, with different keys, and may be for one table. Of which servers that is so is known of rules in force only.
fn are_at_odds(first: &Configured, second: &Configured) -> bool {
    let tables = |rule: &Configured| {
        let pattern = &rule.rule.table;
        format!("{}.{}", pattern.schema(), pattern.table())
    };
    first.servers.is_some()
        && second.servers.is_some()
        && first.spec != second.spec
        && may_share_tables(&tables(first), &tables(second))
}
