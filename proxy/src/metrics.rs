//! What the proxy counts, and the small HTTP server that tells it: `/metrics` (Prometheus), `/healthz`, `/readyz`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keywright_session::Events;
use keywright_store::{Keys, SourceStats};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::stream::{Acceptor, Stream};

/// Longest request that is read, bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// How long a request and its answer may take, milliseconds. They are served one after the other.
const REQUEST_MS_MAX: u64 = 2_000;
/// How long to wait when no connection can be accepted, milliseconds.
const ACCEPT_PAUSE_MS: u64 = 50;

/// What happened since the start. All threads add to it.
#[derive(Debug, Default)]
pub struct Counters {
    accepted: AtomicU64,
    open: AtomicU64,
    turned_away: AtomicU64,
    rewritten: AtomicU64,
    observed: AtomicU64,
    refused: Mutex<BTreeMap<&'static str, u64>>,
    passed: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// A client has connected; how many there are with it.
    pub fn opened(&self) -> u64 {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// A client has gone.
    pub fn closed(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// Clients that are connected.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Acquire)
    }

    /// A client was turned away because there are too many.
    pub fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// What became of statements.
    pub fn note(&self, events: &Events) {
        if events.rewritten > 0 {
            self.rewritten
                .fetch_add(events.rewritten, Ordering::Relaxed);
        }
        if events.observed > 0 {
            self.observed.fetch_add(events.observed, Ordering::Relaxed);
        }
        for (counts, constructs) in [
            (&self.refused, &events.refused),
            (&self.passed, &events.passed),
        ] {
            if constructs.is_empty() {
                continue;
            }
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            for construct in constructs {
                *counts.entry(construct).or_default() += 1;
            }
        }
    }

    /// All of it, and what the sources of keys count, as Prometheus reads it.
    pub fn render(&self, sources: &[SourceStats]) -> String {
        let mut text = String::new();
        let plain: [(&str, &str, &str, &AtomicU64); 5] = [
            (
                "connections",
                "gauge",
                "Clients that are connected.",
                &self.open,
            ),
            (
                "connections_total",
                "counter",
                "Clients that were accepted.",
                &self.accepted,
            ),
            (
                "connections_refused_total",
                "counter",
                "Clients turned away at connections_max.",
                &self.turned_away,
            ),
            (
                "statements_rewritten_total",
                "counter",
                "Statements that got keys.",
                &self.rewritten,
            ),
            (
                "statements_observed_total",
                "counter",
                "Statements that would have got keys.",
                &self.observed,
            ),
        ];
        for (name, kind, help, value) in plain {
            head(&mut text, name, kind, help);
            line(&mut text, name, "", "", value.load(Ordering::Relaxed));
        }
        let by_construct = [
            (
                "statements_refused_total",
                "Statements that were refused.",
                &self.refused,
            ),
            (
                "statements_passed_total",
                "Statements passed without keys, as the rule says.",
                &self.passed,
            ),
        ];
        for (name, help, counts) in by_construct {
            head(&mut text, name, "counter", help);
            let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            for (construct, count) in counts.iter() {
                line(&mut text, name, "construct", construct, *count);
            }
        }
        render_sources(&mut text, sources);
        text
    }
}

fn render_sources(text: &mut String, sources: &[SourceStats]) {
    type Figure = (
        &'static str,
        &'static str,
        &'static str,
        fn(&SourceStats) -> u64,
    );
    let figures: [Figure; 9] = [
        ("keys_issued_total", "counter", "Keys issued.", |of| {
            of.issued
        }),
        (
            "keys_remaining",
            "gauge",
            "Keys left in memory; milliseconds of bound for keys made of time.",
            |of| of.remaining,
        ),
        (
            "keys_per_second",
            "gauge",
            "Rate over the last reservation.",
            |of| of.rate_per_s,
        ),
        ("step", "gauge", "Size of the next reservation.", |of| {
            of.step
        }),
        (
            "refills_total",
            "counter",
            "Reservations made in the store.",
            |of| of.refills,
        ),
        (
            "refill_failures_total",
            "counter",
            "Reservations that failed.",
            |of| of.refill_failures,
        ),
        (
            "waits_total",
            "counter",
            "Statements that waited for a reservation.",
            |of| of.waits,
        ),
        (
            "wait_microseconds_total",
            "counter",
            "How long they waited in total.",
            |of| of.wait_us,
        ),
        (
            "keys_refused_total",
            "counter",
            "Requests for keys that failed.",
            |of| of.refused,
        ),
    ];
    for (name, kind, help, figure) in figures {
        head(text, name, kind, help);
        for source in sources {
            line(text, name, "source", &source.name, figure(source));
        }
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "# HELP keywright_{name} {help}\n# TYPE keywright_{name} {kind}"
    );
}

fn line(text: &mut String, name: &str, label: &str, value: &str, count: u64) {
    let _ = if label.is_empty() {
        writeln!(text, "keywright_{name} {count}")
    } else {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        writeln!(text, "keywright_{name}{{{label}=\"{value}\"}} {count}")
    };
}

/// Answers one request after the other.
pub(crate) async fn serve(
    listener: Acceptor,
    keys: Keys,
    counters: Arc<Counters>,
    stopping: watch::Receiver<bool>,
) {
    loop {
        match listener.accept().await {
            Ok(mut peer) => {
                let limit = Duration::from_millis(REQUEST_MS_MAX);
                let served = timeout(limit, answer(&mut peer, &keys, &counters, &stopping)).await;
                if let Ok(Err(error)) = served {
                    tracing::debug!(%error, "a request for metrics ended");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a request for metrics");
                tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
            }
        }
    }
}

async fn answer(
    peer: &mut Stream,
    keys: &Keys,
    counters: &Counters,
    stopping: &watch::Receiver<bool>,
) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 1 << 10];
        let count = peer.read(&mut part).await?;
        request.extend_from_slice(part.get(..count).unwrap_or_default());
        if count == 0 || request.len() > REQUEST_BYTES_MAX {
            return Err(io::Error::other("no request that can be read"));
        }
    }
    let is_stopping = *stopping.borrow();
    let (status, body) = respond(&request, keys, counters, is_stopping);
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    peer.write_all(answer.as_bytes()).await?;
    peer.shutdown().await
}

