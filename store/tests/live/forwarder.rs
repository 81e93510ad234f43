//! A line to the server that fails: it loses answers, or stops.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keywright_testkit::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards to a server, and cuts the connection when the server's answer to a COMMIT comes.
pub struct Forwarder {
    pub port: u16,
    /// Every so many COMMITs one answer is lost; 0: none.
    pub every: Arc<AtomicU64>,
    /// Answers lost so far.
    pub lost: Arc<AtomicU64>,
    /// Nothing is forwarded, nothing is closed.
    pub stalled: Arc<AtomicBool>,
    /// A connection on which the client sends this goes silent before it is forwarded, for as long as this stays set; the
    /// server sees no end of it, as when the client's host is lost.
    pub silent_at: Arc<Mutex<Option<&'static str>>>,
    /// Connections that went silent so far.
    pub silent: Arc<AtomicU64>,
}

impl Forwarder {
    pub async fn start(server_port: u16) -> Result<Forwarder> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let forwarder = Forwarder {
            port: listener.local_addr()?.port(),
            every: Arc::new(AtomicU64::new(0)),
            lost: Arc::new(AtomicU64::new(0)),
            stalled: Arc::new(AtomicBool::new(false)),
            silent_at: Arc::default(),
            silent: Arc::default(),
        };
        let line = Line {
            server_port,
            every: Arc::clone(&forwarder.every),
            lost: Arc::clone(&forwarder.lost),
            stalled: Arc::clone(&forwarder.stalled),
            silent_at: Arc::clone(&forwarder.silent_at),
            silent: Arc::clone(&forwarder.silent),
            commits: Arc::default(),
        };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let line = line.clone();
                // A broken connection is what the test is about.
                tokio::spawn(async move { line.forward(client).await.unwrap_or_default() });
            }
        });
        Ok(forwarder)
    }

    /// Sets where connections go silent; `None` lets those go on that have.
    pub fn go_silent_at(&self, text: Option<&'static str>) {
        *self
            .silent_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// Whether a packet says nothing else: COM_QUERY of MySQL behind 4 bytes of header, or how PostgreSQL is told; or whether it writes to etcd. How many bytes
/// the answer has at least: frames of HTTP/2 that are none are shorter.
fn answer_bytes_min(packet: &[u8]) -> Option<usize> {
    const RECORD: &[u8] = b"\"raft_term\"";
    if packet.get(4..) == Some(b"\x03COMMIT") || packet.ends_with(b"; COMMIT\0") {
        return Some(1);
    }
    let writes = packet.windows(RECORD.len()).any(|part| part == RECORD);
    writes.then_some(40)
}

#[derive(Clone)]
struct Line {
    server_port: u16,
    every: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
    stalled: Arc<AtomicBool>,
    silent_at: Arc<Mutex<Option<&'static str>>>,
    silent: Arc<AtomicU64>,
    commits: Arc<AtomicU64>,
}

impl Line {
    async fn forward(&self, mut client: TcpStream) -> std::io::Result<()> {
        let mut server = TcpStream::connect(("127.0.0.1", self.server_port)).await?;
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        let mut lose = None;
        loop {
            tokio::select! {
                read = client.read(&mut up) => {
                    let read = read?;
                    if read == 0 {
                        return Ok(());
                    }
                    self.pass().await;
                    self.keep_silent(&up[..read]).await;
                    let every = self.every.load(Ordering::Relaxed);
                    if let Some(bytes_min) = answer_bytes_min(&up[..read]).filter(|_| every > 0) {
                        let is_its = self.commits.fetch_add(1, Ordering::Relaxed) % every == every - 1;
                        lose = is_its.then_some(bytes_min);
                    }
                    server.write_all(&up[..read]).await?;
                }
                read = server.read(&mut down) => {
                    let read = read?;
                    if read == 0 {
                        return Ok(());
                    }
                    if lose.is_some_and(|bytes_min| read >= bytes_min) {
                        self.lost.fetch_add(1, Ordering::Relaxed);
                        return Ok(());
                    }
                    self.pass().await;
                    client.write_all(&down[..read]).await?;
                }
            }
        }
    }

    async fn pass(&self) {
        while self.stalled.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn keep_silent(&self, sent: &[u8]) {
        let concerns = || {
            let text = *self
                .silent_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            text.is_some_and(|text| sent.windows(text.len()).any(|part| part == text.as_bytes()))
        };
        if concerns() {
            self.silent.fetch_add(1, Ordering::Relaxed);
        }
        while concerns() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
