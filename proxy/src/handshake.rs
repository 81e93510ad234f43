//! The exchange before the first command: passed on packet by packet, since proofs of passwords are made for the upstream's
//! own challenge. Only what the proxy does not handle is taken out of the greeting.

use std::io;

use keywright_rewrite::{Flavour, Server};
use keywright_session::{Limits, SessionFacts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stream::Stream;

/// Longest packet of the exchange, bytes.
const AUTH_BYTES_MAX: usize = 64 << 10;
/// Packets of one exchange at most.
const AUTH_PACKETS_MAX: usize = 64;

const CONNECT_WITH_DB: u32 = 1 << 3;
const COMPRESS: u32 = 1 << 5;
const TLS: u32 = 1 << 11;
/// Results without column definitions: their first packet looks different.
const OPTIONAL_METADATA: u32 = 1 << 25;
const ZSTD: u32 = 1 << 26;
const QUERY_ATTRIBUTES: u32 = 1 << 27;
const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
/// MariaDB's extended capabilities that a listener with rules does not handle: bulk execution, cached metadata.
const EXTENDED_NOT_OFFERED: u32 = 1 << 2 | 1 << 4;

/// A packet, header and payload.
async fn packet(from: &mut Stream) -> io::Result<Vec<u8>> {
    let first = begun(from).await?;
    packet_after(first, from).await
}

/// Waits for the first byte of a packet. May be dropped while it waits: nothing is lost. That a socket is said to be readable
/// is no proof: it is said until a read has found nothing.
async fn begun(from: &Stream) -> io::Result<u8> {
    loop {
        from.readable().await?;
        let mut first = [0];
        match from.try_read(&mut first) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                let [first] = first;
                return Ok(first);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// The packet whose first byte was read.
async fn packet_after(a: u8, from: &mut Stream) -> io::Result<Vec<u8>> {
    let mut rest = [0; 3];
    from.read_exact(&mut rest).await?;
    let [b, c, sequence] = rest;
    let len = usize::try_from(u32::from_le_bytes([a, b, c, 0])).unwrap_or(usize::MAX);
    if len > AUTH_BYTES_MAX {
        return Err(io::Error::other("packet of the handshake is too long"));
    }
    let mut whole = vec![a, b, c, sequence];
    whole.resize(4 + len, 0);
    if let Some(body) = whole.get_mut(4..) {
        from.read_exact(body).await?;
    }
    Ok(whole)
}

/// What the greeting said.
struct Greeting {
    server: Server,
    capabilities: u32,
    extended: u32,
}

/// Runs the exchange. `None`: the upstream refused, which the client was told.
///
/// # Errors
/// A connection broke, or somebody broke the protocol.
pub async fn run(
    client: &mut Stream,
    upstream: &mut Stream,
    has_rules: bool,
    limits: Limits,
) -> io::Result<Option<SessionFacts>> {
    let mut greeting = packet(upstream).await?;
    if greeting.get(4) == Some(&0xFF) {
        client.write_all(&greeting).await?;
        return Ok(None);
    }
    let offered = offer(&mut greeting, has_rules)
        .ok_or_else(|| io::Error::other("the upstream's greeting cannot be read"))?;
    client.write_all(&greeting).await?;
    let mut response = packet(client).await?;
    take_out(&mut response, has_rules);
    let Some(facts) = read_response(&response, &offered, limits) else {
        return Err(io::Error::other("the client's greeting cannot be read"));
    };
    upstream.write_all(&response).await?;
    let status = authenticate(client, upstream).await?;
    Ok(status.map(|status| SessionFacts { status, ..facts }))
}

/// Passes packets both ways until the upstream says OK or ERR; the status flags of OK.
async fn authenticate(client: &mut Stream, upstream: &mut Stream) -> io::Result<Option<u16>> {
    for _ in 0..AUTH_PACKETS_MAX {
        tokio::select! {
            biased;
            first = begun(upstream) => {
                let said = packet_after(first?, upstream).await?;
                client.write_all(&said).await?;
                match said.get(4) {
                    Some(0) => return Ok(Some(status_of(&said).unwrap_or(0))),
                    Some(0xFF) => return Ok(None),
                    Some(_) | None => {}
                }
            }
            first = begun(client) => {
                let said = packet_after(first?, client).await?;
                upstream.write_all(&said).await?;
            }
        }
    }
    Err(io::Error::other("the handshake does not end"))
}

/// COM_CHANGE_USER, whole, is passed on, and the exchange that it begins.
///
/// # Errors
/// As [`run`].
pub async fn change_user(
    client: &mut Stream,
    upstream: &mut Stream,
    command: &[u8],
    before: &SessionFacts,
) -> io::Result<Option<SessionFacts>> {
    // Where the database is not known, neither is the rule for an unqualified name.
    let Some((user, database, collation)) = read_change(command) else {
        return Err(io::Error::other("COM_CHANGE_USER cannot be read"));
    };
    let collation = collation.unwrap_or(before.collation);
    upstream.write_all(command).await?;
    let status = authenticate(client, upstream).await?;
    Ok(status.map(|status| SessionFacts {
        user,
        database,
        collation,
        status,
        ..before.clone()
    }))
}

/// The user, the database and, if it is there, the collation.
fn read_change(command: &[u8]) -> Option<Change> {
    let rest = command.get(5..)?;
    let (user, rest) = until_zero(rest)?;
    let (proof, rest) = rest.split_first()?;
    let (database, rest) = until_zero(rest.get(usize::from(*proof)..)?)?;
    let collation = match *rest {
        [low, high, ..] => Some(u16::from_le_bytes([low, high])),
        _ => None,
    };
    let database = (!database.is_empty()).then(|| database.to_vec());
    Some((user.to_vec(), database, collation))
}

/// User, database, collation.
type Change = (Vec<u8>, Option<Vec<u8>>, Option<u16>);

fn until_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

fn status_of(ok: &[u8]) -> Option<u16> {
    // Affected rows and id are 0 here, one byte each.
    Some(u16::from_le_bytes([*ok.get(7)?, *ok.get(8)?]))
}

/// What is not offered: TLS and compression to nobody, and what the state machine does not read to nobody with rules.
fn not_offered(has_rules: bool) -> u32 {
    let of_all = COMPRESS | TLS | ZSTD;
    if has_rules {
        of_all | QUERY_ATTRIBUTES | OPTIONAL_METADATA
    } else {
        of_all
    }
}

/// Takes out of a client's greeting what it asks for although it was not offered: the server would agree to it.
fn take_out(response: &mut [u8], has_rules: bool) {
    let Some(body) = response.get_mut(4..) else {
        return;
    };
    clear(body, 0, not_offered(has_rules));
    // MariaDB's clients say by an absent first bit that they have capabilities of their own.
    if has_rules && body.first().is_some_and(|first| first & 1 == 0) {
        clear(body, 28, EXTENDED_NOT_OFFERED);
    }
}

fn clear(body: &mut [u8], at: usize, bits: u32) {
    for (byte, bits) in body.iter_mut().skip(at).zip(bits.to_le_bytes()) {
        *byte &= !bits;
    }
}

/// Takes what is not handled out of the greeting.
fn offer(greeting: &mut [u8], has_rules: bool) -> Option<Greeting> {
    let version = greeting.get(5..)?.iter().position(|byte| *byte == 0)?;
    let server = server_of(greeting.get(5..5 + version)?)?;
    // Behind the version: its zero, thread id, 8 bytes of challenge, a zero.
    let low = 5 + version + 1 + 4 + 8 + 1;
    let high = low + 5;
    let mut capabilities = [0; 4];
    for (at, byte) in [low, low + 1, high, high + 1]
        .into_iter()
        .zip(&mut capabilities)
    {
        *byte = *greeting.get(at)?;
    }
    let capabilities = u32::from_le_bytes(capabilities) & !not_offered(has_rules);
    let bytes = capabilities.to_le_bytes();
    for (at, byte) in [low, low + 1, high, high + 1].into_iter().zip(bytes) {
        *greeting.get_mut(at)? = byte;
    }
    // Challenge length, then 6 reserved bytes, then 4 that are reserved on MySQL and MariaDB's own capabilities there.
    let own = high + 2 + 1 + 6;
    let mut extended = 0;
    if server.flavour == Flavour::MariaDb && capabilities & 1 == 0 {
        let bytes = greeting.get_mut(own..own + 4)?;
        extended = u32::from_le_bytes(<[u8; 4]>::try_from(&*bytes).ok()?);
        if has_rules {
            extended &= !EXTENDED_NOT_OFFERED;
        }
        bytes.copy_from_slice(&extended.to_le_bytes());
    }
    Some(Greeting {
        server,
        capabilities,
        extended,
    })
}

/// `5.5.5-10.11.19-MariaDB-log` → MariaDB 101119; `9.7.4` → MySQL 90704.
pub(crate) fn server_of(version: &[u8]) -> Option<Server> {
    let text = std::str::from_utf8(version).ok()?;
    let maria = text.to_ascii_lowercase().contains("mariadb");
    let number = text
        .strip_prefix("5.5.5-")
        .filter(|_| maria)
        .unwrap_or(text);
    let mut parts = number
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let mut part = || parts.next().and_then(Result::ok);
    let version =
        part()?.checked_mul(10_000)? + part()?.min(99) * 100 + part().unwrap_or(0).min(99);
    Some(Server {
        flavour: if maria {
            Flavour::MariaDb
        } else {
            Flavour::MySql
        },
        version,
    })
}

fn read_response(response: &[u8], offered: &Greeting, limits: Limits) -> Option<SessionFacts> {
    let body = response.get(4..)?;
    let asked = u32::from_le_bytes(<[u8; 4]>::try_from(body.get(..4)?).ok()?);
    let extended = u32::from_le_bytes(<[u8; 4]>::try_from(body.get(28..32)?).ok()?);
    let (user, rest) = until_zero(body.get(32..)?)?;
    let rest = if asked & PLUGIN_AUTH_LENENC != 0 || asked & (1 << 15) != 0 {
        // A proof is never so long that its length takes more than a byte.
        let (len, rest) = rest.split_first()?;
        rest.get(usize::from(*len)..)?
    } else {
        until_zero(rest)?.1
    };
    let database = if asked & CONNECT_WITH_DB != 0 {
        until_zero(rest).map(|(name, _)| name.to_vec())
    } else {
        None
    };
    Some(SessionFacts {
        user: user.to_vec(),
        server: offered.server,
        capabilities: u64::from(asked & offered.capabilities)
            | u64::from(extended & offered.extended) << 32,
        collation: u16::from(*body.get(8)?),
        database: database.filter(|name| !name.is_empty()),
        status: 0,
        limits,
    })
}

#[cfg(test)]
mod tests {
    use super::{QUERY_ATTRIBUTES, read_change, take_out};

    #[test]
    fn the_database_of_a_changed_user_is_read_with_and_without_collation() {
        let packet = |rest: &[u8]| [b"\0\0\0\0\x11root\0\x02pw".as_slice(), rest].concat();
        let (root, shop) = (b"root".to_vec(), Some(b"shop".to_vec()));
        assert_eq!(
            read_change(&packet(b"shop\0\x2d\0")),
            Some((root.clone(), shop.clone(), Some(45)))
        );
        assert_eq!(
            read_change(&packet(b"shop\0")),
            Some((root.clone(), shop, None))
        );
        assert_eq!(
            read_change(&packet(b"\0\x2d\0")),
            Some((root, None, Some(45)))
        );
        assert_eq!(read_change(&packet(b"shop")), None);
    }

    #[test]
    fn what_was_not_offered_is_taken_out_of_the_clients_greeting() {
        let mut response = vec![0; 4];
        response.extend((QUERY_ATTRIBUTES | 1 << 5 | 1 << 3).to_le_bytes());
        response.extend([0; 24]);
        response.extend([0xFF; 4]);
        take_out(&mut response, true);
        assert_eq!(response[4..8], (1_u32 << 3).to_le_bytes());
        assert_eq!(response[32..36], [0xEB, 0xFF, 0xFF, 0xFF]);
        take_out(&mut [], true);
    }
}
