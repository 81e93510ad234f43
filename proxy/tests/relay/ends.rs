//! Clients that leave, and servers that are gone: who still hears what.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use keywright_proxy::config::Config;
use keywright_proxy::connection::stream::Stream;
use keywright_proxy::in_force::context::ListenerContext;
use keywright_store::Keys;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, UnixStream};
use tokio::time::timeout;

use super::new_tables::{DENIED, PREPARED, payload_of};
use super::{between, elsewhere, end_of, packet, pair, relay, relay_of, state, within};

/// The end of a connection that was reset.
const RESET: Option<ErrorKind> = Some(ErrorKind::ConnectionReset);

/// COM_QUIT.
const QUIT: &[u8] = &[1, 0, 0, 0, 1];

#[tokio::test]
async fn a_client_that_only_listens_any_more_gets_its_answer() -> Result<()> {
    within(async {
        let (mut client, mut server, relay) = between().await?;
        client.write_all(b"last words").await?;
        client.shutdown().await?;
        let mut heard = Vec::new();
        server.read_to_end(&mut heard).await?;
        assert_eq!(heard, b"last words");
        server.write_all(b"answer").await?;
        drop(server);
        heard.clear();
        client.read_to_end(&mut heard).await?;
        assert_eq!(heard, b"answer");
        relay.await??;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_client_that_leaves_does_not_wait_for_the_server() -> Result<()> {
    within(async {
        for rules in [Vec::new(), vec![elsewhere()?]] {
            let (mut client, from_client) = pair().await?;
            let (to_server, mut server) = pair().await?;
            let relay = relay(rules, Stream::Tcp(from_client), Stream::Tcp(to_server));
            client.write_all(QUIT).await?;
            drop(client);
            relay.await??;
            let mut heard = Vec::new();
            assert_eq!(end_of(&mut server, &mut heard).await, None);
            assert_eq!(heard, QUIT);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_client_that_leaves_early_leaves_what_is_under_way_to_the_server() -> Result<()> {
    within(async {
        for rules in [Vec::new(), vec![elsewhere()?]] {
            let (mut client, from_client) = pair().await?;
            let (to_server, mut server) = pair().await?;
            let relay = relay(rules, Stream::Tcp(from_client), Stream::Tcp(to_server));
            let command = packet(0, b"\x03DO 0");
            client.write_all(&command).await?;
            let mut heard = vec![0; command.len()];
            server.read_exact(&mut heard).await?;
            client.write_all(QUIT).await?;
            drop(client);
            let mut rest = Vec::new();
            timeout(Duration::from_millis(50), server.read_to_end(&mut rest))
                .await
                .ok();
            assert!(!relay.is_finished());
            server.write_all(&packet(1, &[0, 0, 0, 2, 0, 0, 0])).await?;
            server.read_to_end(&mut rest).await?;
            assert_eq!(rest, QUIT);
            drop(server);
            // To a client that is gone its answer may or may not be written.
            let _ = relay.await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_slow_client_gets_all_that_a_dead_server_had_sent() -> Result<()> {
    within(async {
        let (mut client, mut server, relay) = between().await?;
        let all = vec![3; 8 << 20];
        let sent = tokio::task::spawn_local(async move { server.write_all(&all).await });
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await?;
        assert_eq!(heard.len(), 8 << 20);
        sent.await??;
        relay.await??;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_reset_is_passed_on_after_the_last_words() -> Result<()> {
    within(async {
        let (mut client, mut server, relay) = between().await?;
        server.write_all(b"killed").await?;
        server.set_zero_linger()?;
        drop(server);
        let mut heard = Vec::new();
        assert_eq!(end_of(&mut client, &mut heard).await, RESET);
        assert_eq!(heard, b"killed");
        relay.await??;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_reset_is_an_orderly_end_on_a_unix_socket() -> Result<()> {
    within(async {
        let (mut client, from_client) = UnixStream::pair()?;
        let (to_server, mut server) = pair().await?;
        let relay = relay(
            Vec::new(),
            Stream::Unix(from_client),
            Stream::Tcp(to_server),
        );
        server.write_all(b"killed").await?;
        server.set_zero_linger()?;
        drop(server);
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await?;
        assert_eq!(heard, b"killed");
        relay.await??;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_reset_takes_nothing_from_a_client_that_has_no_room_yet() -> Result<()> {
    within(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let client = TcpSocket::new_v4()?;
        client.set_recv_buffer_size(4_096)?;
        let mut client = client.connect(listener.local_addr()?).await?;
        let (from_client, _) = listener.accept().await?;
        let (to_server, mut server) = pair().await?;
        let relay = relay(Vec::new(), Stream::Tcp(from_client), Stream::Tcp(to_server));
        // Far more than the client's socket holds.
        let answer = [5; 60_000];
        server.write_all(&answer).await?;
        server.set_zero_linger()?;
        drop(server);
        relay.await??;
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await?;
        assert!(heard == answer, "{} bytes", heard.len());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn last_words_of_a_server_reach_a_client_that_still_sends() -> Result<()> {
    within(async {
        let (client, mut server, relay) = between().await?;
        let (mut read, mut write) = client.into_split();
        // It breaks off when nobody takes it any more.
        let send = tokio::task::spawn_local(async move {
            let _ = write.write_all(&vec![1; 16 << 20]).await;
            write
        });
        let mut begun = vec![0; 100_000];
        server.read_exact(&mut begun).await?;
        server.write_all(b"shutting down").await?;
        // Not all was read, so the server's system resets the connection.
        drop(server);
        let mut heard = Vec::new();
        assert_eq!(end_of(&mut read, &mut heard).await, RESET);
        assert_eq!(heard, b"shutting down");
        drop(read);
        drop(send.await?);
        relay.await??;
        Ok(())
    })
    .await
}

/// What it has sent behind its statement does not hide its end.
#[tokio::test]
async fn a_client_that_leaves_while_its_statement_waits_for_keys_leaves_the_server_too()
-> Result<()> {
    within(async {
        let (client, from_client) = pair().await?;
        leave_while_keys_are_awaited(client, Stream::Tcp(from_client)).await?;
        let (client, from_client) = UnixStream::pair()?;
        leave_while_keys_are_awaited(client, Stream::Unix(from_client)).await
    })
    .await
}

async fn leave_while_keys_are_awaited(
    mut client: impl AsyncWrite + Unpin,
    from_client: Stream,
) -> Result<()> {
    // A store that says nothing, for longer than the test may take.
    let store = TcpListener::bind("127.0.0.1:0").await?;
    let config = Config::parse(&format!(
        "[store]\nurl = \"mysql://k@{}/k\"\nstore_ms_max = 600000\nwait_ms_max = 600000\n\
         [[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"\n\
         [[rule]]\ntable = \"elsewhere.t\"\ncolumn = \"id\"\nkey = \"segment:one\"\n",
        store.local_addr()?
    ))?;
    let keys = Keys::open(config.store.clone())?;
    let context = ListenerContext {
        sources: Arc::from([Some(keys.source(&config.rules[0].spec)?)]),
        ..ListenerContext::default()
    };
    let (to_server, mut server) = pair().await?;
    let relay = relay_of(
        |session| session,
        context,
        vec![elsewhere()?],
        from_client,
        Stream::Tcp(to_server),
    );
    let serve = tokio::task::spawn_local(async move {
        let mut heard = Vec::new();
        while let Ok(asked) = payload_of(&mut server).await {
            let answer = match asked.as_slice() {
                [0x16, b'S', ..] => packet(1, DENIED),
                [0x16, ..] => packet(1, PREPARED),
                // A statement that is closed has no answer.
                [0x19, ..] => Vec::new(),
                _ => state(),
            };
            heard.extend(asked);
            server.write_all(&answer).await?;
        }
        anyhow::Ok(heard)
    });
    let insert = b"\x03INSERT INTO elsewhere.t (a) VALUES (1)";
    client.write_all(&packet(0, insert)).await?;
    while keys.stats().iter().all(|of| of.waits == 0) {
        tokio::task::yield_now().await;
    }
    client.write_all(QUIT).await?;
    drop(client);
    relay.await??;
    let heard = serve.await??;
    let statement = b"VALUES (1";
    assert!(!heard.windows(statement.len()).any(|part| part == statement));
    Ok(())
}
