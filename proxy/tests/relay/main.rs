//! The relay between a client and a server that are played by the test.

mod ends;
mod new_tables;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use keywright_proxy::connection::relay::Relay;
use keywright_proxy::connection::span::ConnectionSpan;
use keywright_proxy::connection::stream::Stream;
use keywright_proxy::in_force::context::ListenerContext;
use keywright_proxy::metrics::Counters;
use keywright_rewrite::{Flavour, KeyForm, Server};
use keywright_session::{Limits, Pattern, Rule, Rules, Session, SessionFacts};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
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
/// Commands that the session itself answers, and so many more than sockets and buffers hold.
const REFUSED: usize = 500_000;

async fn pair() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let near = TcpStream::connect(listener.local_addr()?).await?;
    let (far, _) = listener.accept().await?;
    Ok((near, far))
}

/// The client's socket, the server's, and the relay between them, on a listener without rules.
async fn between() -> Result<(TcpStream, TcpStream, JoinHandle<std::io::Result<()>>)> {
    let (client, from_client) = pair().await?;
    let (to_server, server) = pair().await?;
    let relay = relay(Vec::new(), Stream::Tcp(from_client), Stream::Tcp(to_server));
    Ok((client, server, relay))
}

/// A rule for a table that nobody uses, so that commands are followed.
fn elsewhere() -> Result<Rule> {
    Ok(Rule {
        repeatable: true,
        is_steady: true,
        is_signed: true,
        ..Rule::new(Pattern::parse("elsewhere.t")?, "id", KeyForm::Integer)
    })
}

fn facts() -> SessionFacts {
    SessionFacts {
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
    }
}

fn relay(
    rules: Vec<Rule>,
    from_client: Stream,
    to_server: Stream,
) -> JoinHandle<std::io::Result<()>> {
    let context = ListenerContext::default();
    relay_of(|session| session, context, rules, from_client, to_server)
}

/// The same, of a session that is made another, and with context of its own.
fn relay_of(
    made: impl FnOnce(Session) -> Session,
    context: ListenerContext,
    rules: Vec<Rule>,
    from_client: Stream,
    to_server: Stream,
) -> JoinHandle<std::io::Result<()>> {
    let session = made(Session::new(Arc::new(Rules::new(rules, false)), facts()));
    tokio::task::spawn_local(async move {
        let (keep, stopping) = watch::channel(false);
        let relay = Relay::new(
            from_client,
            to_server,
            session,
            facts(),
            context,
            stopping,
            ConnectionSpan::new(1),
        );
        let outcome = relay.run().await;
        drop(keep);
        outcome
    })
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&[len[0], len[1], len[2], sequence], payload].concat()
}

/// Reads until the connection ends, and says how.
async fn end_of(from: &mut (impl AsyncRead + Unpin), heard: &mut Vec<u8>) -> Option<ErrorKind> {
    from.read_to_end(heard)
        .await
        .err()
        .map(|error| error.kind())
}

async fn within(test: impl Future<Output = Result<()>>) -> Result<()> {
    timeout(WAIT_MAX, LocalSet::new().run_until(test))
        .await
        .context("the relay stands still")?
}

