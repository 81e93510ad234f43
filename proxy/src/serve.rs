//! Threads, listeners, and the end of both.

pub mod listening;
pub mod take_over;
pub(crate) mod threads;

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use keywright_core::Cause;
use keywright_session::{Rules, Session};
use keywright_store::Keys;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::{Instrument as _, Span};

use crate::config::{Config, Listener};
use crate::connection::keepalive::keep_alive;
use crate::connection::linger::linger;
use crate::connection::memory::Memory;
use crate::connection::origin::Origin;
use crate::connection::refusal::refuse;
use crate::connection::relay::Relay;
use crate::connection::slot::ConnectionSlot;
use crate::connection::span as connection_span;
use crate::connection::stream::{Accepted, Acceptor, Stream};
use crate::handshake::{self, Ended, Login, LoginSettings, Pending};
use crate::in_force::context::ListenerContext;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::in_force::updates as config_updates;
use crate::metrics::{self, Counters, Metric};
use crate::serve::listening::{Acceptors, Listening};
use crate::serve::threads::Threads;
use crate::status::Status;
use crate::status::clients::{Client, Entered, ListenerFigures};

/// How long an acceptor pauses when the process has too many open files, milliseconds.
const ACCEPT_PAUSE_MS: u64 = 50;
/// How often connections between commands are looked for while draining, milliseconds.
const DRAIN_POLL_MS: u64 = 20;

/// What all threads share.
struct Shared {
    config: Config,
    /// By place in the configuration.
    listeners: Vec<Arc<ListenerFigures>>,
    snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    counters: Arc<Counters>,
    status: Arc<Status>,
    memory: Arc<Memory>,
    threads: Threads,
    /// Connections that were accepted, for their numbers in the log.
    accepted: AtomicU64,
    stopping: watch::Receiver<bool>,
}

/// What serving is told, and tells.
#[derive(Debug)]
pub struct ServeControl {
    /// Where clients come from. Closed once the threads have it, so that nothing listens there when they do not.
    pub listening: Arc<Listening>,
    /// False: nobody is accepted any more, and who is connected goes on. Its receivers are gone when nobody can be.
    pub accepting: watch::Receiver<bool>,
    /// True: connections are to end, and who comes is told.
    pub stopping: watch::Receiver<bool>,
    /// Notified when clients are served.
    pub serves: oneshot::Sender<()>,
}

/// Serves clients until `stopping` says so, then lets connections end.
///
/// # Errors
/// Too many open files.
pub fn serve(
    config: Config,
    keys: Keys,
    snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    counters: Arc<Counters>,
    control: ServeControl,
) -> Result<()> {
    let ServeControl {
        listening,
        accepting,
        stopping,
        serves,
    } = control;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (threads, runtimes) = Threads::new(threads).context("starting runtimes")?;
    let acceptors = runtimes.iter().enumerate().map(|(thread, runtime)| {
        let _inside = runtime.enter();
        listening.here(thread == 0)
    });
    let acceptors = acceptors.collect::<std::io::Result<Vec<_>>>();
    let acceptors = acceptors.context("sharing a listening socket")?;
    drop(listening);
    let listeners = config.listeners.iter();
    let listeners = listeners.map(|of| counters.listens(&of.bind, &of.upstream));
    let listeners = listeners.collect();
    let users = &config.status_users;
    let status = Status::new(users, keys, Arc::clone(&counters), snapshot.clone());
    let shared = Arc::new(Shared {
        memory: Arc::new(Memory::new(config.memory_bytes_max)),
        threads,
        accepted: AtomicU64::new(0),
        config,
        listeners,
        snapshot,
        status: Arc::new(status),
        counters,
        stopping,
    });
    for listener in &shared.config.listeners {
        tracing::info!(
            bind = listener.bind,
            upstream = listener.upstream,
            "listening"
        );
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = runtimes
            .into_iter()
            .zip(acceptors)
            .map(|(runtime, acceptors)| {
                let (shared, accepting) = (&shared, accepting.clone());
                scope.spawn(move || work(&runtime, shared, acceptors, accepting))
            })
            .collect();
        drop(accepting);
        // Nobody may want to know.
        let _ = serves.send(());
        for worker in workers {
            match worker.join() {
                Ok(outcome) => outcome?,
                Err(_) => anyhow::bail!("a thread of the proxy panicked"),
            }
        }
        Ok(())
    })
}

