//! The relay between a client and a server that are played by the test, on a listener without rules.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use keywright_proxy::relay::{Means, Relay};
use keywright_proxy::stream::Stream;
use keywright_rewrite::{Flavour, Server};
use keywright_session::{Limits, Rules, Session, SessionFacts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::timeout;

/// How long a test may take.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// What a command and its answer are in these tests, bytes.
const COMMAND_BYTES: usize = 1 << 10;
const ANSWER_BYTES: usize = 16 << 10;
/// Commands that are sent before the first answer is read: far more than sockets and buffers hold.
const COMMANDS: usize = 4_000;

async fn pair() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let near = TcpStream::connect(listener.local_addr()?).await?;
    let (far, _) = listener.accept().await?;
    Ok((near, far))
}

/// The client's socket, the server's, and the relay between them.
async fn between() -> Result<(TcpStream, TcpStream, JoinHandle<std::io::Result<()>>)> {
    let (client, from_client) = pair().await?;
    let (to_server, server) = pair().await?;
    let facts = SessionFacts {
        server: Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        },
        capabilities: 0,
        collation: 45,
        user: Vec::new(),
        database: None,
        status: 2,
        limits: Limits::default(),
    };
    let session = Session::new(Arc::new(Rules::new(Vec::new(), false)), facts.clone());
    let relay = tokio::task::spawn_local(async move {
        let (keep, stopping) = watch::channel(false);
        let mut relay = Relay::new(
            Stream::Tcp(from_client),
            Stream::Tcp(to_server),
            session,
            facts,
            Means::default(),
            stopping,
        );
        let outcome = relay.run().await;
        drop(keep);
        outcome
    });
    Ok((client, server, relay))
}

async fn within(test: impl Future<Output = Result<()>>) -> Result<()> {
    timeout(WAIT_MAX, LocalSet::new().run_until(test))
        .await
        .context("the relay stands still")?
}

#[tokio::test]
async fn commands_sent_ahead_are_answered() -> Result<()> {
    within(async {
        let (client, mut server, relay) = between().await?;
        let serve = tokio::task::spawn_local(async move {
            let mut command = vec![0; COMMAND_BYTES];
            let answer = vec![7; ANSWER_BYTES];
            for _ in 0..COMMANDS {
                server.read_exact(&mut command).await?;
                server.write_all(&answer).await?;
            }
            anyhow::Ok(())
        });
        let (mut read, mut write) = client.into_split();
        let send = tokio::task::spawn_local(async move {
            write.write_all(&vec![1; COMMANDS * COMMAND_BYTES]).await?;
            anyhow::Ok(write)
        });
        let mut answers = vec![0; COMMANDS * ANSWER_BYTES];
        read.read_exact(&mut answers).await?;
        assert!(answers.iter().all(|byte| *byte == 7));
        serve.await??;
        drop(send.await??);
        relay.await??;
        Ok(())
    })
    .await
}

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
