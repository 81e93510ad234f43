//! The exchange before the first command. Proofs of passwords are made for the upstream's own challenge, so most of it is passed
//! on packet by packet; each leg has TLS of its own, and what depends on TLS is translated between them.
//!
//! - `leg`: packets, numbered on each side. `server`: which server it is.
//! - `pending`: the server's side until it has decided, and what becomes of it if the client does not go on.
//! - `exchange`: what becomes of each packet until the server has decided. `account`: whom it has let in.

mod account;
mod exchange;
mod leg;
mod pending;
mod server;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use keywright_core::Cause;
use keywright_session::{Limits, SessionFacts};
use keywright_wire::capability::TLS;
use keywright_wire::handshake::greeting::{self, Greeting};
use keywright_wire::handshake::response::{self, Introduction};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use crate::listener::Protection;
use crate::password::{self, OwnKey};
use crate::stream::Stream;
use crate::tls::Wanted;
use account::Account;
use exchange::{Exchange, Turn, Ways};
use leg::{Failed, Leg, Refusal, of_client};
pub use pending::Pending;
use server::server;
pub(crate) use server::server_of;

/// Packets of one exchange at most.
const AUTH_PACKETS_MAX: usize = 64;
/// Bytes of a client's request for TLS: its answer to the greeting, up to the user's name.
const TLS_REQUEST_BYTES: usize = 32;

/// What a login follows.
pub struct Terms<'a> {
    /// TLS on both legs.
    pub protection: &'a Protection,
    /// The proxy's own key, if the listener has none.
    pub own_key: &'a Arc<OwnKey>,
    /// Whether the listener has rules.
    pub has_rules: bool,
    /// Sizes that the session keeps to.
    pub limits: Limits,
    /// How long the client may take for each of its packets: less than the server waits for it.
    pub patience: Duration,
}

/// What a connection needs to know of its login, and another login on it.
#[derive(Debug, Clone)]
pub struct Login {
    /// What the session is told.
    pub facts: SessionFacts,
    /// Whether the session must not miss another login: this one depended on what protects the legs, or on the account.
    pub must_see_change_user: bool,
    challenge: Vec<u8>,
    own_key: Arc<OwnKey>,
}

impl From<SessionFacts> for Login {
    /// A login that nothing is known of but its outcome.
    fn from(facts: SessionFacts) -> Self {
        Self {
            facts,
            must_see_change_user: false,
            challenge: Vec::new(),
            own_key: Arc::default(),
        }
    }
}

/// How a login ended.
pub enum Ended {
    /// The client and the server, each in what protects the connection to it.
    Entered(Stream, Stream, Box<Login>),
    /// The client was refused, and told so.
    Refused(Stream),
}

/// Runs the exchange. However it ends, also when it is dropped, what is left of the server's side is to be finished.
///
/// # Errors
/// A connection broke, or somebody broke the protocol.
pub async fn run(client: Stream, upstream: &mut Pending, terms: &Terms<'_>) -> io::Result<Ended> {
    let mut client = Leg::new(client, 0);
    let mut said = upstream.said().to_vec();
    if said.first() == Some(&0xFF) {
        client.send(&said).await?;
        return Ok(Ended::Refused(client.stream));
    }
    let offers_tls = terms.protection.client.settings().is_some();
    let server = &upstream.leg()?.stream;
    let is_read = terms.has_rules || may_need_sight(&client.stream, server, terms);
    let greeting = greeting::offer(&mut said, is_read, offers_tls)
        .ok_or_else(|| io::Error::other("the upstream's greeting cannot be read"))?;
    client.send(&said).await?;
    let response = tokio::select! {
        biased;
        // It has waited for the client long enough, and says so.
        said = upstream.leg()?.packet() => {
            upstream.is_over();
            client.send(&said?).await?;
            return Ok(Ended::Refused(client.stream));
        }
        response = client.packet() => response,
        () = sleep(terms.patience) => {
            reply(&mut client, Err::<Option<()>, _>(too_slow().into())).await?;
            return Ok(Ended::Refused(client.stream));
        }
    };
    let welcome = welcome(client, response, terms.protection);
    let (mut client, response) = timeout(terms.patience, welcome).await??;
    let entered = async {
        let mut response = response.map_err(of_client)?;
        require_tls(&client, terms.protection)?;
        protect(upstream, &greeting, &mut response, terms).await?;
        upstream.is_introduced();
        enter(&mut client, upstream.leg()?, &greeting, &response, terms).await
    };
    let entered = entered.await;
    if has_decided(&entered) {
        upstream.is_over();
    }
    Ok(match reply(&mut client, entered).await? {
        Some(login) => {
            let upstream = upstream.take()?.stream;
            Ended::Entered(client.stream, upstream, Box::new(login))
        }
        None => Ended::Refused(client.stream),
    })
}

