//! Clients that ask for ids as fast as they are answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use keywright_testkit::WAIT_MAX;

use super::cores::Cores;

/// Requests of a pipeline.
const PIPELINE: usize = 16;

/// What clients ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ask {
    Incr,
    IncrPipeline,
    Http,
    HttpPipeline,
    Http100,
}

/// How many of them ask what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Load {
    pub(super) ask: Ask,
    /// Connections, a thread each.
    pub(super) clients: usize,
}

/// What a run showed.
pub(super) struct Run {
    pub(super) ids_per_s: f64,
    /// How long each answer took, or each pipeline, nanoseconds, shortest first.
    latencies_ns: Vec<u64>,
}

impl Run {
    /// The smallest latency that this part of them does not exceed, microseconds.
    pub(super) fn percentile_us(&self, part: f64) -> f64 {
        let rank = (self.latencies_ns.len() as f64 * part).ceil() as usize;
        let figure = self.latencies_ns.get(rank.saturating_sub(1));
        figure.map_or(f64::NAN, |&ns| ns as f64 / 1e3)
    }
}

impl Load {
    pub(super) const fn of(ask: Ask, clients: usize) -> Load {
        Load { ask, clients }
    }

    pub(super) fn name(self) -> String {
        let Load { ask, clients } = self;
        match clients {
            1 => format!("{}, 1 client", ask.name()),
            more => format!("{}, {more} clients", ask.name()),
        }
    }
}

impl Ask {
    fn name(self) -> &'static str {
        match self {
            Ask::Incr => "INCR",
            Ask::IncrPipeline => "INCR, 16 in a pipeline",
            Ask::Http => "POST /v1/keys/id",
            Ask::HttpPipeline => "POST /v1/keys/id, 16 in a pipeline",
            Ask::Http100 => "POST /v1/keys/id?count=100",
        }
    }

    pub(super) fn is_http(self) -> bool {
        match self {
            Ask::Incr | Ask::IncrPipeline => false,
            Ask::Http | Ask::HttpPipeline | Ask::Http100 => true,
        }
    }

    /// One request, and how many go out together.
    fn requests(self) -> (&'static str, usize) {
        const INCR: &str = "*2\r\n$4\r\nINCR\r\n$2\r\nid\r\n";
        const POST: &str = "POST /v1/keys/id HTTP/1.1\r\nHost: localhost\r\n\r\n";
        match self {
            Ask::Incr => (INCR, 1),
            Ask::IncrPipeline => (INCR, PIPELINE),
            Ask::Http => (POST, 1),
            Ask::HttpPipeline => (POST, PIPELINE),
            Ask::Http100 => (
                "POST /v1/keys/id?count=100 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                1,
            ),
        }
    }

    /// Ids of one answer.
    fn ids(self) -> usize {
        match self {
            Ask::Incr | Ask::IncrPipeline | Ask::Http | Ask::HttpPipeline => 1,
            Ask::Http100 => 100,
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

/// Has clients ask for so long.
///
/// # Errors
/// A server breaks a connection off, or refuses; the kernel gives clients no core.
pub(super) fn run(port: u16, load: Load, run_ms: u64, cores: Cores) -> Result<Run> {
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let mut latencies_ns = thread::scope(|scope| {
        let client = || {
            cores.enter_as_client(load)?;
            client(port, load.ask, &over)
        };
        let clients = (0..load.clients).map(|_| scope.spawn(client));
        let clients: Vec<_> = clients.collect();
        thread::sleep(Duration::from_millis(run_ms));
        over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for client in clients {
            match client.join() {
                Ok(latencies_ns) => all.extend(latencies_ns?),
                Err(_) => bail!("a client of the benchmark panicked"),
            }
        }
        Ok(all)
    })?;
    let elapsed = began.elapsed();
    latencies_ns.sort_unstable();
    let (_, ahead) = load.ask.requests();
    let ids = latencies_ns
        .len()
        .saturating_mul(ahead)
        .saturating_mul(load.ask.ids());
    Ok(Run {
        ids_per_s: ids as f64 / elapsed.as_secs_f64(),
        latencies_ns,
    })
}

/// Asks until it is over; how long each answer took, or each pipeline.
fn client(port: u16, ask: Ask, over: &AtomicBool) -> Result<Vec<u64>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).context("connecting")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    let (request, ahead) = ask.requests();
    let (head, last) = ask.answer();
    let requests = request.repeat(ahead);
    let mut bytes = vec![0; 64 << 10];
    let mut latencies_ns = Vec::new();
    let mut asked = Instant::now();
    while !over.load(Ordering::Relaxed) {
        stream.write_all(requests.as_bytes())?;
        let mut left = ahead;
        let mut is_first = true;
        while left > 0 {
            let read = stream.read(&mut bytes)?;
            let read = bytes.get(..read).unwrap_or_default();
            if read.is_empty() || (is_first && !read.starts_with(head)) {
                bail!("{}: {}", ask.name(), read.escape_ascii());
            }
            is_first = false;
            let ends = read.iter().filter(|byte| **byte == last).count();
            left = left.saturating_sub(ends);
        }
        let now = Instant::now();
        let took_ns = now.duration_since(asked).as_nanos();
        latencies_ns.push(u64::try_from(took_ns).unwrap_or(u64::MAX));
        asked = now;
    }
    Ok(latencies_ns)
}
