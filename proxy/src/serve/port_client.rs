//! One client of a key port: from where it comes in to its connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use keywright_core::Cause;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::config::port::PortProtocol;
use crate::connection::acceptor::Accepted;
use crate::connection::buffers::Buffers;
use crate::connection::linger::linger;
use crate::connection::slot::ConnectionSlot;
use crate::connection::span::ConnectionSpan;
use crate::connection::stream::Stream;
use crate::metrics::Metric;
use crate::metrics::port::CutOff;
use crate::port::http;
use crate::port::http::connection::HttpServing;
use crate::port::keys::PortKeys;
use crate::port::redis::connection::{Connection, PortServing};
use crate::serve::shared::Shared;
use crate::users::turns::Line;

/// Serves one client of the key port at this place to its end.
pub(super) async fn serve_port_client(
    (client, place): (Accepted, ConnectionSlot),
    port: usize,
    shared: &Arc<Shared>,
    buffers: Arc<Buffers>,
) {
    let number = shared.next_number();
    let span = ConnectionSpan::of(number, client.address());
    let serves = serve((client, place), (port, number, span), shared, buffers);
    // A box, so that clients of servers have no room for it in their tasks.
    if let Err(error) = Box::pin(serves).await {
        span.in_scope(|| tracing::debug!(%error, "connection ended"));
    }
}

async fn serve(
    (client, place): (Accepted, ConnectionSlot),
    (port, number, span): (usize, u64, ConnectionSpan),
    shared: &Arc<Shared>,
    buffers: Arc<Buffers>,
) -> io::Result<()> {
    let line = Line::of(client.address());
    let client = client.here()?;
    let snapshot = shared.snapshot.clone();
    let keys = snapshot.borrow().port(port);
    let Some(keys) = keys else {
        return Ok(());
    };
    let (of_port, open) = keys.figures.opened();
    if let Some((cause, message)) = turned_away(open, &keys, shared) {
        // It takes nobody's place while it reads why.
        drop((place, of_port));
        let text = match keys.port.protocol {
            PortProtocol::Redis(_) => format!("-{} {message}\r\n", cause.redis_code()),
            PortProtocol::Http(_) => http::turned_away(cause, message),
        };
        return refuse(client, &text).await;
    }
    let login_ms_max = shared.config.login_ms_max;
    let client = match &keys.port.tls {
        Some(tls) => {
            let encrypted = client.accept_tls(tls);
            let encrypted = timeout(Duration::from_millis(login_ms_max), encrypted);
            match shared.unless_stopping(encrypted).await {
                None => return Ok(()),
                Some(Ok(encrypted)) => encrypted?,
                Some(Err(too_long)) => {
                    keys.figures.cut_off(CutOff::Login);
                    return Err(too_long.into());
                }
            }
        }
        None => client,
    };
    let stopping = shared.stopping.clone();
    match keys.port.protocol {
        PortProtocol::Redis(limits) => {
            let serving = PortServing {
                port,
                number,
                span,
                line,
                snapshot,
                keys,
                status: Arc::clone(&shared.status),
                buffers,
                memory: Arc::clone(&shared.memory),
                stopping,
                login_ms_max,
            };
            Connection::new(client, serving, limits).run().await
        }
        PortProtocol::Http(limits) => {
            let serving = HttpServing {
                port,
                span,
                line,
                snapshot,
                keys,
                limits,
                memory: Arc::clone(&shared.memory),
                stopping,
            };
            http::connection::serve(client, serving).await
        }
    }
}

/// Why no more client is served, if that is so; `open`: those of this port, which has a limit of its own.
fn turned_away(open: u64, keys: &PortKeys, shared: &Shared) -> Option<(Cause, &'static str)> {
    if *shared.stopping.borrow() {
        return Some((Cause::Draining, "the program is stopping"));
    }
    if open > keys.port.limits.connections_max {
        shared.counters.add(Metric::TurnedAway, [], 1);
        keys.figures.cut_off(CutOff::Full);
        return Some((
            Cause::ConnectionsFull,
            "there are as many connections as connections_max allows",
        ));
    }
    None
}

/// Tells a client why it is not served. One that speaks TLS cannot read it, and sees the end.
async fn refuse(mut client: Stream, text: &str) -> io::Result<()> {
    client.write_all(text.as_bytes()).await?;
    linger(client).await
}
