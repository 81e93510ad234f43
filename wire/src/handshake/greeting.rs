//! The server's greeting: what it says, and what of it is passed on to clients.

use crate::capability::{
    BULK_UNIT_RESULTS, CACHED_METADATA, COMPRESS, LONG_PASSWORD, OPTIONAL_METADATA, TLS, ZSTD,
    of_words, words,
};

/// Bytes of a challenge, without the zero behind it.
pub const CHALLENGE_BYTES: usize = 20;

/// What the greeting said.
#[derive(Debug)]
pub struct Greeting {
    /// The server that says it.
    pub server: ServerVersion,
    /// As they are passed on to the client, but for TLS.
    pub capabilities: u64,
    /// Whether the state machine reads what follows.
    pub is_read: bool,
    /// Whether the server itself offers TLS.
    pub has_tls: bool,
    /// What proofs of passwords are made for.
    pub challenge: Vec<u8>,
    /// The connection's number on the server, as in its process list.
    pub connection: u32,
}

/// What is not offered: compression to nobody, TLS because each leg has its own, and what the state machine does not read where
/// it reads.
fn not_offered(is_read: bool) -> u64 {
    let of_all = COMPRESS | TLS | ZSTD;
    if is_read {
        of_all | OPTIONAL_METADATA | CACHED_METADATA | BULK_UNIT_RESULTS
    } else {
        of_all
    }
}

/// Takes out of a client's greeting what it asks for although it was not offered: the server would agree to it. TLS is set
/// if this is for a leg that has it.
pub fn take_out(response: &mut [u8], is_read: bool, tls: bool) {
    let (mysql, mariadb) = words(not_offered(is_read));
    clear(response, 0, mysql);
    if is_read
        && response
            .first()
            .is_some_and(|first| says_mariadb(u64::from(*first)))
    {
        clear(response, 28, mariadb);
    }
    if tls {
        for (byte, bits) in response.iter_mut().zip(words(TLS).0) {
            *byte |= bits;
        }
    }
}

/// Whether MariaDB or its clients say that they have capabilities of their own, by leaving the first bit out.
fn says_mariadb(capabilities: u64) -> bool {
    capabilities & LONG_PASSWORD == 0
}

fn clear(body: &mut [u8], at: usize, bits: [u8; 4]) {
    for (byte, bits) in body.iter_mut().skip(at).zip(bits) {
        *byte &= !bits;
    }
}

/// Takes what is not handled out of the greeting, and offers TLS if this is for a leg that has it; `None` if it
/// cannot be read.
pub fn offer(greeting: &mut [u8], is_read: bool, tls: bool) -> Option<Greeting> {
    let version = greeting.get(1..)?.iter().position(|byte| *byte == 0)?;
    let server = ServerVersion::read(greeting.get(1..1 + version)?)?;
    // Behind the version: its zero, thread id, 8 bytes of challenge, a zero.
    let number = 1 + version + 1;
    let seed = number + 4;
    let low = seed + 8 + 1;
    let high = low + 5;
    let places = [low, low + 1, high, high + 1];
    let mut said = [0; 4];
    for (at, byte) in places.into_iter().zip(&mut said) {
        *byte = *greeting.get(at)?;
    }
    let said = of_words(said, [0; 4]);
    let mut capabilities = said & !not_offered(is_read);
    let output = capabilities | if tls { TLS } else { 0 };
    for (at, byte) in places.into_iter().zip(words(output).0) {
        *greeting.get_mut(at)? = byte;
    }
    // Challenge length, then 6 reserved bytes, then 4 that are reserved on MySQL and MariaDB's own capabilities there.
    let own = high + 2 + 1 + 6;
    if server.is_mariadb && says_mariadb(capabilities) {
        let bytes = greeting.get_mut(own..own + 4)?;
        let said = <[u8; 4]>::try_from(&*bytes).ok()?;
        capabilities |= of_words([0; 4], said) & !not_offered(is_read);
        bytes.copy_from_slice(&words(capabilities).1);
    }
    let mut challenge = greeting.get(seed..seed + 8)?.to_vec();
    let rest = greeting.get(own + 4..).unwrap_or_default();
    challenge.extend(rest.iter().take(CHALLENGE_BYTES - 8));
    let number = <[u8; 4]>::try_from(greeting.get(number..seed)?).ok()?;
    Some(Greeting {
        server,
        capabilities,
        is_read,
        has_tls: said & TLS != 0,
        challenge,
        connection: u32::from_le_bytes(number),
    })
}

