//! The fence, as looks at tables find and apply it.

use keywright_session::Mode;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::columns::{Column, with_rule};
use super::inspection::Inspection;
use crate::config::{Config, Configured};

/// Tables that a rule wants the fence on, and whose engine does not keep it: the rule would block no native ids there.
pub(super) fn unfenceable<'a>(
    config: &'a Config,
    columns: &'a [Column],
) -> impl Iterator<Item = String> + 'a {
    with_rule(config, columns)
        .filter(|(configured, column)| configured.fence && column.lacks_engine())
        .map(|(_, column)| {
            let (name, engine) = (column.quoted_table(), &column.engine);
            format!(
                "{name} is {engine}, and the fence needs InnoDB: ALTER TABLE {name} ENGINE = InnoDB, or write fence = false in the \
                 table's rule, and ids of the server's own go on to come beside the keys"
            )
        })
}

/// Tables whose fence a direct INSERT IGNORE does not fail at: MariaDB leaves the row out where the fence is not the largest number
/// there is.
pub(super) fn ignored(config: &Config, columns: &[Column]) -> Option<String> {
    let tables: Vec<String> = with_rule(config, columns)
        .filter(|(configured, column)| {
            configured.fence && column.auto_increment && column.fence != u64::MAX
        })
        .map(|(_, column)| format!("{}.{}", column.schema, column.table))
        .collect();
    (!tables.is_empty()).then(|| {
        format!(
            "where an INSERT IGNORE reaches these past the proxy, the server leaves the row out, with warning 167 and no error: {}",
            tables.join(", ")
        )
    })
}

/// Applies the fence where it is missing, or tells of it.
pub(super) async fn keep(
    configured: &Configured,
    column: &Column,
    apply: bool,
    server: &mut Conn,
    found: &mut Inspection,
) {
    // While a rule only observes, the server's own keys are the only ones.
    let observes = configured.rule.mode == Mode::Observe;
    if !column.auto_increment || column.fenced || observes {
        return;
    }
    let name = column.quoted_table();
    let statement = format!("ALTER TABLE {name} AUTO_INCREMENT = {}", column.fence);
    let mut trouble = String::new();
    if column.lacks_engine() {
        if configured.fence {
            // Told for itself.
            found.unfenced += 1;
            return;
        }
        let engine = &column.engine;
        trouble = format!("{name} is {engine}, and the fence needs InnoDB");
    } else if configured.is_switched {
        // Under its lock, and after asking the store: by the switch.
        trouble = format!("{name} has no fence yet");
    } else if configured.fence && apply {
        match server.query_drop(&statement).await {
            Ok(()) => {
                tracing::info!(table = name, "fence applied");
                return;
            }
            Err(error) => trouble = format!("the fence of {name} cannot be applied: {error}"),
        }
    }
    if trouble.is_empty() {
        trouble = format!("{name} has no fence; {statement}");
    }
    found.unfenced += u64::from(configured.fence);
    found.warnings.push(format!(
        "{trouble}: inserts that the proxy does not see take keys of the server's own"
    ));
}
