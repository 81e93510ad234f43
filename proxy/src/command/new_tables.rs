//! Tables of rules that no schema refresh has shown, because they are new, or because the program's own account may not see them: statements that want
//! keys of them wait until the servers were asked.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use keywright_proxy::config::{Config, Listener};
use keywright_proxy::log::on_one_line;
use keywright_proxy::metrics::Counters;
use keywright_proxy::schema::{self, Naming, TableAnswer};
use keywright_session::MetTable;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How many questions may be under way at once: each about the tables that were met since the one before, and no two about one table. A server that does not
/// answer holds up nobody else's.
const QUESTIONS_MAX: usize = 64;
/// How many answers of a question may wait to be noted.
const ANSWERS_MAX: usize = 64;

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
                let question = Question {
                    counters: Arc::clone(&counters),
                    tables: tables().into(),
                };
                let config = Arc::clone(&config.borrow());
                if !question.tables.is_empty() {
                    questions.spawn(question.put(config));
                }
            }
            // Who panicked has said so.
            Some(_) = questions.join_next() => {}
        }
    }
}

/// Tables that the servers are asked about since statements wait. However that ends, they may be asked about again.
struct Question {
    counters: Arc<Counters>,
    tables: Arc<[MetTable]>,
}

impl Question {
    async fn put(self, config: Arc<Config>) {
        ask_about(config, Arc::clone(&self.counters), Arc::clone(&self.tables)).await;
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.counters.schema.note_asked(&self.tables);
    }
}

/// Asks the servers, all at once, whether the program's own account may see these tables. One that it may see by one listener is seen, as soon as
/// that is known; that it may see one by none is known when those have answered, or had their time, whose listeners led to its server when a schema refresh
/// read them last. Of a server that cannot be asked nothing becomes known.
pub(super) async fn ask_about(
    config: Arc<Config>,
    counters: Arc<Counters>,
    tables: Arc<[MetTable]>,
) {
    if tables.is_empty() {
        return;
    }
    let began_at = counters.schema.answers();
    let (sender, answers) = mpsc::channel(ANSWERS_MAX);
    let mut asking = BTreeMap::new();
    for (place, listener) in config.listeners.iter().enumerate() {
        if listener.admin.is_none() {
            continue;
        }
        if let Some(server) = counters.new_tables.server(&listener.bind) {
            asking.insert(place, server);
        }
        // Each to its end, also where nothing is left to be known: a server that has seen many handshakes broken off turns the program's host away.
        tokio::spawn(ask(
            (Arc::clone(&config), listener.clone(), place),
            Arc::clone(&counters),
            Arc::clone(&tables),
            sender.clone(),
        ));
    }
    drop(sender);
    note_answers(answers, asking, &counters, (&tables, began_at)).await;
}

/// Notes what becomes known of these tables, about which the servers are asked since there were so many answers. `asking`: listeners by which somebody asks,
/// with their servers. One whose server is not known is waited for by nobody: should it lead to a table's server, and say that the table may be seen, that
/// counts for more than a denial before.
async fn note_answers(
    mut answers: mpsc::Receiver<TableAnswer>,
    mut asking: BTreeMap<usize, Arc<[u8]>>,
    counters: &Counters,
    (tables, began_at): (&[MetTable], u64),
) {
    let (mut seen, mut denied) = (BTreeSet::new(), BTreeSet::new());
    while let Some(heard) = answers.recv().await {
        match heard {
            TableAnswer::Shown(table, true) => {
                counters.schema.note_shown(&table, true);
                counters.new_tables.tell(counters.schema.answers());
                seen.insert(table);
            }
            TableAnswer::Shown(table, false) => {
                denied.insert(table);
            }
            TableAnswer::End(place) => {
                asking.remove(&place);
            }
        }
        if seen.len() == tables.len() {
            return;
        }
        let is_open = |table: &MetTable| asking.values().any(|server| *server == table.server);
        let (open, known): (BTreeSet<MetTable>, BTreeSet<MetTable>) =
            mem::take(&mut denied).into_iter().partition(is_open);
        denied = open;
        for table in known.difference(&seen) {
            note_denied(table, began_at, counters);
        }
    }
    // Somebody panicked, and has not said that he has ended.
    for table in denied.difference(&seen) {
        note_denied(table, began_at, counters);
    }
}

/// By no listener may the program's own account see a table.
fn note_denied(table: &MetTable, began_at: u64, counters: &Counters) {
    let is_new = counters.schema.note_unshown(table, began_at);
    counters.new_tables.tell(counters.schema.answers());
    if !is_new {
        return;
    }
    let naming = counters.new_tables.name_denied();
    if naming != Naming::Nothing {
        tracing::error!(
            "a rule matches {}.{}, and the listener's admin may not see it: it gets no keys. Grant SELECT, ALTER and LOCK TABLES on its schema",
            on_one_line(&table.schema),
            on_one_line(&table.name)
        );
    }
    if naming == Naming::LastLine {
        tracing::error!("the log names no more tables like that for a minute");
    }
}

