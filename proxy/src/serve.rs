//! Threads, listeners, and the end of both.

mod client;
pub mod listening;
pub mod open_files;
mod port_client;
mod shared;
pub mod take_over;
pub(crate) mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use anyhow::{Context, Result};
use keywright_store::Keys;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::config::Config;
use crate::connection::accept_failures::AcceptFailures;
use crate::connection::acceptor::Acceptor;
use crate::connection::memory::Memory;
use crate::connection::slot::ConnectionSlot;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::metrics::{self, Counters};
use crate::serve::client::{serve_client, span_of};
use crate::serve::listening::{Acceptors, Listening};
use crate::serve::port_client::serve_port_client;
use crate::serve::shared::Shared;
use crate::serve::threads::{CLIENTS_TOGETHER, PORT_CLIENTS_TOGETHER, Threads};
use crate::status::Status;

/// How often connections between commands are looked for while draining, milliseconds.
const DRAIN_POLL_MS: u64 = 20;

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
        listening.here(thread, runtimes.len())
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
        has_logged_closing: AtomicBool::new(false),
    });
    log_listening(&shared.config);
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
                Err(_) => anyhow::bail!("a thread of the program panicked"),
            }
        }
        Ok(())
    })
}

fn log_listening(config: &Config) {
    for listener in &config.listeners {
        tracing::info!(
            bind = listener.bind,
            upstream = listener.upstream,
            "listening"
        );
    }
    for port in &config.ports {
        tracing::info!(
            bind = port.bind,
            names = port.keys.len(),
            "listening as a key port"
        );
    }
}

/// One thread with its runtime: its share of the clients of every listener. Each listener has one that accepts them, and one thread serves
/// metrics too.
fn work(
    runtime: &Runtime,
    shared: &Arc<Shared>,
    acceptors: Acceptors,
    accepting: watch::Receiver<bool>,
) -> Result<()> {
    runtime.block_on(async {
        for (index, acceptor) in acceptors.listeners {
            let shared = Arc::clone(shared);
            let accepts = async move { accept(&acceptor, index, &shared).await };
            tokio::spawn(while_true(accepting.clone(), accepts));
        }
        let metrics = acceptors.metrics.map(|acceptor| {
            let (status, stopping) = (Arc::clone(&shared.status), shared.stopping.clone());
            let hosts = shared.config.metrics_hosts.clone();
            let bind = shared.config.metrics.as_deref().unwrap_or_default();
            tokio::spawn(metrics::serve(
                (acceptor, hosts, AcceptFailures::new(bind)),
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
            shared.log_closing();
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
    let mut failures = AcceptFailures::new(shared.config.binds().nth(index).unwrap_or_default());
    loop {
        match acceptor.accept().await {
            Ok(client) => {
                failures.accepted();
                let serves = Arc::clone(shared);
                // Before anybody asks whether some are left.
                let place = ConnectionSlot::take(&shared.counters);
                if let Some(port) = index.checked_sub(shared.config.listeners.len()) {
                    shared
                        .threads
                        .give(PORT_CLIENTS_TOGETHER, |seat| async move {
                            serve_port_client((client, place), port, &serves, seat.buffers()).await;
                        });
                    continue;
                }
                shared.threads.give(CLIENTS_TOGETHER, |seat| async move {
                    let at = (index, serves.next_number());
                    let mut span = span_of(client.address(), at, &serves);
                    let given = (&serves, seat.buffers());
                    if let Err(error) = serve_client((client, place), at, given, &mut span).await {
                        span.in_scope(|| tracing::debug!(%error, "connection ended"));
                    }
                });
            }
            Err(error) => failures.failed(&error).await,
        }
    }
}
