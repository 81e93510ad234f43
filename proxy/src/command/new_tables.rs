//! Tables that get keys and that no schema refresh has shown, because they are new, or because the program's own account may not see them.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_proxy::config::{Config, Listener};
use keywright_proxy::metrics::Counters;
use keywright_proxy::schema;
use keywright_session::MetTable;
use tokio::task::JoinSet;

/// Asks the servers, all at once, whether the program's own account may see these tables. One that it may see by one listener is seen, as soon as
/// that is known; that it may see one by none is known when all have answered, or had their time. Of a server that cannot be asked nothing is
/// known, as before.
pub(super) async fn ask_about(config: &Arc<Config>, counters: &Counters, tables: Vec<MetTable>) {
    if tables.is_empty() {
        return;
    }
    let tables: Arc<[MetTable]> = tables.into();
    let mut asking = JoinSet::new();
    for listener in &config.listeners {
        if listener.admin.is_some() {
            let (config, tables) = (Arc::clone(config), Arc::clone(&tables));
            asking.spawn(ask(config, listener.clone(), tables));
        }
    }
    let (mut seen, mut denied) = (BTreeSet::new(), BTreeSet::new());
    while let Some(answered) = asking.join_next().await {
        // Who panicked has said so.
        for (table, is_shown) in answered.unwrap_or_default() {
            if is_shown {
                counters.schema.note_shown(&table, true);
                seen.insert(table);
            } else {
                denied.insert(table);
            }
        }
    }
    for table in denied.difference(&seen) {
        if counters.schema.note_shown(table, false) {
            tracing::error!(
                "a rule matches {}.{}, and the listener's admin may not see it: it gets no keys. Those that it has got may be ids that it had. Grant \
                 SELECT, ALTER and LOCK TABLES on its schema",
                table.schema,
                table.name
            );
        }
    }
}

/// What one server answers, as far as it does in time.
async fn ask(
    config: Arc<Config>,
    listener: Listener,
    tables: Arc<[MetTable]>,
) -> Vec<(MetTable, bool)> {
    let mut answered = Vec::new();
    if let Err(error) = schema::shown(&config, &listener, &tables, &mut answered).await {
        let listener = &listener.bind;
        tracing::debug!(
            listener,
            "whether admin may see new tables is not known of all: {error:#}"
        );
    }
    answered
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use keywright_proxy::config::Config;
    use keywright_proxy::metrics::Counters;
    use keywright_session::MetTable;

    use super::ask_about;

    /// More than one may take, less than two.
    const WAIT_MS_MAX: u64 = 5_000;

    #[tokio::test]
    async fn servers_that_do_not_answer_are_waited_for_together() {
        // They take connections, and say nothing.
        let silent = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let listeners = silent.iter().zip(2..).map(|(server, port)| {
            let at = server.local_addr().unwrap();
            format!(
                "[[listener]]\nbind = \"127.0.0.1:{port}\"\nupstream = \"{at}\"\nadmin = \"mysql://root@{at}\"\n"
            )
        });
        let config = format!(
            "[store]\nurl = \"mysql://root@127.0.0.1:1/s\"\n{}\
             [[rule]]\ntable = \"a.t\"\ncolumn = \"id\"\nkey = \"segment:a\"\n",
            listeners.collect::<String>()
        );
        let config = Arc::new(Config::parse(&config).unwrap());
        let table = MetTable {
            server: Arc::from(b"s".as_slice()),
            schema: "a".to_owned(),
            name: "t".to_owned(),
            column: "id".to_owned(),
        };
        let began_at = Instant::now();
        ask_about(&config, &Counters::default(), vec![table]).await;
        let taken = began_at.elapsed();
        assert!(taken < Duration::from_millis(WAIT_MS_MAX), "{taken:?}");
    }
}
