//! Connections that draw ids without end, as applications do, while a test does something to the server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, ensure};
use postgres::{Config, NoTls};

use crate::pg::client::from_server;
use crate::{IdLog, Result, WAIT_MAX, copy_ids, wait_until};

/// Pause before connecting or asking again after an error.
const PAUSE: Duration = Duration::from_millis(10);

/// Connections that run one query over and over and record every id that arrives. One that the server throws out
/// connects again; one whose query is refused goes on asking in the same session. Each connection is a run of the log.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    query: String,
    log: Arc<IdLog>,
    stop: AtomicBool,
    drawn: AtomicUsize,
    refusals: Mutex<BTreeMap<String, String>>,
}

/// How a query ended that did not go well.
enum Trouble {
    /// The server refused, with this SQLSTATE and message, and the session goes on.
    Refused(String, String),
    /// The session is gone.
    ThrownOut,
}

impl Load {
    /// Starts drawing with a query of one `bigint` column; the shorter it takes, the more alive the load is.
    #[must_use]
    pub fn start(config: &Config, connections: usize, query: &str, log: &Arc<IdLog>) -> Load {
        let shared = Arc::new(Shared {
            config: config.clone(),
            query: query.to_owned(),
            log: Arc::clone(log),
            stop: AtomicBool::new(false),
            drawn: AtomicUsize::new(0),
            refusals: Mutex::default(),
        });
        let threads = (0..connections)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.draw())
            })
            .collect();
        Load { shared, threads }
    }

    /// Waits until that many more ids have come.
    ///
    /// # Errors
    /// They do not come; the error says what the server refused meanwhile.
    pub fn wait_for(&self, ids: usize) -> Result<()> {
        let goal = self.shared.drawn.load(Ordering::Relaxed) + ids;
        let came = wait_until("ids under load", WAIT_MAX, || {
            Ok(self.shared.drawn.load(Ordering::Relaxed) >= goal)
        });
        came.with_context(|| format!("refused meanwhile: {:?}", self.refusals()))
    }

    /// What the server refused so far: SQLSTATE, and the first message that had it. A session that ends with its server
    /// is no refusal.
    #[must_use]
    pub fn refusals(&self) -> BTreeMap<String, String> {
        self.shared
            .refusals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Ends it, also when the server is gone, and returns what was refused.
    ///
    /// # Errors
    /// A drawing thread panicked.
    pub fn stop(self) -> Result<BTreeMap<String, String>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let refusals = Arc::clone(&self.shared);
        for thread in self.threads {
            ensure!(thread.join().is_ok(), "a drawing thread panicked");
        }
        let refusals = refusals.refusals.lock();
        Ok(refusals.unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Shared {
    fn draw(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            match self.config.connect(NoTls) {
                Ok(client) => self.session(client),
                Err(error) => {
                    self.note(trouble(&error.into()));
                    thread::sleep(PAUSE);
                }
            }
        }
    }

    fn session(&self, mut client: postgres::Client) {
        let mut run = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let before = run.len();
            let done = copy_ids(&mut client, &self.query, &mut run);
            self.drawn.fetch_add(run.len() - before, Ordering::Relaxed);
            let Err(error) = done else { continue };
            let trouble = trouble(&error);
            let over = match &trouble {
                Trouble::Refused(_, _) => false,
                Trouble::ThrownOut => true,
            };
            self.note(trouble);
            if over {
                break;
            }
            thread::sleep(PAUSE);
        }
        self.log.record(run);
    }

    fn note(&self, trouble: Trouble) {
        match trouble {
            Trouble::ThrownOut => {}
            Trouble::Refused(sqlstate, message) => {
                let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
                refusals.entry(sqlstate).or_insert(message);
            }
        }
    }
}

fn trouble(error: &anyhow::Error) -> Trouble {
    match from_server(error) {
        // Class 57P: the server is being shut down, has crashed, or is starting.
        Some(error) if !error.code().code().starts_with("57P") => {
            Trouble::Refused(error.code().code().to_owned(), error.message().to_owned())
        }
        Some(_) | None => Trouble::ThrownOut,
    }
}
