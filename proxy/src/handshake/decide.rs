//! Carries an exchange out until the server has decided.

use std::io;
use std::time::Duration;

use keywright_core::Cause;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;

use super::account::{self, Account};
use super::exchange::{Exchange, Turn};
use super::leg::{AUTH_PACKETS_MAX, Failed, Leg, Refusal, of_client};
use super::login::{Login, too_slow};
use crate::connection::span::ConnectionSpan;
use crate::handshake::password::{self, OwnKey};

/// Passes packets both ways until the server has decided, and looks at whom it has let in over a socket.
pub(super) async fn decide<C, U>(
    client: &mut Leg<C>,
    upstream: &mut Leg<U>,
    exchange: &mut Exchange,
    login: &mut Login,
    is_local: bool,
    patience: Option<Duration>,
) -> Result<bool, Failed>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let decided = negotiate(client, upstream, exchange, &login.own_key, patience).await?;
    login.challenge = exchange.challenge().to_vec();
    let Some(ok) = decided else {
        return Ok(false);
    };
    if is_local {
        let message = match account::read(upstream, login.facts.capabilities).await? {
            Account::Proof => None,
            Account::Socket => Some(
                "keywright: this account is known by its socket, which would be keywright's own: use another account, or no socket",
            ),
            Account::Unknown => Some(
                "keywright: the server does not say whether this account is known by its socket",
            ),
        };
        if let Some(message) = message {
            return Err(Refusal::new(Cause::SocketAccount, message).into());
        }
    }
    login.facts.status = status_of(&ok).unwrap_or(0);
    client.send(&ok).await?;
    Ok(true)
}

/// The server's OK, which the client did not get yet; `None`: it refused, and the client has got its error.
async fn negotiate<C, U>(
    client: &mut Leg<C>,
    upstream: &mut Leg<U>,
    exchange: &mut Exchange,
    own_key: &OwnKey,
    patience: Option<Duration>,
) -> Result<Option<Vec<u8>>, Failed>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let unreadable = |message: &str| Failed::from(Refusal::new(Cause::AuthUnsupported, message));
    for _ in 0..AUTH_PACKETS_MAX {
        let awaits_server = upstream.awaits_answer();
        let (is_client, packet) = tokio::select! {
            biased;
            packet = upstream.packet() => (false, packet?),
            packet = client.packet() => (true, packet.map_err(of_client)?),
            () = sleep(patience.unwrap_or_default()), if patience.is_some() && !awaits_server => {
                return Err(too_slow().into());
            }
        };
        let turn = if is_client {
            exchange.on_client(&packet)
        } else {
            exchange.on_upstream(&packet)
        };
        match turn {
            Turn::Pass if is_client => upstream.send(&packet).await?,
            Turn::Pass => client.send(&packet).await?,
            Turn::Instead(packet) => upstream.send(&packet).await?,
            Turn::OfferOwnKey => {
                let key = own_key.public_pem().await?;
                client.send(&[b"\x01", key.as_bytes()].concat()).await?;
            }
            Turn::Decrypt(packet) => {
                let password = own_key.decrypt(&packet, exchange.challenge());
                let wrong = "keywright: the password is not encrypted for keywright's key";
                let password = password.ok_or_else(|| unreadable(wrong))?;
                upstream.send(&password).await?;
            }
            Turn::Encrypt { password, key } => {
                let packet = password::encrypt(&password, exchange.challenge(), &key);
                let wrong = "keywright: the password cannot be encrypted for the server's key";
                upstream
                    .send(&packet.ok_or_else(|| unreadable(wrong))?)
                    .await?;
            }
            Turn::Decided(true) => return Ok(Some(packet)),
            Turn::Decided(false) => {
                client.send(&packet).await?;
                return Ok(None);
            }
            Turn::Refuse(refusal) => return Err(refusal.into()),
        }
    }
    Err(io::Error::other("the handshake does not end").into())
}

/// Tells a client that is refused why.
pub(super) async fn reply<S: AsyncRead + AsyncWrite + Unpin, T>(
    client: &mut Leg<S>,
    outcome: Result<Option<T>, Failed>,
    span: &ConnectionSpan,
) -> io::Result<Option<T>> {
    match outcome {
        Ok(outcome) => Ok(outcome),
        Err(Failed::Io(error)) => Err(error),
        Err(Failed::Refused(refusal)) => {
            let cause = refusal.cause.name();
            span.in_scope(|| tracing::info!(cause, "login refused: {}", refusal.message));
            client.send(&refusal.payload()).await?;
            Ok(None)
        }
    }
}

fn status_of(ok: &[u8]) -> Option<u16> {
    // Affected rows and id are 0 here, one byte each.
    Some(u16::from_le_bytes([*ok.get(3)?, *ok.get(4)?]))
}
