//! What `SHOW KEYWRIGHT STATUS` answers, and to whom.

use std::sync::Arc;
use std::time::Instant;

use keywright_store::{Keys, Remaining, SourceStats};

use crate::metrics::Counters;

/// The program's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Answers clients that ask the proxy how it is.
#[derive(Debug)]
pub struct Status {
    /// Users who get an answer.
    users: Vec<Vec<u8>>,
    started: Instant,
    keys: Keys,
    counters: Arc<Counters>,
    /// Where is listened, and for which server.
    listeners: Vec<(String, String)>,
}

impl Status {
    /// The process has just started.
    pub fn new(users: &[String], keys: Keys, counters: Arc<Counters>) -> Self {
        Self {
            users: users.iter().map(|user| user.clone().into_bytes()).collect(),
            started: Instant::now(),
            keys,
            counters,
            listeners: Vec::new(),
        }
    }

    /// With these places to accept clients, and the servers behind them.
    #[must_use]
    pub fn with_listeners(mut self, listeners: Vec<(String, String)>) -> Self {
        self.listeners = listeners;
        self
    }

    /// Places to accept clients, and the servers behind them.
    pub(crate) fn listeners(&self) -> &[(String, String)] {
        &self.listeners
    }

    /// Whether that user gets an answer. The server has accepted the user's login.
    pub fn allows(&self, user: &[u8]) -> bool {
        self.users.iter().any(|allowed| allowed == user)
    }

    /// What the sources of keys count.
    pub(crate) fn sources(&self) -> Vec<SourceStats> {
        self.keys.stats()
    }

    /// What the program counts.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Seconds since the start.
    pub(crate) fn uptime_s(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Names and values.
    pub fn rows(&self) -> Vec<(String, String)> {
        let mut rows = vec![
            ("version".to_owned(), VERSION.to_owned()),
            ("uptime_s".to_owned(), self.uptime_s().to_string()),
            ("connections".to_owned(), self.counters.open().to_string()),
            (
                "connections_total".to_owned(),
                self.counters.accepted().to_string(),
            ),
        ];
        for rule in self.counters.rules() {
            for (figure, value) in [
                ("rewritten", rule.rewritten),
                ("refused", rule.refused),
                ("passed", rule.passed),
                ("observed", rule.observed),
            ] {
                let name = if rule.name.is_empty() {
                    format!("no_rule.{figure}")
                } else {
                    format!("rule.{}.{figure}", rule.name)
                };
                rows.push((name, value.to_string()));
            }
        }
        for source in self.keys.stats() {
            of_source(&source, &mut rows);
        }
        rows
    }
}

fn of_source(source: &SourceStats, rows: &mut Vec<(String, String)>) {
    let mut tell = |figure: &str, value: String| {
        rows.push((format!("source.{}.{figure}", source.name), value));
    };
    match source.remaining {
        Remaining::Keys(left) => tell("remaining", left.to_string()),
        Remaining::Ms(left) => tell("bound_remaining_ms", left.to_string()),
    }
    for (figure, value) in [
        ("issued", source.issued),
        ("rate_per_s", source.rate_per_s),
        ("refills", source.refills),
        ("waits", source.waits),
        ("wait_us", source.wait_us),
        ("refused", source.refused),
    ] {
        tell(figure, value.to_string());
    }
    if let Some(worker_id) = source.worker_id {
        tell("worker_id", worker_id.to_string());
    }
    if let Some(trouble) = &source.trouble {
        tell("trouble", trouble.clone());
    }
}
