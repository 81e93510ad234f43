//! COM_CHANGE_USER: another login on the same connection.

use std::io;

use keywright_wire::handshake::response::LoginRequest;

use super::decide::{decide, reply};
use super::exchange::Exchange;
use super::leg::Leg;
use super::login::{Login, cannot_be_read};
use super::protect::ways;
use crate::connection::span::ConnectionSpan;
use crate::connection::stream::Stream;

/// What became of COM_CHANGE_USER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The other account is logged in.
    Entered,
    /// The server has refused it, and the client has got its error. MariaDB lets the connection go on as the account before, with the
    /// session started over; MySQL does not.
    Refused,
    /// The proxy has refused it, and the client has got the error. The server waits in the middle of an exchange.
    Over,
}

/// COM_CHANGE_USER, whole, is passed on, and the exchange that it begins.
///
/// # Errors
/// As [`super::run`].
pub async fn change_user(
    client: &mut Stream,
    upstream: &mut Stream,
    command: &[u8],
    login: &mut Login,
    span: &ConnectionSpan,
) -> io::Result<Change> {
    let ways = ways(client, upstream);
    let is_local = upstream.is_local();
    let (mut client, mut upstream) = (Leg::new(client, 1), Leg::new(upstream, 0));
    let changed = async {
        // Where the database is not known, neither is the rule for an unqualified name.
        let command = command.get(4..).unwrap_or_default();
        let login_request = LoginRequest::of_change(command, login.facts.capabilities)
            .ok_or_else(cannot_be_read)?;
        let challenge = login.challenge.clone();
        let (mut exchange, instead) = Exchange::begin(ways, challenge, &login_request);
        upstream.send(instead.as_deref().unwrap_or(command)).await?;
        let mut next = login.clone();
        next.facts.user = login_request.user.to_vec();
        next.facts.database = login_request.database.map(<[u8]>::to_vec);
        next.facts.collation = login_request.collation.unwrap_or(next.facts.collation);
        // The server has let somebody in before, and counts nothing any more.
        let entered = decide(
            &mut client,
            &mut upstream,
            &mut exchange,
            &mut next,
            is_local,
            None,
        )
        .await?;
        Ok(Some((entered, next)))
    };
    let changed = changed.await;
    Ok(match reply(&mut client, changed, span).await? {
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
