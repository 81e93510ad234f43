//! Tables without the fence, and such as it does not hold back.

use crate::schema::fence::{Lack, lacking};
use crate::schema::finding::{Finding, OfTable, Severity};
use crate::schema::matched::Matched;

pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let missing = Severity::Warning.of_each(missing(matched));
    let unfenceable = Severity::Error.of_each(unfenceable(matched));
    let findings = missing.into_iter().chain(ignored(matched));
    findings.chain(unfenceable).collect()
}

/// Tables that a rule wants the fence on, and whose engine does not keep it: the rule would block no native ids there.
fn unfenceable(matched: &Matched<'_>) -> impl Iterator<Item = OfTable> {
    matched
        .with_rule()
        .filter(|(configured, column)| configured.fence && column.lacks_engine())
        .map(|(_, column)| {
            let (name, engine) = (column.quoted_table(), &column.engine);
            let message = format!(
                "{name} is {engine}, and the fence needs InnoDB: ALTER TABLE {name} ENGINE = InnoDB, or write fence = false in the \
                 table's rule, and ids of the server's own go on to come beside the keys"
            );
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
        let text = "where an INSERT IGNORE reaches these past the proxy, the server leaves the row out, with warning 167 and no error";
        Severity::Note.of_all(text, tables)
    })
}

/// Tables whose fence is not there.
fn missing(matched: &Matched<'_>) -> impl Iterator<Item = OfTable> {
    lacking(matched).filter_map(|(configured, column, lack)| {
        let name = column.quoted_table();
        if !configured.fence && lack != Lack::Engine {
            let message = format!(
                "{name} has no fence, as its rule says (fence = false): inserts that the proxy does not see take keys of the server's \
                 own, which may come a second time"
            );
            return Some(OfTable::new(&name, message));
        }
        let trouble = match (lack, &column.fence_refused) {
            // Reported by itself.
            (Lack::Engine, _) if configured.fence => return None,
            (Lack::Engine, _) => {
                format!("{name} is {}, and the fence needs InnoDB", column.engine)
            }
            (Lack::Switch, _) => format!("{name} has no fence yet"),
            (Lack::Missing, Some(error)) => {
                format!("the fence of {name} cannot be applied: {error}")
            }
            (Lack::Missing, None) => format!("{name} has no fence; {}", column.fence_statement()),
        };
        let message =
            format!("{trouble}: inserts that the proxy does not see take keys of the server's own");
        Some(OfTable::new(&name, message))
    })
}
