//! Tables without the fence, and such as it does not hold back.

use keywright_session::Mode;

use crate::config::Configured;
use crate::schema::fence::{Lack, lacking};
use crate::schema::finding::{Finding, OfTable, Severity};
use crate::schema::key_column::{KeyColumn, Partitions};
use crate::schema::matched::Matched;

pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let missing = Severity::Warning.of_each(missing(matched));
    let refused = Severity::Error.of_each(unfenceable(matched, true));
    let observed = Severity::Warning.of_each(unfenceable(matched, false));
    let findings = missing
        .into_iter()
        .chain(ignored(matched))
        .chain(removed(matched));
    findings.chain(refused).chain(observed).collect()
}

/// Tables that a rule wants the fence on, and that can have none: the rule would block no native ids there. Of rules that need it now
/// (`is_needed`), or of those that only observe.
fn unfenceable(matched: &Matched<'_>, is_needed: bool) -> impl Iterator<Item = OfTable> {
    let is_unfenceable = move |(configured, column): &(&Configured, &KeyColumn)| {
        configured.fence && configured.needs_fence == is_needed && column.is_unfenceable()
    };
    let tables = matched.with_rule().filter(is_unfenceable);
    tables.map(move |(_, column)| {
        let name = column.quoted_table();
        let (why, mend) = (column.why_unfenceable(), column.makes_fenceable());
        let message = match is_needed {
            true => format!(
                "{name} {why}: {mend}, or write fence = false in the table's rule, and ids of the server's own go on to come beside the keys"
            ),
            false => format!(
                "{name} {why}. While its rule observes, that does no harm. Before it is to give keys: {mend}, or write fence = false in \
                 the table's rule"
            ),
        };
        OfTable::new(&name, message)
    })
}

/// Tables whose fence a direct INSERT IGNORE does not fail at: MariaDB leaves the row out where the fence is not the largest number
/// there is.
fn ignored(matched: &Matched<'_>) -> Option<Finding> {
    let tables: Vec<String> = matched
        .with_rule()
        .filter(|(configured, column)| {
            configured.fence && column.auto_increment && column.fence != u64::MAX
        })
        .map(|(_, column)| format!("{}.{}", column.schema, column.table))
        .collect();
    (!tables.is_empty()).then(|| {
        let text = "where an INSERT IGNORE reaches these past the programs, the server leaves the row out, with warning 167 and no error";
        Severity::Note.of_all(text, tables)
    })
}

/// Tables whose fence a direct statement may remove.
fn removed(matched: &Matched<'_>) -> Option<Finding> {
    let tables: Vec<String> = matched
        .with_rule()
        .filter(|(configured, column)| {
            configured.fence
                && configured.rule.mode == Mode::Rewrite
                && column.auto_increment
                && column.partitions == Partitions::MayLoseFence
        })
        .map(|(_, column)| format!("{}.{}", column.schema, column.table))
        .collect();
    (!tables.is_empty()).then(|| {
        let text = "where an INSERT IGNORE … ON DUPLICATE KEY UPDATE of several rows reaches these past the programs, MariaDB removes the \
                    fence, since they are partitioned, and native ids begin at 1 again until the next schema refresh";
        Severity::Warning.of_all(text, tables)
    })
}

/// Tables whose fence is not there.
fn missing(matched: &Matched<'_>) -> impl Iterator<Item = OfTable> {
    lacking(matched).filter_map(|(configured, column, lack)| {
        let name = column.quoted_table();
        if !configured.fence && lack != Lack::Impossible {
            let message = format!(
                "{name} has no fence, as its rule says (fence = false): inserts that no program sees take keys of the server's \
                 own, which may come a second time"
            );
            return Some(OfTable::new(&name, message));
        }
        let trouble = match (lack, &column.fence_refused) {
            // Reported by itself.
            (Lack::Impossible, _) if configured.fence => return None,
            (Lack::Impossible, _) => {
                format!("{name} {}", column.why_unfenceable())
            }
            (Lack::Switch, _) => format!("{name} has no fence yet"),
            (Lack::Missing, Some(error)) => {
                format!("the fence of {name} cannot be applied: {error}")
            }
            (Lack::Missing, None) => format!("{name} has no fence; {}", column.fence_statement()),
        };
        let message =
            format!("{trouble}: inserts that no program sees take keys of the server's own");
        Some(OfTable::new(&name, message))
    })
}
