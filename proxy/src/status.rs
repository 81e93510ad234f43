//! What `SHOW KEYWRIGHT STATUS` answers, and to whom.

use std::sync::Arc;
use std::time::Instant;

use keywright_store::{Keys, SourceStats};

use crate::metrics::Counters;

/// Answers clients that ask the proxy how it is.
#[derive(Debug)]
pub struct Status {
    /// Users who get an answer.
    users: Vec<Vec<u8>>,
    started: Instant,
    keys: Keys,
    counters: Arc<Counters>,
}

impl Status {
    /// The process has just started.
    pub fn new(users: &[String], keys: Keys, counters: Arc<Counters>) -> Self {
        Self {
            users: users.iter().map(|user| user.clone().into_bytes()).collect(),
            started: Instant::now(),
            keys,
            counters,
        }
    }

    /// Whether that user gets an answer. The server has accepted the user's login.
    pub fn allows(&self, user: &[u8]) -> bool {
        self.users.iter().any(|allowed| allowed == user)
    }

    /// Names and values.
    pub fn rows(&self) -> Vec<(String, String)> {
        let mut rows = vec![
            ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            (
                "uptime_s".to_owned(),
                self.started.elapsed().as_secs().to_string(),
            ),
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
    for (figure, value) in [
        ("issued", source.issued),
        ("remaining", source.remaining),
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
