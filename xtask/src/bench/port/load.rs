//! Clients that ask for ids as fast as they are answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use keywright_testkit::WAIT_MAX;

/// Connections, a thread each.
pub(super) const CLIENTS: usize = 20;
/// Requests of a pipeline.
const PIPELINE: usize = 16;

/// What each of them asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Load {
    Incr,
    IncrPipeline,
    Http,
    HttpPipeline,
    Http100,
}

impl Load {
    pub(super) fn name(self) -> &'static str {
        match self {
            Load::Incr => "INCR",
            Load::IncrPipeline => "INCR, 16 in a pipeline",
            Load::Http => "POST /v1/keys/id",
            Load::HttpPipeline => "POST /v1/keys/id, 16 in a pipeline",
            Load::Http100 => "POST /v1/keys/id?count=100",
        }
    }

    pub(super) fn is_http(self) -> bool {
        match self {
            Load::Incr | Load::IncrPipeline => false,
            Load::Http | Load::HttpPipeline | Load::Http100 => true,
        }
    }

    /// One request, and how many go out together.
    fn requests(self) -> (&'static str, usize) {
        const INCR: &str = "*2\r\n$4\r\nINCR\r\n$2\r\nid\r\n";
        const POST: &str = "POST /v1/keys/id HTTP/1.1\r\nHost: localhost\r\n\r\n";
        match self {
            Load::Incr => (INCR, 1),
            Load::IncrPipeline => (INCR, PIPELINE),
            Load::Http => (POST, 1),
            Load::HttpPipeline => (POST, PIPELINE),
            Load::Http100 => (
                "POST /v1/keys/id?count=100 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                1,
            ),
        }
    }

    /// Ids of one answer.
    fn ids(self) -> usize {
        match self {
            Load::Incr | Load::IncrPipeline | Load::Http | Load::HttpPipeline => 1,
            Load::Http100 => 100,
        }
    }

    /// What each answer begins with if it is good, and the byte that it alone ends with.
    fn answer(self) -> (&'static [u8], u8) {
        match self.is_http() {
            true => (b"HTTP/1.1 200 OK\r\n", b'}'),
            false => (b":", b'\n'),
        }
    }
}

/// Ids per second.
///
/// # Errors
/// A server breaks a connection off, or refuses.
pub(super) fn run(port: u16, load: Load, run_ms: u64) -> Result<f64> {
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let answers = thread::scope(|scope| {
        let clients = (0..CLIENTS).map(|_| scope.spawn(|| client(port, load, &over)));
        let clients: Vec<_> = clients.collect();
        thread::sleep(Duration::from_millis(run_ms));
        over.store(true, Ordering::Relaxed);
        let counts = clients.into_iter().map(|client| match client.join() {
            Ok(count) => count,
            Err(_) => bail!("a client of the benchmark panicked"),
        });
        counts.sum::<Result<usize>>()
    })?;
    let ids = answers.saturating_mul(load.ids());
    Ok(ids as f64 / began.elapsed().as_secs_f64())
}

/// Asks until it is over; how many answers there were.
fn client(port: u16, load: Load, over: &AtomicBool) -> Result<usize> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).context("connecting")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    let (request, ahead) = load.requests();
    let (head, last) = load.answer();
    let requests = request.repeat(ahead);
    let mut bytes = vec![0; 64 << 10];
    let mut answers = 0_usize;
    while !over.load(Ordering::Relaxed) {
        stream.write_all(requests.as_bytes())?;
        let mut left = ahead;
        let mut is_first = true;
        while left > 0 {
            let read = stream.read(&mut bytes)?;
            let read = bytes.get(..read).unwrap_or_default();
            if read.is_empty() || (is_first && !read.starts_with(head)) {
                bail!("{}: {}", load.name(), read.escape_ascii());
            }
            is_first = false;
            let ends = read.iter().filter(|byte| **byte == last).count();
            left = left.saturating_sub(ends);
        }
        answers = answers.saturating_add(ahead);
    }
    Ok(answers)
}
