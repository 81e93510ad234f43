//! Nobody gets an id below one that was read before, whatever becomes of programs and of their way to the store.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use keywright_testkit::etcd::EtcdCluster;
use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    FakeClock, Flavour, ProxyConfig, Relay, Result, Upstream, WAIT_MAX, make_store, scratch_dir,
    wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Nodes, TTL_MS, moved_to};

const PROGRAMS: usize = 3;
const CLIENTS: usize = 16;
/// A wall clock is set within so many seconds.
const STEP_S_MAX: i64 = 7_200;

/// What clients have seen of a tag.
pub(super) struct Seen {
    tag: &'static str,
    highest: AtomicI64,
    replies: AtomicUsize,
    inversions: AtomicUsize,
    is_over: AtomicBool,
}

impl Seen {
    pub(super) fn of(tag: &'static str) -> Seen {
        Seen {
            tag,
            highest: AtomicI64::new(0),
            replies: AtomicUsize::new(0),
            inversions: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn tag(&self) -> &'static str {
        self.tag
    }

    pub(super) fn highest(&self) -> i64 {
        self.highest.load(Ordering::SeqCst)
    }

    pub(super) fn inversions(&self) -> usize {
        self.inversions.load(Ordering::SeqCst)
    }

    /// Clients take no more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn wait_for(&self, replies: usize) -> Result<()> {
        let before = self.replies.load(Ordering::Relaxed);
        wait_until("keys", WAIT_MAX, || {
            Ok(self.replies.load(Ordering::Relaxed) > before + replies)
        })
    }
}

/// Relays to a server, and the ways through them.
fn ways(port: u16, url: &str) -> Result<(Vec<Relay>, Vec<ProxyConfig>)> {
    let relays = (0..PROGRAMS).map(|_| Relay::to(port));
    let relays: Vec<Relay> = relays.collect::<Result<_>>()?;
    let ways = relays.iter().map(|relay| ProxyConfig {
        store_url: url.replace(&format!(":{port}/"), &format!(":{}/", relay.port())),
        ..ProxyConfig::default()
    });
    let ways = ways.collect();
    Ok((relays, ways))
}

/// Wall clocks are set while programs run: nothing goes by them.
#[test]
fn nobody_gets_an_id_below_one_that_was_read_before() -> Result<()> {
    // A file stays locked while a program is stopped that writes to it.
    let server = Upstream::start_with(Flavour::MariaDb, &["--innodb-flush-log-at-trx-commit=1"])?;
    let url = make_store(&server, "keywright", &[])?;
    let (relays, mut ways) = ways(server.port(), &url)?;
    let scratch = scratch_dir()?;
    let mut clocks = Vec::new();
    for (at, way) in ways.iter_mut().enumerate() {
        let dir = scratch.path().join(format!("clock {at}"));
        std::fs::create_dir(&dir)?;
        let clock = FakeClock::of_program(&dir)?;
        way.environment = clock.environment()?;
        clocks.push(clock);
    }
    let nodes = Nodes::start_with("--monotonic", "", &ways, scratch)?;
    no_inversion(nodes, &relays, &clocks)
}

/// The same of a strict tag.
#[test]
fn nobody_gets_a_strict_id_below_one_that_was_read_before() -> Result<()> {
    let cluster = EtcdCluster::start(1)?;
    let url = format!("etcd://127.0.0.1:{}/keywright", cluster.port(0));
    let (relays, ways) = ways(cluster.port(0), &url)?;
    let nodes = Nodes::start_with("--strict", "", &ways, scratch_dir()?)?;
    no_inversion(nodes, &relays, &[])
}

/// Three programs, of which the active one is killed, stopped for longer than its lease, told to end, and cut off from the store; clients that go
/// where they are sent; and none gets an id below one that anybody had read before it asked.
fn no_inversion(mut nodes: Nodes, relays: &[Relay], clocks: &[FakeClock]) -> Result<()> {
    let ports = nodes.ports()?;
    let rounds = std::env::var("KEYWRIGHT_KILLS").ok();
    let rounds: usize = rounds.and_then(|text| text.parse().ok()).unwrap_or(8);
    let seen = Seen::of("orders");
    let happened = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (seen, ports) = (&seen, &ports);
            scope.spawn(move || follow(ports, client, seen));
        }
        let mut rng = fastrand::Rng::with_seed(1);
        let happened = (0..rounds).try_for_each(|round| {
            seen.wait_for(1_000)?;
            for clock in clocks {
                clock.step_to(rng.i64(-STEP_S_MAX..STEP_S_MAX))?;
            }
            happen(round, &mut nodes, relays, &seen)
        });
        let last = seen.wait_for(1_000);
        seen.end();
        happened.and(last)
    });
    happened?;
    let replies = seen.replies.load(Ordering::Relaxed);
    println!("{replies} replies, {rounds} times something happened to the active one");
    assert_eq!(seen.inversions(), 0);
    Ok(())
}

