//! The small HTTP server: `/metrics` (Prometheus), `/healthz`, `/readyz`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use keywright_store::{Keys, SourceStats};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::Counters;
use crate::stream::{Accepted, Acceptor, Stream};

/// Longest head of a request that is read, bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// How long a request may take to come, milliseconds.
const REQUEST_MS_MAX: u64 = 2_000;
/// How long a request and its answer may take, milliseconds.
const EXCHANGE_MS_MAX: u64 = 5_000;
/// Connections at most. Who comes then is served, and the one that came first makes room: whoever asks whether the proxy is well does
/// not wait behind somebody who says nothing.
const CONNECTIONS_MAX: usize = 256;
/// How long to wait when no connection can be accepted, milliseconds.
const ACCEPT_PAUSE_MS: u64 = 50;
/// Prometheus's text format, which the short answers are too.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What is state.
#[derive(Clone)]
struct HttpState {
    keys: Keys,
    counters: Arc<Counters>,
    stopping: watch::Receiver<bool>,
}

/// Answers requests.
pub(crate) async fn serve(
    listener: Acceptor,
    keys: Keys,
    counters: Arc<Counters>,
    stopping: watch::Receiver<bool>,
) {
    let state = HttpState {
        keys,
        counters,
        stopping,
    };
    let mut served: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        match listener.accept().await.and_then(Accepted::here) {
            Ok(peer) => {
                served.retain(|connection| !connection.is_finished());
                if served.len() >= CONNECTIONS_MAX
                    && let Some(first) = served.pop_front()
                {
                    first.abort();
                }
                let exchange = tokio::spawn(exchange(peer, state.clone()));
                served.push_back(exchange.abort_handle());
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a request for metrics");
                tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
            }
        }
    }
}

/// One request and its answer.
async fn exchange(peer: Stream, state: HttpState) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (status, body) = state.answer(request.method(), request.uri().path());
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, TEXT);
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let exchange = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(REQUEST_MS_MAX))
        .max_buf_size(REQUEST_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(peer), answer);
    if let Ok(Err(error)) = timeout(Duration::from_millis(EXCHANGE_MS_MAX), exchange).await {
        tracing::debug!(%error, "a request for metrics ended");
    }
}

impl HttpState {
    fn answer(&self, method: &Method, path: &str) -> (StatusCode, String) {
        if method != Method::GET {
            return (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
        }
        match path {
            "/metrics" => match self.counters.render(&self.keys.stats()) {
                Ok(figures) => (StatusCode::OK, figures),
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            },
            "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
            "/readyz" if *self.stopping.borrow() => {
                (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned())
            }
            "/readyz" => readiness(&self.keys.stats()),
            _ => (
                StatusCode::NOT_FOUND,
                "/metrics, /healthz or /readyz\n".to_owned(),
            ),
        }
    }
}

/// Ready unless a source has nothing left and cannot get more.
fn readiness(sources: &[SourceStats]) -> (StatusCode, String) {
    let mut body = String::new();
    for source in sources.iter().filter(|source| source.remaining == 0) {
        if let Some(trouble) = &source.trouble {
            let _ = writeln!(body, "{}: {trouble}", source.name);
        }
    }
    if body.is_empty() {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, body)
    }
}
