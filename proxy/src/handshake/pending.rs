//! The server's side of a login that is not over.
//!
//! To a server, a connection that ends after its greeting and before the login is decided is an error of its host. After
//! `max_connect_errors` (100) of them in a row it lets nobody in any more who comes from there (1129), and here that is every client
//! of the proxy, though all that came were a balancer's probes. A login that it refuses is none. So a login that the client does not
//! go on with is brought to its end with what the account's plugin takes for a wrong password. Servers do not wait longer than
//! `connect_timeout` for a packet, and count that too: the proxy waits less long for its clients.
//!
//! A greeting is never used for a second client: the challenge in it is what proofs of passwords are made for.

use std::io;
use std::time::Duration;

use keywright_wire::capability::{LONG_PASSWORD, PLUGIN_AUTH, PROTOCOL_41, SECURE_CONNECTION};
use tokio::time::timeout;

use super::exchange::Exchange;
use super::leg::{AUTH_PACKETS_MAX, Leg};
use crate::connection::span::ConnectionSpan;
use crate::connection::stream::Stream;

/// How long a server may take for the end of a login that nobody goes on with, milliseconds.
const FINISH_MS_MAX: u64 = 2_000;
/// Who does not go on: no account has this name.
const NOBODY: &[u8] = b"keywright_nobody";
/// utf8mb4_general_ci, which both servers know.
const COLLATION: u8 = 45;
/// COM_QUIT.
const QUIT: &[u8] = &[1];

/// A server that has sent its greeting, or an error in its place.
pub struct Pending {
    /// `None` while it turns to TLS, and once somebody is let in.
    leg: Option<Leg<Stream>>,
    said: Vec<u8>,
    /// What is under way since it got a login request; nothing but its own TLS is before.
    exchange: Option<Exchange>,
    is_over: bool,
}

impl Pending {
    /// Waits for the server's first packet.
    ///
    /// # Errors
    /// It has ended, or does not keep to the protocol.
    pub async fn greeted(upstream: Stream) -> io::Result<Self> {
        let mut leg = Leg::new(upstream, 0).reading_ahead();
        let said = leg.packet().await?;
        Ok(Self {
            is_over: said.first() == Some(&0xFF),
            leg: Some(leg),
            said,
            exchange: None,
        })
    }

    /// What it has said first.
    pub(super) fn said(&self) -> &[u8] {
        &self.said
    }

    /// Its side of the exchange.
    ///
    /// # Errors
    /// TLS with it has failed.
    pub(super) fn leg(&mut self) -> io::Result<&mut Leg<Stream>> {
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        self.leg.as_mut().ok_or_else(gone)
    }

    /// The same, to be made into another one.
    ///
    /// # Errors
    /// As [`Pending::leg`].
    pub(super) fn take(&mut self) -> io::Result<Leg<Stream>> {
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        self.leg.take().ok_or_else(gone)
    }

    pub(super) fn put(&mut self, leg: Leg<Stream>) {
        self.leg = Some(leg);
    }

    /// It gets the login request now, which begins this.
    ///
    /// # Errors
    /// As [`Pending::leg`].
    pub(super) fn introduced(
        &mut self,
        exchange: Exchange,
    ) -> io::Result<(&mut Leg<Stream>, &mut Exchange)> {
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        let leg = self.leg.as_mut().ok_or_else(gone)?;
        Ok((leg, self.exchange.insert(exchange)))
    }

    /// It has decided, or has said that it waits no longer.
    pub(super) fn is_over(&mut self) {
        self.is_over = true;
    }

    /// Brings the login to its end, if it is not over, and closes the connection.
    pub async fn finish(mut self, span: &ConnectionSpan) {
        if self.is_over {
            return;
        }
        let limit = Duration::from_millis(FINISH_MS_MAX);
        if let Ok(Err(error)) = timeout(limit, self.be_refused()).await {
            span.in_scope(|| tracing::debug!(%error, "a login that nobody went on with"));
        }
    }

    async fn be_refused(&mut self) -> io::Result<()> {
        let is_introduced = self.exchange.is_some();
        let exchange = self.exchange.take().unwrap_or_else(Exchange::of_nobody);
        let (leg, exchange) = self.introduced(exchange)?;
        if !is_introduced {
            leg.send(&nobody()).await?;
        } else if !leg.awaits_answer() {
            let Some(wrong) = exchange.wrong_proof() else {
                return Ok(());
            };
            leg.send(wrong).await?;
        }
        for _ in 0..AUTH_PACKETS_MAX {
            let packet = leg.packet().await?;
            match packet.as_slice() {
                [] | [0xFF, ..] => return Ok(()),
                // The account needs no password.
                [0x00, ..] => {
                    leg.restart();
                    return leg.send(QUIT).await;
                }
                // What the client has sent was right, and OK comes next.
                [0x01, 0x03] => {}
                [_, ..] => {
                    exchange.on_upstream(&packet);
                    let Some(wrong) = exchange.wrong_proof() else {
                        return Ok(());
                    };
                    leg.send(wrong).await?;
                }
            }
        }
        Ok(())
    }
}

/// The login request of nobody, without a password.
fn nobody() -> Vec<u8> {
    let capabilities = LONG_PASSWORD | PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
    let [a, b, c, d, ..] = capabilities.to_le_bytes();
    let mut packet = vec![a, b, c, d];
    packet.extend((1_u32 << 24).to_le_bytes());
    packet.push(COLLATION);
    packet.extend([0; 23]);
    packet.extend(NOBODY);
    packet.extend(b"\0\0mysql_native_password\0");
    packet
}