/// Something that nobody wants happens to the active program.
fn happen(round: usize, nodes: &mut Nodes, relays: &[Relay], seen: &Seen) -> Result<()> {
    let active = nodes.active()?;
    let others_issue = || {
        let before = seen.highest.load(Ordering::Relaxed);
        wait_until("another", WAIT_MAX, || {
            Ok(seen.highest.load(Ordering::Relaxed) > before + 100)
        })
    };
    let node = &mut nodes.nodes[active];
    let begun = Instant::now();
    match round % 4 {
        0 => {
            node.kill9()?;
            others_issue()?;
            println!("another gives keys {:?} after a kill", begun.elapsed());
            node.restart()
        }
        1 => {
            let pid = Pid::from_raw(node.pid()?.try_into()?);
            kill(pid, Signal::SIGSTOP)?;
            let another = others_issue();
            // It finds requests that came meanwhile.
            kill(pid, Signal::SIGCONT)?;
            another
        }
        2 => {
            node.begin_stop()?;
            ensure!(node.wait()?.success(), "{}", node.log());
            node.restart()
        }
        _ => {
            relays[active].cut();
            // It gives keys while it may, which others do only after that.
            let another = wait_until("another", WAIT_MAX, || {
                let mut other =
                    RespClient::connect(nodes.nodes[(active + 1) % PROGRAMS].key_port()?)?;
                let issued = other.say("GET orders")?;
                let own = nodes.nodes[active].key_port()?;
                Ok(match moved_to(&issued)? {
                    Some(port) => port != own,
                    None => matches!(issued, RespValue::Bulk(_)),
                })
            });
            // What it has sent meanwhile comes late.
            relays[active].mend();
            another.and_then(|()| others_issue())
        }
    }
}

/// One client, which goes where it is sent.
pub(super) fn follow(ports: &[u16], client: usize, seen: &Seen) {
    let mut at = client % ports.len();
    while !seen.is_over.load(Ordering::Relaxed) {
        let ended = take_at(ports[at], client, seen);
        // Where it was sent, or the next one.
        let sent = ended.ok().flatten();
        let sent = sent.and_then(|port| ports.iter().position(|its| *its == port));
        at = sent.unwrap_or((at + 1) % ports.len());
    }
}

/// Takes keys until the connection ends, or somebody else is to be asked.
fn take_at(port: u16, client: usize, seen: &Seen) -> Result<Option<u16>> {
    let mut wire = RespClient::connect(port)?;
    // Whoever is stopped answers much later, and others are asked meanwhile.
    wire.stream().set_read_timeout(Some(Duration::from_millis(
        TTL_MS * (1 + client as u64 % 3),
    )))?;
    let pipelined = client % 3 * 4 + 1;
    let request = RespClient::written(&["INCR", seen.tag]).repeat(pipelined);
    while !seen.is_over.load(Ordering::Relaxed) {
        let floor = seen.highest.load(Ordering::SeqCst);
        wire.send(&request)?;
        let mut moved = None;
        for _ in 0..pipelined {
            match wire.read()? {
                RespValue::Integer(id) => {
                    ensure!(moved.is_none(), "served behind MOVED");
                    if id <= floor {
                        eprintln!(
                            "{id} of {} was given, and {floor} had been read before",
                            seen.tag
                        );
                        seen.inversions.fetch_add(1, Ordering::Relaxed);
                    }
                    seen.highest.fetch_max(id, Ordering::SeqCst);
                    seen.replies.fetch_add(1, Ordering::Relaxed);
                }
                other => moved = Some(moved_to(&other)?),
            }
        }
        if let Some(moved) = moved {
            return Ok(moved);
        }
    }
    Ok(None)
}
