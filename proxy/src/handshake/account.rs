//! Accounts that the server recognises by the user of the operating system behind a UNIX socket: over the proxy's own socket that
//! would be the proxy's user, whoever the client is. Nothing in the exchange shows such an account (the server asks for no proof,
//! or takes the socket after a proof was wrong), so the server is asked what the account is that it has let in.

use std::io;

use keywright_wire::capability::{DEPRECATE_EOF, QUERY_ATTRIBUTES};
use tokio::io::{AsyncRead, AsyncWrite};

use super::leg::Leg;

/// Everybody may ask this of himself.
const QUESTION: &[u8] = b"SHOW CREATE USER CURRENT_USER()";
/// Packets of the answer at most: one row of one column.
const PACKETS_MAX: usize = 8;
/// MariaDB's plugin and MySQL's.
const PLUGINS: [&[u8]; 2] = [b"unix_socket", b"auth_socket"];

/// How the server knows an account.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Account {
    /// By what the client has proved.
    Proof,
    /// Perhaps by the socket.
    Socket,
    /// The server does not say.
    Unknown,
}

/// Asks on a connection that is let in, between commands.
pub(super) async fn read<S: AsyncRead + AsyncWrite + Unpin>(
    leg: &mut Leg<S>,
    capabilities: u64,
) -> io::Result<Account> {
    let has = |bit: u64| capabilities & bit != 0;
    let mut question = vec![0x03];
    if has(QUERY_ATTRIBUTES) {
        // None of them, one set.
        question.extend([0, 1]);
    }
    question.extend_from_slice(QUESTION);
    leg.restart();
    leg.send(&question).await?;
    let mut ends = if has(DEPRECATE_EOF) { 1 } else { 2 };
    let mut packets = Vec::new();
    for _ in 0..PACKETS_MAX {
        let packet = leg.packet().await?;
        match packet.first() {
            Some(0xFF) | None => return Ok(Account::Unknown),
            Some(0xFE) => ends -= 1,
            Some(_) => packets.push(packet),
        }
        if ends == 0 {
            // How many columns, the column, the row.
            return Ok(match packets.as_slice() {
                [_, _, row] => judge(row),
                _ => Account::Unknown,
            });
        }
    }
    Err(io::Error::other("the answer about an account does not end"))
}

/// The words would also be found in a comment on the account, which costs its owner a socket and nobody a secret.
fn judge(row: &[u8]) -> Account {
    let text = row.to_ascii_lowercase();
    let find =
        |part: &[u8], text: &[u8]| text.windows(part.len()).position(|window| window == part);
    if find(b"create user", &text).is_none() {
        return Account::Unknown;
    }
    let how = match find(b" identified ", &text) {
        Some(at) => text.get(at..).unwrap_or_default(),
        None => return Account::Proof,
    };
    if PLUGINS.iter().any(|plugin| find(plugin, how).is_some()) {
        Account::Socket
    } else {
        Account::Proof
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, judge};

    #[test]
    fn the_servers_own_words_are_understood() {
        let socket = [
            "CREATE USER `root`@`localhost` IDENTIFIED VIA mysql_native_password USING 'invalid' OR unix_socket",
            "CREATE USER \"a\"@\"%\" IDENTIFIED WITH 'auth_socket' AS 'root' REQUIRE NONE",
            "CREATE USER `a`@`%` IDENTIFIED WITH 'caching_sha2_password' AS 'x' AND IDENTIFIED WITH 'AUTH_SOCKET'",
        ];
        for text in socket {
            assert_eq!(judge(text.as_bytes()), Account::Socket, "{text}");
        }
        let proof = [
            "CREATE USER `unix_socket`@`localhost`",
            "CREATE USER `unix_socket`@`%` IDENTIFIED BY PASSWORD '*B69'",
            "\u{70}CREATE USER `a`@`%` IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$'",
        ];
        for text in proof {
            assert_eq!(judge(text.as_bytes()), Account::Proof, "{text}");
        }
        assert_eq!(judge(b""), Account::Unknown);
    }
}
