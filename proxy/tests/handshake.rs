//! Logins between a client and a server that are played by the test.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use keywright_proxy::config::listener::Protection;
use keywright_proxy::config::tls::TlsMode;
use keywright_proxy::connection::span::ConnectionSpan;
use keywright_proxy::connection::stream::Stream;
use keywright_proxy::handshake::password::OwnKey;
use keywright_proxy::handshake::{self, Ended, LoginSettings, Pending};
use keywright_session::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long a test may take.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&[len[0], len[1], len[2], sequence], payload].concat()
}

/// MySQL's, without TLS.
fn greeting() -> Vec<u8> {
    let mut payload = b"\x0a9.7.4\0\x07\0\0\x0012345678\0".to_vec();
    payload.extend([0xFF, 0xF7, 45, 2, 0, 0x0F, 0x80, 21]);
    payload.extend([0; 10]);
    payload.extend(b"901234567890\0caching_sha2_password\0");
    packet(0, &payload)
}

/// A client's login request, with this behind the user's name.
fn login_request(capabilities: u32, rest: &[u8]) -> Vec<u8> {
    let mut payload = capabilities.to_le_bytes().to_vec();
    payload.extend([0, 0, 0, 1, 45]);
    payload.extend([0; 23]);
    payload.extend(b"u\0");
    payload.extend(rest);
    packet(1, &payload)
}

/// One packet's number and payload.
type FromProxy = (u8, Vec<u8>);

async fn heard(stream: &mut UnixStream) -> Result<FromProxy> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await?;
    let mut payload = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8];
    stream.read_exact(&mut payload).await?;
    Ok((header[3], payload))
}

/// Protocol 4.1, proofs with their length before them, plugins with names.
const USUAL: u32 = 1 | 1 << 9 | 1 << 15 | 1 << 19;
/// Packets are compressed: with zlib, with zstd.
const COMPRESSED: [u32; 2] = [1 << 5, 1 << 26];
/// Packet malformed: 1156.
const MALFORMED: &[u8] = b"\xFF\x84\x04#08S01keywright: ";

/// What the proxy has of a listener.
struct Proxy {
    protection: Protection,
    own_key: Arc<OwnKey>,
    span: ConnectionSpan,
}

impl Proxy {
    fn without_tls() -> Proxy {
        Proxy {
            protection: Protection {
                client: TlsMode::Disabled,
                upstream: TlsMode::Disabled,
                rsa_key: None,
            },
            own_key: Arc::new(OwnKey::made_when_needed()),
            span: ConnectionSpan::new(1),
        }
    }

    fn terms(&self) -> LoginSettings<'_> {
        LoginSettings {
            protection: &self.protection,
            own_key: &self.own_key,
            has_rules: true,
            limits: Limits::default(),
            patience: WAIT_MAX,
            span: &self.span,
        }
    }
}

/// A client, the proxy's side of it, the proxy's side of a server that has greeted, and the server.
async fn connected() -> Result<(UnixStream, Stream, Pending, UnixStream)> {
    let (client, from_client) = UnixStream::pair()?;
    let (to_server, mut server) = UnixStream::pair()?;
    server.write_all(&greeting()).await?;
    let upstream = Pending::greeted(Stream::Unix(to_server)).await?;
    Ok((client, Stream::Unix(from_client), upstream, server))
}

/// A client introduces itself so, gives each of these packets of the server's the answer beside it, and is refused for what it has said
/// last. What the server has heard, first and last.
async fn refused(
    introduction: &[u8],
    dialogue: &[(&[u8], &[u8])],
) -> Result<(FromProxy, FromProxy)> {
    let proxy = Proxy::without_tls();
    let (mut client, from_client, mut upstream, mut server) = connected().await?;
    let terms = proxy.terms();
    let login = async {
        let ended = handshake::run(from_client, &mut upstream, &terms).await?;
        upstream.finish(&proxy.span).await;
        // Kept: a socket that is closed with bytes unread takes along what was said.
        let Ended::Refused(stream) = ended else {
            bail!("nobody was to be let in");
        };
        anyhow::Ok(stream)
    };
    let play = async {
        heard(&mut client).await?;
        client.write_all(introduction).await?;
        let mut first = None;
        let mut sequence = 2;
        for (said, answer) in dialogue {
            first = Some(heard(&mut server).await?);
            server.write_all(&packet(sequence, said)).await?;
            assert_eq!(heard(&mut client).await?.1, *said);
            client.write_all(&packet(sequence + 1, answer)).await?;
            sequence += 2;
        }
        let (_, error) = heard(&mut client).await?;
        assert!(error.starts_with(MALFORMED), "{error:?}");
        let last = heard(&mut server).await?;
        let denied = packet(last.0 + 1, b"\xFF\x15\x04#28000Access denied");
        server.write_all(&denied).await?;
        anyhow::Ok((first.unwrap_or_else(|| last.clone()), last))
    };
    let both = async { tokio::join!(login, play) };
    let (ended, played) = timeout(WAIT_MAX, both).await.context("nobody is heard")?;
    ended?;
    played
}

