//! The small HTTP server: `/metrics` (Prometheus), `/healthz`, `/readyz`.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use keywright_store::{Keys, SourceStats};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::Counters;
use crate::stream::{Accepted, Acceptor, Stream};

/// Longest request that is read, bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// How long a request and its answer may take, milliseconds.
const REQUEST_MS_MAX: u64 = 2_000;
/// How many are served at a time: who asks whether the proxy is well does not wait behind somebody who says nothing.
const REQUESTS_MAX: usize = 64;
/// How long to wait when no connection can be accepted, milliseconds.
const ACCEPT_PAUSE_MS: u64 = 50;

/// Answers requests.
pub(crate) async fn serve(
    listener: Acceptor,
    keys: Keys,
    counters: Arc<Counters>,
    stopping: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(REQUESTS_MAX));
    // It is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await.and_then(Accepted::here) {
            Ok(mut peer) => {
                let (keys, counters) = (keys.clone(), Arc::clone(&counters));
                let stopping = stopping.clone();
                tokio::spawn(async move {
                    let limit = Duration::from_millis(REQUEST_MS_MAX);
                    let answer = answer(&mut peer, &keys, &counters, &stopping);
                    if let Ok(Err(error)) = timeout(limit, answer).await {
                        tracing::debug!(%error, "a request for metrics ended");
                    }
                    drop(place);
                });
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
