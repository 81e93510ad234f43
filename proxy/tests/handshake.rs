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

#[tokio::test]
async fn a_server_that_waits_no_longer_is_heard_by_the_client() -> Result<()> {
    let (mut client, from_client) = UnixStream::pair()?;
    let (to_server, mut server) = UnixStream::pair()?;
    let protection = Protection {
        client: TlsMode::Disabled,
        upstream: TlsMode::Disabled,
        rsa_key: None,
    };
    let own_key = Arc::new(OwnKey::made_when_needed());
    let span = ConnectionSpan::new(1);
    let terms = LoginSettings {
        protection: &protection,
        own_key: &own_key,
        has_rules: true,
        limits: Limits::default(),
        patience: WAIT_MAX,
        span: &span,
    };
    let error = packet(
        1,
        b"\xFF\x87\x04#08S01Got timeout reading communication packets",
    );
    server.write_all(&greeting()).await?;
    let mut upstream = Pending::greeted(Stream::Unix(to_server)).await?;
    let login = handshake::run(Stream::Unix(from_client), &mut upstream, &terms);
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