/// Whether the server has said the last word of a login, whatever the proxy has made of it.
fn has_decided<T>(entered: &Result<Option<T>, Failed>) -> bool {
    match entered {
        Ok(_) => true,
        Err(Failed::Refused(refusal)) => refusal.cause == Cause::SocketAccount,
        Err(Failed::Io(_)) => false,
    }
}

fn too_slow() -> Refusal {
    Refusal::new(
        Cause::LoginTimeout,
        "keywright: the client took longer than answer_ms_max for a packet of its login",
    )
}

/// Reads the client's answer anew inside TLS, if that is what it has asked for.
async fn welcome(
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

fn require_tls(client: &Leg<Stream>, protection: &Protection) -> Result<(), Refusal> {
    if protection.client.is_required() && !client.stream.has_tls() {
        return Err(Refusal::new(
            Cause::TlsRequired,
            "keywright: connections using insecure transport are prohibited here: use TLS",
        ));
    }
    Ok(())
}

/// Turns to TLS towards the server, if that is wanted, and makes the client's answer say so.
async fn protect(
    upstream: &mut Pending,
    greeting: &Greeting,
    response: &mut [u8],
    terms: &Terms<'_>,
) -> Result<(), Failed> {
    let wanted = &terms.protection.upstream;
    let outward = wanted.settings().filter(|_| greeting.has_tls);
    greeting::take_out(response, greeting.is_read, outward.is_some());
    let Some(outward) = outward else {
        if wanted.is_required() {
            let message = "keywright: the server offers no TLS, which upstream_tls requires";
            tracing::warn!("{message}");
            return Err(Refusal::new(Cause::UpstreamTls, message).into());
        }
        return Ok(());
    };
    let request = response
        .get(..TLS_REQUEST_BYTES)
        .ok_or_else(cannot_be_read)?;
    let mut leg = upstream.take()?;
    leg.send(request).await?;
    let connected = leg.into_stream(|stream| stream.connect_tls(outward)).await;
    let connected = connected.map_err(|error| {
        tracing::warn!(%error, "TLS with the upstream failed");
        // Not why: that is for the operator.
        Refusal::new(Cause::UpstreamTls, "keywright: TLS with the server failed")
    })?;
    upstream.put(connected);
    Ok(())
}

fn cannot_be_read() -> Refusal {
    Refusal::new(
        Cause::PacketMalformed,
        "keywright: the client's greeting cannot be read",
    )
}

/// From the client's introduction to the server's OK, which the client gets too.
async fn enter(
    client: &mut Leg<Stream>,
    upstream: &mut Leg<Stream>,
    greeting: &Greeting,
    response: &[u8],
    terms: &Terms<'_>,
) -> Result<Option<Login>, Failed> {
    let introduction = Introduction::of_response(response).ok_or_else(cannot_be_read)?;
    let asked = response::asked(response).ok_or_else(cannot_be_read)?;
    let facts = SessionFacts {
        user: introduction.user.to_vec(),
        server: server(greeting.server),
        capabilities: asked & greeting.capabilities,
        collation: introduction.collation.ok_or_else(cannot_be_read)?,
        database: introduction.database.map(<[u8]>::to_vec),
        status: 0,
        limits: terms.limits,
    };
    let own_key = terms.protection.rsa_key.as_ref().unwrap_or(terms.own_key);
    let ways = ways(&client.stream, &upstream.stream);
    let (exchange, instead) = Exchange::begin(ways, greeting.challenge.clone(), &introduction);
    upstream
        .send(instead.as_deref().unwrap_or(response))
        .await?;
    let is_local = upstream.stream.is_local();
    let mut login = Login {
        facts,
        must_see_change_user: is_local || ways != Ways::Alike,
        challenge: Vec::new(),
        own_key: Arc::clone(own_key),
    };
    let patience = Some(terms.patience);
    let entered = decide(client, upstream, exchange, &mut login, is_local, patience).await?;
    Ok(entered.then_some(login))
}

/// Whether the session may have to understand all commands, which is to be known before the client says whether it uses TLS.
fn may_need_sight(client: &Stream, upstream: &Stream, terms: &Terms<'_>) -> bool {
    fn is_protected<T>(stream: &Stream, wanted: &Wanted<T>) -> Option<bool> {
        match wanted {
            Wanted::Required(_) => Some(true),
            Wanted::Disabled | Wanted::Preferred(_) if stream.is_local() => Some(true),
            Wanted::Disabled => Some(false),
            Wanted::Preferred(_) => None,
        }
    }
    let client = is_protected(client, &terms.protection.client);
    let of_upstream = is_protected(upstream, &terms.protection.upstream);
    let are_alike = client.is_some() && client == of_upstream;
    upstream.is_local() || !are_alike
}

/// What of the way is protected as servers and drivers see it: a socket counts, since it does not leave the machine.
fn ways(client: &Stream, upstream: &Stream) -> Ways {
    let is_protected = |stream: &Stream| stream.has_tls() || stream.is_local();
    match (is_protected(client), is_protected(upstream)) {
        (true, false) => Ways::ToUs,
        (false, true) => Ways::FromUs,
        (true, true) | (false, false) => Ways::Alike,
    }
}

/// Passes packets both ways until the server has decided, and looks at whom it has let in over a socket.
async fn decide<C, U>(
    client: &mut Leg<C>,
    upstream: &mut Leg<U>,
    mut exchange: Exchange,
    login: &mut Login,
    is_local: bool,
    patience: Option<Duration>,
) -> Result<bool, Failed>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let decided = negotiate(client, upstream, &mut exchange, &login.own_key, patience).await?;
    login.challenge = exchange.challenge().to_vec();
    let Some(ok) = decided else {
        return Ok(false);
    };
    if is_local {
        let message = match account::read(&mut upstream.stream, login.facts.capabilities).await? {
            Account::Proof => None,
            Account::Socket => Some(
                "keywright: this account is known by its socket, which would be the proxy's own: use another account, or no socket",
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

/// The server's OK, which the client did not get yet; `None`: it refused, which the client was told.
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
                let wrong = "keywright: the password is not encrypted for the proxy's key";
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
async fn reply<S: AsyncRead + AsyncWrite + Unpin, T>(
    client: &mut Leg<S>,
    outcome: Result<Option<T>, Failed>,
) -> io::Result<Option<T>> {
    match outcome {
        Ok(outcome) => Ok(outcome),
        Err(Failed::Io(error)) => Err(error),
        Err(Failed::Refused(refusal)) => {
            let cause = refusal.cause.name();
            tracing::info!(cause, "login refused: {}", refusal.message);
            client.send(&refusal.payload()).await?;
            Ok(None)
        }
    }
}

/// What became of COM_CHANGE_USER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The other account is logged in.
    Entered,
    /// The server has refused it, and told the client. Whether it lets the connection go on, as the account before, is its affair:
    /// MariaDB does, with the session started over, MySQL does not.
    Refused,
    /// The proxy has refused it, and told the client. The server waits in the middle of an exchange.
    Over,
}

/// COM_CHANGE_USER, whole, is passed on, and the exchange that it begins.
///
/// # Errors
/// As [`run`].
pub async fn change_user(
    client: &mut Stream,
    upstream: &mut Stream,
    command: &[u8],
    login: &mut Login,
) -> io::Result<Change> {
    let ways = ways(client, upstream);
    let is_local = upstream.is_local();
    let (mut client, mut upstream) = (Leg::new(client, 1), Leg::new(upstream, 0));
    let changed = async {
        // Where the database is not known, neither is the rule for an unqualified name.
        let command = command.get(4..).unwrap_or_default();
        let introduction = Introduction::of_change(command, login.facts.capabilities)
            .ok_or_else(cannot_be_read)?;
        let challenge = login.challenge.clone();
        let (exchange, instead) = Exchange::begin(ways, challenge, &introduction);
        upstream.send(instead.as_deref().unwrap_or(command)).await?;
        let mut next = login.clone();
        next.facts.user = introduction.user.to_vec();
        next.facts.database = introduction.database.map(<[u8]>::to_vec);
        next.facts.collation = introduction.collation.unwrap_or(next.facts.collation);
        // The server has let somebody in before, and counts nothing any more.
        let entered = decide(
            &mut client,
            &mut upstream,
            exchange,
            &mut next,
            is_local,
            None,
        )
        .await?;
        Ok(Some((entered, next)))
    };
    let changed = changed.await;
    Ok(match reply(&mut client, changed).await? {
        Some((true, next)) => {
            *login = next;
            Change::Entered
        }
        Some((false, next)) => {
            login.challenge = next.challenge;
            Change::Refused
        }
        None => Change::Over,
    })
}

fn status_of(ok: &[u8]) -> Option<u16> {
    // Affected rows and id are 0 here, one byte each.
    Some(u16::from_le_bytes([*ok.get(3)?, *ok.get(4)?]))
}
