//! The exchange before the first command. Proofs of passwords are made for the upstream's own challenge, so most of it is passed
//! on packet by packet; each leg has TLS of its own, and what depends on TLS is translated between them.
//!
//! - `leg`: packets, numbered on each side. `server`: which server it is.
//! - `pending`: the server's side until it has decided, and what becomes of it if the client does not go on.
//! - `introduction`: which logins the server hears of. `proof`: which proofs of passwords, and wrong ones.
//! - `protect`: TLS on both legs. `exchange`: what becomes of each packet until the server has decided; `decide` carries it out.
//!   `account`: whom it has let in. `change_user`: another login on the same connection.

mod account;
mod change_user;
mod decide;
mod exchange;
mod introduction;
mod leg;
mod login;
pub mod password;
mod pending;
mod proof;
mod protect;
mod server;

use std::io;
use std::sync::Arc;

use keywright_core::Cause;
use keywright_session::SessionFacts;
use keywright_wire::handshake::greeting::{self, Greeting};
use keywright_wire::handshake::response::{self, LoginRequest};
use tokio::time::{sleep, timeout};

use crate::connection::stream::Stream;
pub use change_user::{Change, change_user};
use decide::{decide, reply};
use exchange::{Exchange, Ways};
use leg::{Failed, Leg, of_client};
pub use login::{Login, LoginSettings};
use login::{cannot_be_read, too_slow};
pub use pending::Pending;
use protect::{may_need_sight, protect, require_tls, ways, welcome};
use server::server;
pub(crate) use server::server_of;

/// One of the two, as a login leaves it.
pub struct Peer {
    /// In what protects it.
    pub stream: Stream,
    /// What was read of it and belongs to what comes behind the login.
    pub read: Vec<u8>,
}

impl From<(Stream, Vec<u8>)> for Peer {
    fn from((stream, read): (Stream, Vec<u8>)) -> Self {
        Self { stream, read }
    }
}

impl From<Stream> for Peer {
    fn from(stream: Stream) -> Self {
        Self::from((stream, Vec::new()))
    }
}

/// How a login ended.
pub enum Ended {
    /// The client and the server, each in what protects the connection to it.
    Entered(Peer, Peer, Box<Login>),
    /// The client was refused, and has got the error.
    Refused(Stream),
}

/// Runs the exchange. However it ends, also when it is dropped, what is left of the server's side is to be finished.
///
/// # Errors
/// A connection broke, or somebody broke the protocol.
pub async fn run(
    client: Stream,
    upstream: &mut Pending,
    terms: &LoginSettings<'_>,
) -> io::Result<Ended> {
    let offers_tls = terms.protection.client.settings().is_some();
    let client = Leg::new(client, 0);
    // What comes behind its first packet may be TLS.
    let mut client = match offers_tls {
        true => client,
        false => client.reading_ahead(),
    };
    let mut said = upstream.said().to_vec();
    if said.first() == Some(&0xFF) {
        client.send(&said).await?;
        return Ok(Ended::Refused(client.stream));
    }
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
            reply(&mut client, Err::<Option<()>, _>(too_slow().into()), terms.span).await?;
            return Ok(Ended::Refused(client.stream));
        }
    };
    let welcome = welcome(client, response, terms.protection);
    let (mut client, response) = timeout(terms.patience, welcome).await??;
    let entered = async {
        let mut response = response.map_err(of_client)?;
        require_tls(&client, terms.protection)?;
        introduction::check(&response, greeting.capabilities)?;
        protect(upstream, &greeting, &mut response, terms).await?;
        enter(&mut client, upstream, &greeting, &response, terms).await
    };
    let entered = entered.await;
    if has_decided(&entered) {
        upstream.is_over();
    }
    Ok(match reply(&mut client, entered, terms.span).await? {
        Some(login) => {
            let (client, upstream) = (client.into_parts(), upstream.take()?.into_parts());
            Ended::Entered(client.into(), upstream.into(), Box::new(login))
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

/// From the client's login request to the server's OK, which the client gets too.
async fn enter(
    client: &mut Leg<Stream>,
    upstream: &mut Pending,
    greeting: &Greeting,
    response: &[u8],
    terms: &LoginSettings<'_>,
) -> Result<Option<Login>, Failed> {
    let login_request = LoginRequest::of_response(response).ok_or_else(cannot_be_read)?;
    let asked = response::asked(response).ok_or_else(cannot_be_read)?;
    let facts = SessionFacts {
        user: login_request.user.to_vec(),
        server: server(greeting.server),
        capabilities: asked & greeting.capabilities,
        collation: login_request.collation.ok_or_else(cannot_be_read)?,
        database: login_request.database.map(<[u8]>::to_vec),
        status: 0,
        limits: terms.limits,
    };
    let own_key = terms.protection.rsa_key.as_ref().unwrap_or(terms.own_key);
    let ways = ways(&client.stream, &upstream.leg()?.stream);
    let (exchange, instead) = Exchange::begin(ways, greeting.challenge.clone(), &login_request);
    let (upstream, exchange) = upstream.introduced(exchange)?;
    upstream
        .send(instead.as_deref().unwrap_or(response))
        .await?;
    let is_local = upstream.stream.is_local();
    let mut login = Login {
        facts,
        must_see_change_user: is_local || ways != Ways::Alike,
        connection: greeting.connection,
        challenge: Vec::new(),
        own_key: Arc::clone(own_key),
    };
    let patience = Some(terms.patience);
    let entered = decide(client, upstream, exchange, &mut login, is_local, patience).await?;
    Ok(entered.then_some(login))
}