/// What a server's version tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerVersion {
    /// Whether it is MariaDB; else it is MySQL.
    pub is_mariadb: bool,
    /// 10.11.19 as 101119.
    pub number: u32,
}

/// What MariaDB says of itself, in whatever case.
const MARIADB: &[u8] = b"mariadb";

impl ServerVersion {
    /// `5.5.5-10.11.19-MariaDB-log` → MariaDB 101119; `9.7.4` → MySQL 90704; `None` if there is no number.
    pub fn read(version: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(version).ok()?;
        let mut parts = version.windows(MARIADB.len());
        let is_mariadb = parts.any(|part| part.eq_ignore_ascii_case(MARIADB));
        let number = text
            .strip_prefix("5.5.5-")
            .filter(|_| is_mariadb)
            .unwrap_or(text);
        let mut parts = number
            .split(|c: char| !c.is_ascii_digit())
            .map(str::parse::<u32>);
        let mut part = || parts.next().and_then(Result::ok);
        let number = part()?.checked_mul(10_000)?;
        let rest = part()?.min(99) * 100 + part().unwrap_or(0).min(99);
        let number = number.checked_add(rest)?;
        Some(Self { is_mariadb, number })
    }
}

#[cfg(test)]
mod tests {
    use super::{OPTIONAL_METADATA, ServerVersion, TLS, offer, take_out};
    use crate::capability::words;

    #[test]
    fn versions_are_numbers() {
        let number = |text: &str| ServerVersion::read(text.as_bytes()).map(|its| its.number);
        assert_eq!(number("5.5.5-10.11.19-MariaDB-log"), Some(101_119));
        assert_eq!(number("9.7.4"), Some(90_704));
        assert_eq!(number("429496.99.99"), None);
        assert_eq!(number("x"), None);
    }

    #[test]
    fn what_was_not_offered_is_taken_out_of_the_clients_greeting() {
        let mut response = Vec::new();
        response.extend(words(OPTIONAL_METADATA | TLS | 1 << 5 | 1 << 3).0);
        response.extend([0; 24]);
        response.extend([0xFF; 4]);
        take_out(&mut response, true, false);
        assert_eq!(response[..4], (1_u32 << 3).to_le_bytes());
        assert_eq!(response[28..32], [0xCF, 0xFF, 0xFF, 0xFF]);
        take_out(&mut response, true, true);
        assert_eq!(response[..4], words(TLS | 1 << 3).0);
        take_out(&mut [], true, true);
    }

    #[test]
    fn tls_is_offered_on_the_clients_leg_whatever_the_server_does() {
        let greeting = |tls: u64| {
            let ([a, b, c, d], _) = words(tls | 1);
            let mut bytes = b"\x0a9.7.4\0\x01\x02\0\0".to_vec();
            bytes.extend(b"12345678\0");
            bytes.extend([a, b, 45, 2, 0, c, d, 21]);
            bytes.extend([0; 10]);
            bytes.extend(b"901234567890\0caching_sha2_password\0");
            bytes
        };
        for has_tls in [false, true] {
            for tls in [false, true] {
                let mut bytes = greeting(if has_tls { TLS } else { 0 });
                let found = offer(&mut bytes, false, tls);
                assert_eq!(bytes, greeting(if tls { TLS } else { 0 }));
                let found = found.map(|found| (found.has_tls, found.challenge, found.connection));
                let challenge = b"12345678901234567890".to_vec();
                assert_eq!(found, Some((has_tls, challenge, 0x201)));
            }
        }
        assert!(offer(&mut greeting(0)[..20], false, false).is_none());
    }
}