/// To the server it is the login of nobody: what it cannot read it would count.
#[tokio::test]
async fn what_the_server_could_not_read_it_does_not_hear() -> Result<()> {
    let old = login_request(USUAL & !(1 << 9), b"\0mysql_native_password\0");
    let cut = packet(1, &old[4..24]);
    let proof = login_request(USUAL, b"\x02pwmysql_native_password\0");
    for introduction in [old, cut, proof, packet(1, b"")] {
        let ((sequence, introduced), _) = refused(&introduction, &[]).await?;
        assert_eq!(sequence, 1);
        let capabilities = introduced.get(..4).context("no login request")?;
        let capabilities = u32::from_le_bytes(capabilities.try_into()?);
        assert_eq!(capabilities & USUAL, USUAL);
        let rest = b"keywright_nobody\0\0mysql_native_password\0";
        assert_eq!(introduced.get(32..), Some(rest.as_slice()));
    }
    Ok(())
}

/// The server's greeting offers compression, the proxy's does not. Its first command could not be read.
#[tokio::test]
async fn whoever_compresses_uninvited_is_refused() -> Result<()> {
    for claimed in COMPRESSED {
        let introduction = login_request(USUAL | claimed, b"\0mysql_native_password\0");
        let ((_, introduced), _) = refused(&introduction, &[]).await?;
        let rest = b"keywright_nobody\0\0mysql_native_password\0";
        assert_eq!(introduced.get(32..), Some(rest.as_slice()));
    }
    Ok(())
}

/// To the server it is a wrong password, for which each plugin has another length.
#[tokio::test]
async fn what_no_proof_can_be_is_a_wrong_password() -> Result<()> {
    let introduction = login_request(USUAL, b"\0dialog\0");
    for (plugin, wrong) in [
        (b"mysql_native_password".as_slice(), [].as_slice()),
        (b"client_ed25519".as_slice(), [0_u8; 64].as_slice()),
        (b"caching_sha2_password".as_slice(), [].as_slice()),
    ] {
        let asked = [b"\xFE".as_slice(), plugin, b"\0", &[7; 20], b"\0"].concat();
        let dialogue = [(asked.as_slice(), b"longer".as_slice())];
        let (first, last) = refused(&introduction, &dialogue).await?;
        assert_eq!(packet(first.0, &first.1), introduction);
        assert_eq!(last, (3, wrong.to_vec()));
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_waits_no_longer_is_heard_by_the_client() -> Result<()> {
    let proxy = Proxy::without_tls();
    let (mut client, from_client, mut upstream, mut server) = connected().await?;
    let terms = proxy.terms();
    let error = packet(
        1,
        b"\xFF\x87\x04#08S01Got timeout reading communication packets",
    );
    let login = handshake::run(from_client, &mut upstream, &terms);
    let play = async {
        let mut heard = vec![0; greeting().len()];
        client.read_exact(&mut heard).await?;
        // And half of an answer, that never becomes whole.
        client.write_all(&[40, 0, 0]).await?;
        server.write_all(&error).await?;
        anyhow::Ok(())
    };
    let both = async { tokio::join!(login, play) };
    let (ended, played) = timeout(WAIT_MAX, both).await.context("nobody is heard")?;
    played?;
    // Kept: a socket that is closed with bytes unread takes along what was said.
    let Ended::Refused(_stream) = ended? else {
        bail!("nobody was to be let in");
    };
    let mut heard = vec![0; error.len()];
    client.read_exact(&mut heard).await?;
    assert_eq!(heard, error);
    Ok(())
}
