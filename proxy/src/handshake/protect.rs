//! TLS on both legs of a login.

use std::io;

use keywright_core::Cause;
use keywright_wire::capability::TLS;
use keywright_wire::handshake::greeting::{self, Greeting};
use keywright_wire::handshake::response;

use super::exchange::Ways;
use super::leg::{Failed, Leg, Refusal};
use super::login::{LoginSettings, cannot_be_read};
use super::pending::Pending;
use crate::config::listener::Protection;
use crate::config::tls::TlsMode;
use crate::connection::stream::Stream;

/// Bytes of a client's request for TLS: its answer to the greeting, up to the user's name.
const TLS_REQUEST_BYTES: usize = 32;

/// Reads the client's answer anew inside TLS, if that is what it has asked for.
pub(super) async fn welcome(
    client: Leg<Stream>,
    response: io::Result<Vec<u8>>,
    protection: &Protection,
) -> io::Result<(Leg<Stream>, io::Result<Vec<u8>>)> {
    let wants_tls = response.as_deref().is_ok_and(|response| {
        let asked = response::asked(response).is_some_and(|asked| asked & TLS != 0);
        asked && response.len() == TLS_REQUEST_BYTES
    });
    match protection.client.settings() {
        Some(config) if wants_tls => {
            let mut client = client
                .into_stream(|stream| stream.accept_tls(config))
                .await?;
            let response = client.packet().await;
            Ok((client, response))
        }
        Some(_) | None => Ok((client, response)),
    }
}

pub(super) fn require_tls(client: &Leg<Stream>, protection: &Protection) -> Result<(), Refusal> {
    if protection.client.is_required() && !client.stream.has_tls() {
        return Err(Refusal::new(
            Cause::TlsRequired,
            "keywright: connections using insecure transport are prohibited here: use TLS",
        ));
    }
    Ok(())
}

/// Turns to TLS towards the server, if that is wanted, and makes the client's answer say so.
pub(super) async fn protect(
    upstream: &mut Pending,
    greeting: &Greeting,
    response: &mut [u8],
    terms: &LoginSettings<'_>,
) -> Result<(), Failed> {
    let wanted = &terms.protection.upstream;
    let upstream_tls = wanted.settings().filter(|_| greeting.has_tls);
    greeting::take_out(response, greeting.is_read, upstream_tls.is_some());
    let Some(upstream_tls) = upstream_tls else {
        if wanted.is_required() {
            let message = "keywright: the server offers no TLS, which upstream_tls requires";
            terms.span.in_scope(|| tracing::warn!("{message}"));
            return Err(Refusal::new(Cause::UpstreamTls, message).into());
        }
        return Ok(());
    };
    let request = response
        .get(..TLS_REQUEST_BYTES)
        .ok_or_else(cannot_be_read)?;
    let mut leg = upstream.take()?;
    leg.send(request).await?;
    let connected = leg
        .into_stream(|stream| stream.connect_tls(upstream_tls))
        .await;
    let connected = connected.map_err(|error| {
        let log = || tracing::warn!(%error, "TLS with the upstream failed");
        terms.span.in_scope(log);
        // Not why: that is for the operator.
        Refusal::new(Cause::UpstreamTls, "keywright: TLS with the server failed")
    })?;
    upstream.put(connected);
    Ok(())
}

/// Whether the session may have to understand all commands, which is to be known before the client says whether it uses TLS.
pub(super) fn may_need_sight(
    client: &Stream,
    upstream: &Stream,
    terms: &LoginSettings<'_>,
) -> bool {
    fn is_protected<T>(stream: &Stream, wanted: &TlsMode<T>) -> Option<bool> {
        match wanted {
            TlsMode::Required(_) => Some(true),
            TlsMode::Disabled | TlsMode::Preferred(_) if stream.is_local() => Some(true),
            TlsMode::Disabled => Some(false),
            TlsMode::Preferred(_) => None,
        }
    }
    let client = is_protected(client, &terms.protection.client);
    let of_upstream = is_protected(upstream, &terms.protection.upstream);
    let are_alike = client.is_some() && client == of_upstream;
    upstream.is_local() || !are_alike
}

/// What of the way is protected as servers and drivers see it: a socket counts, since it does not leave the machine.
pub(super) fn ways(client: &Stream, upstream: &Stream) -> Ways {
    let is_protected = |stream: &Stream| stream.has_tls() || stream.is_local();
    match (is_protected(client), is_protected(upstream)) {
        (true, false) => Ways::ToUs,
        (false, true) => Ways::FromUs,
        (true, true) | (false, false) => Ways::Alike,
    }
}
