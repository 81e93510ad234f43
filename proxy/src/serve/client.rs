//! One client: from where it comes in, by its login, to its relay.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use keywright_core::Cause;
use keywright_session::{Rules, Session};
use tokio::time::timeout;

use crate::config::Listener;
use crate::connection::acceptor::Accepted;
use crate::connection::buffers::Buffers;
use crate::connection::linger::linger;
use crate::connection::memory::Memory;
use crate::connection::origin::Origin;
use crate::connection::refusal::refuse;
use crate::connection::relay::Relay;
use crate::connection::slot::ConnectionSlot;
use crate::connection::span::ConnectionSpan;
use crate::connection::stream::Stream;
use crate::handshake::{self, Ended, Login, LoginSettings, Peer, Pending};
use crate::in_force::context::ListenerContext;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::in_force::updates as config_updates;
use crate::metrics::Metric;
use crate::serve::shared::Shared;
use crate::status::clients::{Client, Entered};

/// What a client is told that comes, or is still being connected, when the program is to stop.
const STOPPING: &str = "keywright is stopping";

/// What the log lines of a client carry. Who it is behind a balancer, its first bytes tell.
pub(super) fn span_of(
    address: Option<SocketAddr>,
    (index, number): (usize, u64),
    shared: &Shared,
) -> ConnectionSpan {
    match shared.config.listeners.get(index) {
        Some(listener) if !listener.proxy_protocol => ConnectionSpan::of(number, address),
        Some(_) | None => ConnectionSpan::new(number),
    }
}

/// Serves one client to its end.
pub(super) async fn serve_client(
    (client, place): (Accepted, ConnectionSlot),
    (index, number): (usize, u64),
    (shared, buffers): (&Arc<Shared>, Arc<Buffers>),
    span: &mut ConnectionSpan,
) -> std::io::Result<()> {
    let address = client.address();
    let client = client.here()?;
    let (of_listeners, open) = shared.counters.opened_at_listener();
    if let Some((cause, message)) = turned_away(open, shared) {
        // It takes nobody's place while it reads why.
        drop((place, of_listeners));
        span.is_of(address);
        return Box::pin(refuse(client, cause, message)).await;
    }
    // What a login needs is given back before the client is served.
    let let_in = let_in((client, address), (index, number), (shared, buffers), span);
    match Box::pin(let_in).await? {
        Some(relay) => relay.run().await,
        None => Ok(()),
    }
}

/// Why no more client is served, if that is so; `open`: those of MySQL listeners.
fn turned_away(open: u64, shared: &Shared) -> Option<(Cause, &'static str)> {
    if *shared.stopping.borrow() {
        return Some((Cause::Draining, STOPPING));
    }
    if open > shared.config.connections_max {
        shared.counters.add(Metric::TurnedAway, [], 1);
        return Some((Cause::ConnectionsFull, "Too many connections"));
    }
    None
}

/// Connects a client to its server, and has it log in; `None`: it was refused, and told so.
async fn let_in(
    (mut client, address): (Stream, Option<SocketAddr>),
    (index, number): (usize, u64),
    (shared, buffers): (&Arc<Shared>, Arc<Buffers>),
    span: &mut ConnectionSpan,
) -> std::io::Result<Option<Box<Relay>>> {
    let (Some(listener), Some(figures)) = (
        shared.config.listeners.get(index),
        shared.listeners.get(index),
    ) else {
        return Ok(None);
    };
    let origin = origin(&mut client, listener, shared).await;
    let said = origin.as_ref().ok().copied().flatten();
    let address = said.map(|origin| origin.client()).or(address);
    if listener.proxy_protocol {
        span.is_of(address);
    }
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
    let connecting = connect((listener, origin), shared, span);
    let Some(connected) = shared.unless_stopping(connecting).await else {
        let refused = refuse(client, Cause::Draining, STOPPING).await;
        return refused.map(|()| None);
    };
    figures.tried(connected.is_some());
    let Some(upstream) = connected else {
        let message = format!("Can't connect to MySQL server on '{}'", listener.upstream);
        let refused = refuse(client, Cause::UpstreamUnreachable, &message).await;
        return refused.map(|()| None);
    };
    let snapshot = Arc::clone(&shared.snapshot.borrow());
    let Some(rules) = snapshot.rules.get(index) else {
        return Ok(None);
    };
    let logged_in = log_in((client, upstream), (index, shared), &snapshot, span).await?;
    let Some((client, upstream, login)) = logged_in else {
        return Ok(None);
    };
    let rules = Arc::clone(rules);
    let who = (login.facts.user.as_slice(), login.connection);
    let entered = figures.enter(Client::new(number, address, who));
    Ok(Some(relay(
        shared,
        (index, rules),
        (&snapshot, buffers),
        (client, upstream, login),
        (entered, *span),
    )))
}

