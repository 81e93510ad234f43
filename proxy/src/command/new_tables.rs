//! Tables that get keys and that no schema refresh has shown, because they are new, or because the program's own account may not see them.

use std::collections::BTreeMap;

use keywright_proxy::config::Config;
use keywright_proxy::metrics::Counters;
use keywright_proxy::schema;
use keywright_session::MetTable;

/// Asks the servers whether the program's own account may see these tables. One that it may see by one listener is seen. Of a server that cannot be
/// asked nothing is known, as before.
pub(super) async fn ask_about(config: &Config, counters: &Counters, tables: &[MetTable]) {
    if tables.is_empty() {
        return;
    }
    let mut answered: BTreeMap<MetTable, bool> = BTreeMap::new();
    for listener in &config.listeners {
        if listener.admin.is_none() {
            continue;
        }
        match schema::shown(config, listener, tables).await {
            Ok(shown) => {
                for (table, is_shown) in shown {
                    *answered.entry(table).or_default() |= is_shown;
                }
            }
            Err(error) => {
                let listener = &listener.bind;
                tracing::debug!(
                    listener,
                    "whether admin may see new tables is not known: {error:#}"
                );
            }
        }
    }
    for (table, is_shown) in answered {
        if counters.schema.note_shown(&table, is_shown) {
            tracing::error!(
                "a rule matches {}.{}, and the listener's admin may not see it: it gets no keys. Those that it has got may be ids that it had. Grant \
                 SELECT, ALTER and LOCK TABLES on its schema",
                table.schema,
                table.name
            );
        }
    }
}