/// One thread with its runtime: its share of the clients of every listener. One of them serves metrics too.
fn work(
    runtime: &Runtime,
    shared: &Arc<Shared>,
    acceptors: Acceptors,
    accepting: watch::Receiver<bool>,
) -> Result<()> {
    runtime.block_on(async {
        for (index, acceptor) in acceptors.listeners.into_iter().enumerate() {
            let shared = Arc::clone(shared);
            let accepts = async move { accept(&acceptor, index, &shared).await };
            tokio::spawn(while_true(accepting.clone(), accepts));
        }
        let metrics = acceptors.metrics.map(|acceptor| {
            let (status, stopping) = (Arc::clone(&shared.status), shared.stopping.clone());
            tokio::spawn(metrics::serve(
                acceptor,
                status,
                stopping,
                accepting.clone(),
            ))
        });
        drop(accepting);
        let mut stopping = shared.stopping.clone();
        // The sender lives until the process ends. Clients that still come are told: unanswered they would wait.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        let limit = Duration::from_millis(shared.config.drain_ms_max);
        let drained = async {
            while shared.counters.open() > 0 {
                tokio::time::sleep(Duration::from_millis(DRAIN_POLL_MS)).await;
            }
        };
        if timeout(limit, drained).await.is_err() {
            tracing::warn!(
                connections = shared.counters.open(),
                "closing what did not end in drain_ms_max"
            );
        }
        // Where another program listens now, nobody is to ask again.
        if let Some(metrics) = metrics.filter(JoinHandle::is_finished)
            && let Ok(mut exchanges) = metrics.await
        {
            while exchanges.join_next().await.is_some() {}
        }
        Ok(())
    })
}

/// Accepts for as long as it is said to. What it may be cut off at is a wait: between two, nothing is lost.
async fn while_true(mut accepting: watch::Receiver<bool>, accepts: impl Future<Output = ()>) {
    tokio::select! {
        () = accepts => {}
        _ = accepting.wait_for(|accepting| !*accepting) => {}
    }
}