/// Has a client log in on its server; `None`: it was refused, and told so.
async fn log_in(
    (client, mut upstream): (Stream, Pending),
    (index, shared): (usize, &Shared),
    snapshot: &ConfigSnapshot,
    span: &ConnectionSpan,
) -> std::io::Result<Option<(Peer, Peer, Login)>> {
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
        span,
    };
    let login = handshake::run(client, &mut upstream, &terms);
    let login = timeout(Duration::from_millis(shared.config.login_ms_max), login);
    let Some(ended) = shared.unless_stopping(login).await else {
        upstream.finish(span).await;
        return Ok(None);
    };
    match ended {
        Ok(Ok(Ended::Entered(client, upstream, login))) => Ok(Some((client, upstream, *login))),
        Ok(Ok(Ended::Refused(client))) => {
            let (lingered, ()) = tokio::join!(linger(client), upstream.finish(span));
            lingered.map(|()| None)
        }
        Ok(Err(error)) => {
            upstream.finish(span).await;
            Err(error)
        }
        Err(too_long) => {
            upstream.finish(span).await;
            Err(too_long.into())
        }
    }
}

/// A connection on which a client has logged in, to be run.
fn relay(
    shared: &Shared,
    (index, rules): (usize, Arc<Rules>),
    (snapshot, buffers): (&ConfigSnapshot, Arc<Buffers>),
    (client, upstream, login): (Peer, Peer, Login),
    (entered, span): (Entered, ConnectionSpan),
) -> Box<Relay> {
    let session =
        Session::new(rules, login.facts.clone()).with_budget(Arc::<Memory>::clone(&shared.memory));
    let session = if login.must_see_change_user {
        session.must_see_change_user()
    } else {
        session
    };
    let context = ListenerContext {
        sources: Arc::clone(&snapshot.sources),
        logged: Arc::clone(&snapshot.logged),
        tally: Arc::clone(&snapshot.tally),
        status: Some(Arc::clone(&shared.status)),
        memory: Arc::clone(&shared.memory),
        keepalive_s: shared.config.keepalive_s,
        buffers,
        entered: Some(Arc::new(entered)),
        updates: Some(config_updates::SnapshotReceiver {
            snapshot: shared.snapshot.clone(),
            listener: index,
            held_ms_max: shared.config.held_ms_max(),
            counters: Arc::clone(&shared.counters),
        }),
        new_tables: Arc::clone(&shared.counters.new_tables),
    };
    let stopping = shared.stopping.clone();
    Relay::new(client, upstream, session, login, context, stopping, span)
}

/// Where a client comes from: by the header that its connection begins with, or, if the server is to be told, by its socket.
async fn origin(
    client: &mut Stream,
    listener: &Listener,
    shared: &Shared,
) -> std::io::Result<Option<Origin>> {
    if listener.proxy_protocol {
        let limit = Duration::from_millis(shared.config.login_ms_max);
        let read = shared.unless_stopping(timeout(limit, Origin::read(client)));
        let stopping = || std::io::Error::other("the program is stopping");
        read.await.ok_or_else(stopping)??
    } else if listener.upstream_proxy_protocol {
        Ok(Origin::of(client))
    } else {
        Ok(None)
    }
}

/// A server that has sent its first packet.
async fn connect(
    (listener, origin): (&Listener, Option<Origin>),
    shared: &Shared,
    span: &ConnectionSpan,
) -> Option<Pending> {
    let limit = Duration::from_millis(shared.config.connect_ms_max);
    let connected = async {
        let mut upstream = Stream::connect(&listener.upstream).await?;
        if listener.upstream_proxy_protocol {
            Origin::write(origin, &mut upstream).await?;
        }
        Pending::greeted(upstream).await
    };
    match timeout(limit, connected).await {
        Ok(Ok(upstream)) => Some(upstream),
        Ok(Err(error)) => {
            span.in_scope(
                || tracing::warn!(upstream = listener.upstream, %error, "upstream cannot be reached"),
            );
            None
        }
        Err(_) => {
            span.in_scope(|| {
                tracing::warn!(
                    upstream = listener.upstream,
                    "connecting took longer than connect_ms_max"
                );
            });
            None
        }
    }
}