/// What one server answers, as far as it does in time.
async fn ask(
    (config, listener, place): (Arc<Config>, Listener, usize),
    counters: Arc<Counters>,
    tables: Arc<[MetTable]>,
    answers: mpsc::Sender<TableAnswer>,
) {
    if let Err(error) = schema::shown(&config, &listener, &tables, &answers).await
        && counters.new_tables.may_warn(&listener.bind)
    {
        let listener = &listener.bind;
        tracing::warn!(
            listener,
            "whether admin may see new tables is not known, and INSERTs that want keys of them are refused: {error:#}"
        );
    }
    // Perhaps nobody hears any more: everything is known.
    let _ = answers.send(TableAnswer::End(place)).await;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{ErrorKind, Read};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use keywright_proxy::config::Config;
    use keywright_proxy::metrics::Counters;
    use keywright_session::MetTable;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::{ANSWERS_MAX, Asker, TableAnswer, ask_about, note_answers};

    /// More than one may take, less than two.
    const WAIT_MS_MAX: u64 = 5_000;

    fn table(name: &str) -> MetTable {
        MetTable {
            server: Arc::from(b"s".as_slice()),
            schema: "a".to_owned(),
            name: name.to_owned(),
            column: "id".to_owned(),
        }
    }

    /// It takes connections, and says nothing.
    async fn silent_server() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").await.unwrap()
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

    /// The connection by which a server is asked.
    async fn asked(server: &TcpListener) -> TcpStream {
        let limit = Duration::from_millis(WAIT_MS_MAX);
        let accepted = timeout(limit, server.accept()).await;
        accepted.expect("nobody asks").unwrap().0
    }

    /// The question that came by it has not ended.
    fn goes_on(connection: TcpStream) {
        let connection = connection.into_std().unwrap();
        let heard = (&connection).read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(heard, Err(ErrorKind::WouldBlock), "it has ended");
    }

    #[tokio::test]
    async fn servers_that_do_not_answer_are_waited_for_together() {
        let servers = [silent_server().await, silent_server().await];
        let config = before(&[&servers[0], &servers[1]]);
        let began_at = Instant::now();
        ask_about(config, Arc::default(), Arc::from([table("t")])).await;
        let taken = began_at.elapsed();
        assert!(taken < Duration::from_millis(WAIT_MS_MAX), "{taken:?}");
    }

    /// A program that is told to reload goes by another configuration meanwhile.
    #[tokio::test]
    async fn a_question_goes_on_when_there_is_another_configuration() {
        let servers = [silent_server().await, silent_server().await];
        let counters = Arc::new(Counters::default());
        let about = || vec![table("t")];
        let asker = Asker::begin_about(before(&[&servers[0]]), Arc::clone(&counters), about);
        counters.new_tables.wake();
        let first = asked(&servers[0]).await;
        asker.follow(before(&[&servers[1]]));
        counters.new_tables.wake();
        let _second = asked(&servers[1]).await;
        goes_on(first);
    }

    /// Statements on tables of other servers wait meanwhile.
    #[tokio::test]
    async fn questions_that_nobody_answers_hold_up_no_others() {
        const QUESTIONS: u64 = 16;
        let server = silent_server().await;
        let counters = Arc::new(Counters::default());
        let names = AtomicU64::new(0);
        let about = move || vec![table(&names.fetch_add(1, Ordering::Relaxed).to_string())];
        let _asker = Asker::begin_about(before(&[&server]), Arc::clone(&counters), about);
        let mut connections = Vec::new();
        for _ in 0..QUESTIONS {
            counters.new_tables.wake();
            connections.push(asked(&server).await);
        }
        goes_on(connections.swap_remove(0));
    }

    /// What is heard of a question about `t` on server `s` by a listener before that server, while nobody has ended who asks by the other ones. Whether that
    /// is an answer to whoever waits.
    async fn is_known(others: &[&str], heard: Vec<TableAnswer>) -> bool {
        let counters = Counters::default();
        let servers = ["s"].into_iter().chain(others.iter().copied());
        let asking: BTreeMap<usize, Arc<[u8]>> = servers
            .map(|server| Arc::from(server.as_bytes()))
            .enumerate()
            .collect();
        let (sender, answers) = mpsc::channel(ANSWERS_MAX);
        for what in heard {
            sender.send(what).await.unwrap();
        }
        let tables = [table("t")];
        // It begins with a look at everything that has come.
        let noting = note_answers(answers, asking, &counters, (&tables, 0));
        let _ = timeout(Duration::ZERO, noting).await;
        drop(sender);
        counters.schema.answers() > 0
    }

    #[tokio::test]
    async fn a_denial_waits_for_other_listeners_of_its_server_only() {
        let denied = || TableAnswer::Shown(table("t"), false);
        assert!(is_known(&["elsewhere"], vec![denied(), TableAnswer::End(0)]).await);
        assert!(!is_known(&["elsewhere"], vec![denied(), TableAnswer::End(1)]).await);
        assert!(!is_known(&["s"], vec![denied(), TableAnswer::End(0)]).await);
        let both = vec![denied(), TableAnswer::End(0), TableAnswer::End(1)];
        assert!(is_known(&["s"], both).await);
        let shown = vec![denied(), TableAnswer::Shown(table("t"), true)];
        assert!(is_known(&["s", "elsewhere"], shown).await);
    }
}
