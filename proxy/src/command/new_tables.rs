//! Tables of rules that no schema refresh has shown, because they are new, or because the program's own account may not see them: statements on
//! them wait until the servers were asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_proxy::config::{Config, Listener};
use keywright_proxy::metrics::Counters;
use keywright_proxy::schema;
use keywright_session::MetTable;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How many questions may be under way at once, each about the tables that were met since the one before: a server that does not answer holds up
/// nobody else's.
const QUESTIONS_MAX: usize = 4;

/// Asks the servers as soon as statements wait for that, whatever else the program does, until it is dropped.
pub(super) struct Asker {
    config: watch::Sender<Arc<Config>>,
    _asking: JoinSet<()>,
}

impl Asker {
    /// Asks the servers of this configuration.
    pub(super) fn begin(config: Arc<Config>, counters: Arc<Counters>) -> Asker {
        let schema = Arc::clone(&counters.schema);
        Asker::begin_about(config, counters, move || schema.tables_to_ask(false))
    }

    /// The same about these tables.
    fn begin_about(
        config: Arc<Config>,
        counters: Arc<Counters>,
        tables: impl Fn() -> Vec<MetTable> + Send + 'static,
    ) -> Asker {
        let (sender, config) = watch::channel(config);
        let mut asking = JoinSet::new();
        asking.spawn(ask_when_waited_for(config, counters, tables));
        Asker {
            config: sender,
            _asking: asking,
        }
    }

    /// Asks the servers of another configuration from now on. What is under way goes on.
    pub(super) fn follow(&self, config: Arc<Config>) {
        self.config.send_replace(config);
    }
}

async fn ask_when_waited_for(
    config: watch::Receiver<Arc<Config>>,
    counters: Arc<Counters>,
    tables: impl Fn() -> Vec<MetTable>,
) {
    let mut questions = JoinSet::new();
    loop {
        tokio::select! {
            () = counters.new_tables.waited_for(), if questions.len() < QUESTIONS_MAX => {
                let config = Arc::clone(&config.borrow());
                questions.spawn(ask_about(config, Arc::clone(&counters), tables()));
            }
            // Who panicked has said so.
            Some(_) = questions.join_next() => {}
        }
    }
}

/// Asks the servers, all at once, whether the program's own account may see these tables. One that it may see by one listener is seen, as soon as
/// that is known; that it may see one by none is known when all have answered, or had their time. Of a server that cannot be asked nothing becomes
/// known.
pub(super) async fn ask_about(config: Arc<Config>, counters: Arc<Counters>, tables: Vec<MetTable>) {
    if tables.is_empty() {
        return;
    }
    let tables: Arc<[MetTable]> = tables.into();
    let mut asking = JoinSet::new();
    for listener in &config.listeners {
        if listener.admin.is_some() {
            let (config, tables) = (Arc::clone(&config), Arc::clone(&tables));
            asking.spawn(ask(config, listener.clone(), tables));
        }
    }
    let (mut seen, mut denied) = (BTreeSet::new(), BTreeSet::new());
    while let Some(answered) = asking.join_next().await {
        // Who panicked has said so.
        for (table, is_shown) in answered.unwrap_or_default() {
            if is_shown {
                note(&counters, &table, true);
                seen.insert(table);
            } else {
                denied.insert(table);
            }
        }
        if seen.len() == tables.len() {
            // Of the other servers nothing is left to be known.
            return;
        }
    }
    for table in denied.difference(&seen) {
        if note(&counters, table, false) {
            tracing::error!(
                "a rule matches {}.{}, and the listener's admin may not see it: it gets no keys. Grant SELECT, ALTER and LOCK TABLES on its schema",
                table.schema,
                table.name
            );
        }
    }
}

/// Tells statements that wait. Returns whether it is new that the account may not see it.
fn note(counters: &Counters, table: &MetTable, is_shown: bool) -> bool {
    let is_new = counters.schema.note_shown(table, is_shown);
    counters.new_tables.tell(counters.schema.answers());
    is_new
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
    use std::io::{ErrorKind, Read};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use keywright_proxy::config::Config;
    use keywright_proxy::metrics::Counters;
    use keywright_session::MetTable;
    use tokio::task::spawn_blocking;

    use super::{Asker, ask_about};

    /// More than one may take, less than two.
    const WAIT_MS_MAX: u64 = 5_000;

    fn table() -> MetTable {
        MetTable {
            server: Arc::from(b"s".as_slice()),
            schema: "a".to_owned(),
            name: "t".to_owned(),
            column: "id".to_owned(),
        }
    }

    /// With a listener before each of these servers.
    fn before(servers: &[&TcpListener]) -> Arc<Config> {
        let listeners = servers.iter().zip(2..).map(|(server, port)| {
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
        Arc::new(Config::parse(&config).unwrap())
    }

    #[tokio::test]
    async fn servers_that_do_not_answer_are_waited_for_together() {
        // They take connections, and say nothing.
        let silent = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let config = before(&[&silent[0], &silent[1]]);
        let began_at = Instant::now();
        ask_about(config, Arc::default(), vec![table()]).await;
        let taken = began_at.elapsed();
        assert!(taken < Duration::from_millis(WAIT_MS_MAX), "{taken:?}");
    }

    /// A program that is told to reload goes by another configuration meanwhile.
    #[tokio::test]
    async fn a_question_goes_on_when_there_is_another_configuration() {
        let servers = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let counters = Arc::new(Counters::default());
        let about = || vec![table()];
        let asker = Asker::begin_about(before(&[&servers[0]]), Arc::clone(&counters), about);
        let asked = |server: &TcpListener| {
            let server = server.try_clone().unwrap();
            let accepted = spawn_blocking(move || server.accept().unwrap().0);
            async move { accepted.await.unwrap() }
        };
        counters.new_tables.wake();
        let first = asked(&servers[0]).await;
        asker.follow(before(&[&servers[1]]));
        counters.new_tables.wake();
        let _second = asked(&servers[1]).await;
        first.set_nonblocking(true).unwrap();
        let heard = (&first).read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(heard, Err(ErrorKind::WouldBlock), "it has not ended");
    }
}
