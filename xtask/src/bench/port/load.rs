//! Clients that ask for ids as fast as they are answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use keywright_testkit::WAIT_MAX;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::bench::cores::Cores;

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
    /// Connections, which one thread serves.
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
    let asked = thread::scope(|scope| {
        let clients = scope.spawn(|| {
            match load.clients {
                // The two take turns.
                1 => cores.enter_first()?,
                _ => cores.enter_others()?,
            }
            ask(port, load, &over)
        });
        thread::sleep(Duration::from_millis(run_ms));
        over.store(true, Ordering::Relaxed);
        clients.join()
    });
    let Ok(asked) = asked else {
        bail!("the clients of the benchmark panicked");
    };
    let mut latencies_ns = asked?;
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
fn ask(port: u16, load: Load, over: &AtomicBool) -> Result<Vec<u64>> {
    let mut latencies_ns = Vec::new();
    let mut bytes = vec![0; 64 << 10];
    let mut clients = (0..load.clients)
        .map(|_| Client::connect(port, load.ask))
        .collect::<Result<Vec<_>>>()?;
    // One that is alone waits in its read.
    if let [client] = clients.as_mut_slice() {
        while !over.load(Ordering::Relaxed) {
            latencies_ns.extend(client.read(&mut bytes)?);
        }
        return Ok(latencies_ns);
    }
    while !over.load(Ordering::Relaxed) {
        for at in with_answers(&clients)? {
            if let Some(client) = clients.get_mut(at) {
                latencies_ns.extend(client.read(&mut bytes)?);
            }
        }
    }
    Ok(latencies_ns)
}

/// Those whose connections have something to read; waits for the first.
fn with_answers(clients: &[Client]) -> Result<Vec<usize>> {
    let wait_ms = PollTimeout::try_from(WAIT_MAX)?;
    let mut fds: Vec<PollFd<'_>> = clients
        .iter()
        .map(|client| PollFd::new(client.stream.as_fd(), PollFlags::POLLIN))
        .collect();
    if poll(&mut fds, wait_ms)? == 0 {
        bail!("no answer within {} s", WAIT_MAX.as_secs());
    }
    let fds = fds.iter().enumerate();
    let ready = fds.filter(|(_, fd)| fd.any().unwrap_or(true));
    Ok(ready.map(|(at, _)| at).collect())
}

/// A connection that has asked.
struct Client {
    stream: TcpStream,
    ask: Ask,
    /// All requests of a pipeline.
    requests: String,
    /// Answers that are still to come.
    left: usize,
    is_first: bool,
    asked: Instant,
}

impl Client {
    fn connect(port: u16, ask: Ask) -> Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("connecting")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        let (request, ahead) = ask.requests();
        let mut client = Client {
            stream,
            ask,
            requests: request.repeat(ahead),
            left: 0,
            is_first: true,
            asked: Instant::now(),
        };
        client.ask()?;
        Ok(client)
    }

    fn ask(&mut self) -> Result<()> {
        (_, self.left) = self.ask.requests();
        self.is_first = true;
        self.asked = Instant::now();
        Ok(self.stream.write_all(self.requests.as_bytes())?)
    }

    /// Reads what is there. How long the answers took if they are whole now, nanoseconds; then it asks again.
    fn read(&mut self, bytes: &mut [u8]) -> Result<Option<u64>> {
        let (head, last) = self.ask.answer();
        let read = self.stream.read(bytes)?;
        let read = bytes.get(..read).unwrap_or_default();
        if read.is_empty() || (self.is_first && !read.starts_with(head)) {
            bail!("{}: {}", self.ask.name(), read.escape_ascii());
        }
        self.is_first = false;
        let ends = read.iter().filter(|byte| **byte == last).count();
        self.left = self.left.saturating_sub(ends);
        if self.left > 0 {
            return Ok(None);
        }
        let took_ns = self.asked.elapsed().as_nanos();
        self.ask()?;
        Ok(Some(u64::try_from(took_ns).unwrap_or(u64::MAX)))
    }
}