fn respond(
    request: &[u8],
    keys: &Keys,
    counters: &Counters,
    is_stopping: bool,
) -> (&'static str, String) {
    let mut words = request.split(|byte| *byte == b' ');
    if words.next() != Some(b"GET") {
        return ("405 Method Not Allowed", "only GET\n".to_owned());
    }
    match words.next() {
        Some(b"/metrics") => ("200 OK", counters.render(&keys.stats())),
        Some(b"/healthz") => ("200 OK", "ok\n".to_owned()),
        Some(b"/readyz") if is_stopping => ("503 Service Unavailable", "stopping\n".to_owned()),
        Some(b"/readyz") => readiness(&keys.stats()),
        Some(_) | None => (
            "404 Not Found",
            "/metrics, /healthz or /readyz\n".to_owned(),
        ),
    }
}

/// Ready unless a source has nothing left and cannot get more.
fn readiness(sources: &[SourceStats]) -> (&'static str, String) {
    let mut body = String::new();
    for source in sources.iter().filter(|source| source.remaining == 0) {
        if let Some(trouble) = &source.trouble {
            let _ = writeln!(body, "{}: {trouble}", source.name);
        }
    }
    if body.is_empty() {
        ("200 OK", "ready\n".to_owned())
    } else {
        ("503 Service Unavailable", body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructs_are_counted_apart() {
        let counters = Counters::default();
        assert_eq!(counters.opened(), 1);
        for _ in 0..2 {
            counters.note(&Events {
                rewritten: 2,
                refused: vec!["insert … select", "load \"data\""],
                ..Events::default()
            });
        }
        let text = counters.render(&[]);
        for expected in [
            "keywright_connections 1\n",
            "keywright_statements_rewritten_total 4\n",
            "keywright_statements_refused_total{construct=\"insert … select\"} 2\n",
            "keywright_statements_refused_total{construct=\"load \\\"data\\\"\"} 2\n",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }
}
