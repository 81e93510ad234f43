//! The small HTTP server: `/` (a page to look at) with `/status.json`, `/metrics` (Prometheus), `/healthz`, `/readyz`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use keywright_store::{SourceStats, StoreUp};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::page;
use crate::config::hosts::Hosts;
use crate::connection::accept_failures::AcceptFailures;
use crate::connection::acceptor::{Accepted, Acceptor};
use crate::connection::stream::Stream;
use crate::status::Status;

/// Longest head of a request that is read, bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// How long a request may take to come, milliseconds.
const REQUEST_MS_MAX: u64 = 2_000;
/// How long a request and its answer may take, milliseconds.
const EXCHANGE_MS_MAX: u64 = 5_000;
/// Connections at most. Who comes then is served, and the one that came first makes room: whoever asks whether the proxy is well does
/// not wait behind somebody who says nothing.
const CONNECTIONS_MAX: usize = 256;
/// Prometheus's text format, which the short answers are too.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// What is answered, the second without its body.
const METHODS: &str = "GET, HEAD";

/// What is state.
#[derive(Clone)]
struct HttpState {
    status: Arc<Status>,
    hosts: Hosts,
    stopping: watch::Receiver<bool>,
}

/// Answers requests for as long as connections are to be accepted; those that are left then go on. `hosts`: which these may name.
pub(crate) async fn serve(
    (listener, hosts, mut failures): (Acceptor, Hosts, AcceptFailures),
    status: Arc<Status>,
    stopping: watch::Receiver<bool>,
    mut accepting: watch::Receiver<bool>,
) -> JoinSet<()> {
    let state = HttpState {
        status,
        hosts,
        stopping,
    };
    let mut exchanges = JoinSet::new();
    let mut served: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = accepting.wait_for(|accepting| !*accepting) => return exchanges,
        };
        match accepted.and_then(Accepted::here) {
            Ok(peer) => {
                failures.accepted();
                while exchanges.try_join_next().is_some() {}
                served.retain(|connection| !connection.is_finished());
                if served.len() >= CONNECTIONS_MAX
                    && let Some(first) = served.pop_front()
                {
                    first.abort();
                }
                served.push_back(exchanges.spawn(exchange(peer, state.clone())));
            }
            Err(error) => failures.failed(&error).await,
        }
    }
}

/// One request and its answer.
async fn exchange(peer: Stream, state: HttpState) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (status, kind, body) = match state.hosts.check(request.uri(), request.headers()) {
            Ok(()) => state.answer(request.method(), request.uri().path()),
            Err(failure) => (StatusCode::FORBIDDEN, TEXT, format!("{failure}\n")),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, kind);
        if status == StatusCode::METHOD_NOT_ALLOWED {
            let methods = HeaderValue::from_static(METHODS);
            response.headers_mut().insert(ALLOW, methods);
        }
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
    fn answer(&self, method: &Method, path: &str) -> (StatusCode, HeaderValue, String) {
        if method != Method::GET && method != Method::HEAD {
            let body = format!("only {METHODS}\n");
            return (StatusCode::METHOD_NOT_ALLOWED, TEXT, body);
        }
        match path {
            "/" => (StatusCode::OK, HTML, page::HTML.to_owned()),
            "/status.json" => {
                let (ready, trouble) = self.readiness();
                let is_ready = ready == StatusCode::OK;
                match page::status(&self.status, (is_ready, &trouble)) {
                    Ok(body) => (StatusCode::OK, JSON, body),
                    Err(error) => failed(&error),
                }
            }
            "/metrics" => {
                let sources = self.status.sources();
                let (feeds, stores) = (self.status.feeds(), self.status.stores());
                let of_stores = (stores.as_slice(), self.status.is_on_kept_ranges());
                let counters = self.status.counters();
                match counters.render((&sources, &feeds), self.status.order().as_ref(), of_stores) {
                    Ok(figures) => (StatusCode::OK, TEXT, figures),
                    Err(error) => failed(&error),
                }
            }
            "/healthz" => (StatusCode::OK, TEXT, "ok\n".to_owned()),
            "/readyz" => {
                let (status, body) = self.readiness();
                (status, TEXT, body)
            }
            _ => {
                let body = "/, /status.json, /metrics, /healthz or /readyz\n".to_owned();
                (StatusCode::NOT_FOUND, TEXT, body)
            }
        }
    }

    fn readiness(&self) -> (StatusCode, String) {
        if *self.stopping.borrow() {
            return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned());
        }
        readiness(&self.status.sources(), &self.status.stores())
    }
}

/// The answer could not be written: a fault of this program.
fn failed(error: &dyn std::error::Error) -> (StatusCode, HeaderValue, String) {
    let body = format!("{error}\n");
    (StatusCode::INTERNAL_SERVER_ERROR, TEXT, body)
}

/// Ready unless a source has nothing left and cannot get more. Where one of several stores is away, its sources are told of and do not count:
/// else each program would be taken out for it, and the keys of all other stores be lost with it.
fn readiness(sources: &[SourceStats], stores: &[StoreUp]) -> (StatusCode, String) {
    let another_is_up = stores.iter().any(|store| store.is_up == Some(true));
    let is_away = |name: &str| {
        let its = stores.iter().find(|store| store.name == name);
        another_is_up && its.is_some_and(|store| store.is_up == Some(false))
    };
    let (mut body, mut is_ready) = (String::new(), true);
    for source in sources.iter().filter(|source| source.gives_nothing()) {
        if let Some(trouble) = &source.trouble {
            is_ready = is_ready && is_away(&source.store);
            let _ = match source.store.as_str() {
                "" => writeln!(body, "{}: {trouble}", source.name),
                store => writeln!(body, "{} in store {store}: {trouble}", source.name),
            };
        }
    }
    match is_ready {
        true => (StatusCode::OK, format!("ready\n{body}")),
        false => (StatusCode::SERVICE_UNAVAILABLE, body),
    }
}