async fn accept(acceptor: &Acceptor, index: usize, shared: &Arc<Shared>) {
    loop {
        match acceptor.accept().await {
            Ok(client) => {
                let serves = Arc::clone(shared);
                // Before anybody asks whether some are left.
                let place = ConnectionSlot::take(&shared.counters);
                shared.threads.give(async move {
                    let number = serves.accepted.fetch_add(1, Ordering::Relaxed) + 1;
                    let span = connection_span::new(number);
                    let served = serve_client((client, place), (index, number), &serves, &span);
                    if let Err(error) = served.await {
                        span.in_scope(|| tracing::debug!(%error, "connection ended"));
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a client");
                tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
            }
        }
    }
}

async fn serve_client(
    (client, (place, open)): (Accepted, (ConnectionSlot, u64)),
    (index, number): (usize, u64),
    shared: &Arc<Shared>,
    span: &Span,
) -> std::io::Result<()> {
    let client = client.here()?;
    if let Some((cause, message)) = turned_away(open, shared) {
        // It takes nobody's place while it reads why.
        drop(place);
        connection_span::of_client(span, Origin::of(&client).as_ref());
        return refuse(client, cause, message).await;
    }
    let let_in = let_in(client, index, number, shared).instrument(span.clone());
    match let_in.await? {
        Some(relay) => relay.run().await,
        None => Ok(()),
    }
}

/// Why no more client is served, if that is so.
fn turned_away(open: u64, shared: &Shared) -> Option<(Cause, &'static str)> {
    if *shared.stopping.borrow() {
        return Some((Cause::Draining, "the proxy is stopping"));
    }
    if open > shared.config.connections_max {
        shared.counters.add(Metric::TurnedAway, [], 1);
        return Some((Cause::ConnectionsFull, "Too many connections"));
    }
    None
}

/// Connects a client to its server, and has it log in; `None`: it was refused, and told so. Runs in the connection's span.
async fn let_in(
    mut client: Stream,
    index: usize,
    number: u64,
    shared: &Arc<Shared>,
) -> std::io::Result<Option<Relay>> {
    let (Some(listener), Some(figures)) = (
        shared.config.listeners.get(index),
        shared.listeners.get(index),
    ) else {
        return Ok(None);
    };
    let origin = origin(&mut client, listener, shared).await;
    let by_socket = || Origin::of(&client);
    let known = origin.as_ref().ok().copied().flatten().or_else(by_socket);
    connection_span::of_client(&Span::current(), known.as_ref());
    let origin = match origin {
        Ok(origin) => origin,
        // Also whoever waits for the server's greeting, as clients without a balancer do.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::TimedOut) => {
            let message = "keywright: the connection does not begin with a PROXY protocol v2 header, which this listener wants";
            return refuse(client, Cause::PacketMalformed, message)
                .await
                .map(|()| None);
        }
        Err(error) => return Err(error),
    };
    let connected = connect(listener, origin, shared).await;
    figures.tried(connected.is_some());
    let Some(mut upstream) = connected else {
        let message = format!("Can't connect to MySQL server on '{}'", listener.upstream);
        let refused = refuse(client, Cause::UpstreamUnreachable, &message).await;
        return refused.map(|()| None);
    };
    keep_alive(&client, shared.config.keepalive_s)?;
    let snapshot = Arc::clone(&shared.snapshot.borrow());
    let (Some(rules), Some(protection)) =
        (snapshot.rules.get(index), snapshot.protection.get(index))
    else {
        return Ok(None);
    };
    let terms = LoginSettings {
        protection,
        own_key: &snapshot.own_key,
        has_rules: !rules.is_empty(),
        limits: shared.config.limits,
        patience: Duration::from_millis(shared.config.answer_ms_max),
    };
    let login = handshake::run(client, &mut upstream, &terms);
    let ended = timeout(Duration::from_millis(shared.config.login_ms_max), login).await;
    let (client, upstream, login) = match ended {
        Ok(Ok(Ended::Entered(client, upstream, login))) => (client, upstream, *login),
        Ok(Ok(Ended::Refused(client))) => {
            let (lingered, ()) = tokio::join!(linger(client), upstream.finish());
            return lingered.map(|()| None);
        }
        Ok(Err(error)) => {
            upstream.finish().await;
            return Err(error);
        }
        Err(too_long) => {
            upstream.finish().await;
            return Err(too_long.into());
        }
    };
    let rules = Arc::clone(rules);
    let address = known.map(|origin| origin.client());
    let entered = figures.enter(Client::new(number, address, &login.facts.user));
    Ok(Some(relay(
        shared,
        index,
        rules,
        &snapshot,
        (client, upstream, login),
        entered,
    )))
}

/// A connection on which a client has logged in, to be run.
fn relay(
    shared: &Shared,
    index: usize,
    rules: Arc<Rules>,
    snapshot: &ConfigSnapshot,
    (client, upstream, login): (Stream, Stream, Login),
    entered: Entered,
) -> Relay {
    let session =
        Session::new(rules, login.facts.clone()).with_budget(Arc::<Memory>::clone(&shared.memory));
    let session = if login.must_see_change_user {
        session.must_see_change_user()
    } else {
        session
    };
    let context = ListenerContext {
        sources: Arc::clone(&snapshot.sources),
        tally: Arc::clone(&snapshot.tally),
        status: Some(Arc::clone(&shared.status)),
        memory: Arc::clone(&shared.memory),
        entered: Some(Arc::new(entered)),
        updates: Some(config_updates::SnapshotReceiver {
            snapshot: shared.snapshot.clone(),
            listener: index,
            held_ms_max: shared.config.held_ms_max(),
        }),
    };
    let stopping = shared.stopping.clone();
    Relay::new(client, upstream, session, login, context, stopping)
}

/// Where a client comes from: by the header that its connection begins with, or by its socket.
async fn origin(
    client: &mut Stream,
    listener: &Listener,
    shared: &Shared,
) -> std::io::Result<Option<Origin>> {
    if listener.proxy_protocol {
        let limit = Duration::from_millis(shared.config.login_ms_max);
        timeout(limit, Origin::read(client)).await?
    } else {
        Ok(Origin::of(client))
    }
}

/// A server that has sent its first packet.
async fn connect(listener: &Listener, origin: Option<Origin>, shared: &Shared) -> Option<Pending> {
    let limit = Duration::from_millis(shared.config.connect_ms_max);
    let connected = async {
        let mut upstream = Stream::connect(&listener.upstream).await?;
        keep_alive(&upstream, shared.config.keepalive_s)?;
        if listener.upstream_proxy_protocol {
            Origin::write(origin, &mut upstream).await?;
        }
        Pending::greeted(upstream).await
    };
    match timeout(limit, connected).await {
        Ok(Ok(upstream)) => Some(upstream),
        Ok(Err(error)) => {
            tracing::warn!(upstream = listener.upstream, %error, "upstream cannot be reached");
            None
        }
        Err(_) => {
            tracing::warn!(
                upstream = listener.upstream,
                "connecting took longer than connect_ms_max"
            );
            None
        }
    }
}