#[tokio::test]
async fn pipelined_commands_are_answered() -> Result<()> {
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
async fn a_client_that_does_not_read_is_not_answered_into_memory() -> Result<()> {
    within(async {
        let (client, from_client) = UnixStream::pair()?;
        let (to_server, server) = pair().await?;
        let relay = relay_of(
            Session::must_see_change_user,
            ListenerContext::default(),
            Vec::new(),
            Stream::Unix(from_client),
            Stream::Tcp(to_server),
        );
        // COM_BINLOG_DUMP, which the session refuses by itself.
        let command = packet(0, b"\x12");
        let commands = command.repeat(REFUSED);
        let (mut read, mut write) = client.into_split();
        let mut send = tokio::task::spawn_local(async move {
            write.write_all(&commands).await?;
            anyhow::Ok(write)
        });
        let early = timeout(Duration::from_millis(300), &mut send).await;
        assert!(early.is_err(), "all commands were taken, and no answer");
        for _ in 0..REFUSED {
            let mut header = [0; 4];
            read.read_exact(&mut header).await?;
            let [len, 0, 0, 1] = header else {
                panic!("{header:?}");
            };
            let mut error = vec![0; usize::from(len)];
            read.read_exact(&mut error).await?;
            assert!(error.starts_with(b"\xFF\xD3\x04#42000"), "{error:?}");
        }
        drop((read, send.await??, server));
        relay.await??;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_user_is_changed_only_when_earlier_answers_are_out() -> Result<()> {
    within(async {
        // More than such a socket holds, and less than that and the relay's buffer.
        let answer = packet(1, &vec![b'x'; 300_000]);
        let (mut client, from_client) = UnixStream::pair()?;
        let (to_server, mut server) = pair().await?;
        let relay = relay(
            vec![elsewhere()?],
            Stream::Unix(from_client),
            Stream::Tcp(to_server),
        );
        let change = packet(0, b"\x11root\0\0shop\0\x2d\0");
        // COM_STATISTICS, whose answer may be any text.
        client.write_all(&packet(0, b"\x09")).await?;
        client.write_all(&change).await?;
        let mut command = [0; 5];
        server.read_exact(&mut command).await?;
        server.write_all(&answer).await?;
        let mut heard = vec![0; change.len()];
        let early = timeout(Duration::from_millis(300), server.read_exact(&mut heard)).await;
        assert!(early.is_err(), "the answer is still under way");
        let mut answered = vec![0; answer.len()];
        client.read_exact(&mut answered).await?;
        assert!(answered == answer, "the answer is not as it was");
        server.read_exact(&mut heard).await?;
        assert_eq!(heard, change);
        let ok = packet(1, b"\0\0\0\x02\0\0\0");
        server.write_all(&ok).await?;
        let mut answered = vec![0; ok.len()];
        client.read_exact(&mut answered).await?;
        assert_eq!(answered, ok);
        drop((client, server));
        relay.await??;
        Ok(())
    })
    .await
}

/// What the session asks of the server's state, answered: sql_mode, character set, database, increment, insert_id.
fn state() -> Vec<u8> {
    let eof = |number| packet(number, &[0xFE, 0, 0, 2, 0]);
    let mut answer = packet(1, &[6]);
    for number in 2..8 {
        answer.extend(packet(number, b"\x03def, and more"));
    }
    answer.extend(eof(8));
    answer.extend(packet(9, b"\0\x07utf8mb4\x01d\x011\x010\x09uuid=here"));
    answer.extend(eof(10));
    answer
}

#[tokio::test]
async fn a_statement_is_counted_before_what_ends_the_connection() -> Result<()> {
    within(async {
        let (mut client, from_client) = pair().await?;
        let (to_server, mut server) = pair().await?;
        let counters = Counters::default();
        let context = ListenerContext {
            tally: Arc::new(counters.tally(["elsewhere"].into_iter())),
            ..ListenerContext::default()
        };
        let relay = relay_of(
            |session| session,
            context,
            vec![elsewhere()?],
            Stream::Tcp(from_client),
            Stream::Tcp(to_server),
        );
        // The first is refused, the second is no command.
        let insert = b"\x03INSERT INTO elsewhere.t (a) SELECT f(a) FROM u";
        client
            .write_all(&[packet(0, insert), packet(0, b"")].concat())
            .await?;
        let mut header = [0; 4];
        server.read_exact(&mut header).await?;
        server
            .read_exact(&mut vec![
                0;
                usize::from(u16::from_le_bytes([
                    header[0], header[1]
                ]))
            ])
            .await?;
        server.write_all(&state()).await?;
        let mut heard = Vec::new();
        end_of(&mut client, &mut heard).await;
        let output = String::from_utf8_lossy(&heard);
        assert!(output.contains("carried out twice"), "{output}");
        assert!(output.contains("out of order"), "{output}");
        let figures = counters.rules();
        let refused = figures.iter().find(|of| of.name == "elsewhere");
        assert_eq!(refused.map(|of| of.refused), Some(1));
        drop((client, server));
        relay.await??;
        Ok(())
    })
    .await
}
