//! Ordered tags: one program gives their keys, the others send clients to it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use keywright_testkit::recipes::python_with_redis;
use keywright_testkit::redis::{RedisTools, RespClient, RespValue};
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::clients::said;
use super::{PASSWORD, bulk, client_as, ok};

const KEYS: &str = "keys = { orders = \"segment:orders\", more = \"segment:more\", plain = \"segment:plain\", flakes = \"snowflake\" }\n";
/// A slow machine keeps its lease.
const TTL_MS: u64 = 1_000;
/// Where `orders` is.
const SLOT: u16 = 105;
const CLIENTS: usize = 6;

/// Programs with one store, each with one listener that gives keys of ordered tags.
struct Nodes {
    nodes: Vec<ProxyProcess>,
    config: ProxyConfig,
    _scratch: TempDir,
}

impl Nodes {
    /// With a store in a file.
    fn start(count: usize, lines: &str) -> Result<Nodes> {
        let scratch = TempDir::new()?;
        let file = scratch.path().join("store.db");
        let config = ProxyConfig::key_port(&file, "");
        Nodes::start_with(count, lines, config, scratch)
    }

    fn start_with(
        count: usize,
        lines: &str,
        config: ProxyConfig,
        scratch: TempDir,
    ) -> Result<Nodes> {
        let lines = format!(
            "{KEYS}cluster_address = \"127.0.0.1:$PORT\"\norder_ttl_ms = {TTL_MS}\n{lines}"
        );
        let config = ProxyConfig {
            key_ports: vec![lines],
            http_ports: vec![KEYS.to_owned()],
            ..config
        };
        let made = ProxyProcess::said(
            &config,
            &["init", "--monotonic", "orders", "--monotonic", "more"],
        )?;
        assert_has(&made, &["created tag \"orders\""]);
        let nodes = (0..count).map(|_| ProxyProcess::start(config.clone()));
        Ok(Nodes {
            nodes: nodes.collect::<Result<_>>()?,
            config,
            _scratch: scratch,
        })
    }

    fn ports(&self) -> Result<Vec<u16>> {
        self.nodes.iter().map(ProxyProcess::key_port).collect()
    }

    /// The place of the one that gives keys, once the others say so, too.
    fn active(&self) -> Result<usize> {
        let ports = self.ports()?;
        let mut active = None;
        wait_until("one that is active", WAIT_MAX, || {
            let mut found = Vec::new();
            for port in &ports {
                let answer = RespClient::connect(*port)?.say("GET orders")?;
                found.push(moved_to(&answer)?.unwrap_or(*port));
            }
            active = ports.iter().position(|port| *port == found[0]);
            Ok(found.windows(2).all(|pair| pair[0] == pair[1]))
        })?;
        active.context("somebody else is active")
    }
}

/// Where a reply sends its client.
fn moved_to(reply: &RespValue) -> Result<Option<u16>> {
    let RespValue::Error(text) = reply else {
        return Ok(None);
    };
    let Some(place) = text.strip_prefix("MOVED ") else {
        return Ok(None);
    };
    let (_, port) = place.rsplit_once(':').context("no port")?;
    Ok(Some(port.parse()?))
}

#[test]
fn a_standby_sends_clients_to_the_active_one() -> Result<()> {
    let nodes = Nodes::start(2, "")?;
    let active = nodes.active()?;
    let ports = nodes.ports()?;
    let (there, standby) = (ports[active], ports[1 - active]);
    let mut issuing = RespClient::connect(there)?;
    let mut moving = RespClient::connect(standby)?;
    let moved = RespValue::Error(format!("MOVED {SLOT} 127.0.0.1:{there}"));
    assert_eq!(issuing.say("GET orders")?, RespValue::Null);
    assert_eq!(issuing.say("INCR orders")?, RespValue::Integer(1));
    assert_eq!(issuing.say("INCRBY orders 10")?, RespValue::Integer(11));
    assert_eq!(issuing.say("GET orders")?, bulk("11"));
    assert_eq!(
        issuing.say("KEYWRIGHT NEXT orders")?,
        RespValue::Integer(12)
    );
    for request in [
        "INCR orders",
        "INCRBY orders 5",
        "GET orders",
        "KEYWRIGHT NEXT orders COUNT 3",
        "MGET orders",
    ] {
        assert_eq!(moving.say(request)?, moved, "{request}");
    }
    // Whatever the order of others is, every program gives their keys.
    for client in [&mut issuing, &mut moving] {
        assert!(client.say("INCR plain")?.integer()? > 0);
        assert!(client.say("INCR flakes")?.integer()? > 0);
        assert_eq!(
            client.say("CLUSTER KEYSLOT orders")?,
            RespValue::Integer(SLOT.into())
        );
        assert_eq!(client.say("READONLY")?, ok());
        let crossed = client.say("MGET orders plain")?;
        assert!(crossed.error()?.starts_with("CROSSSLOT "), "{crossed:?}");
        let RespValue::Array(slots) = client.say("CLUSTER SLOTS")? else {
            bail!("no slots");
        };
        let RespValue::Array(slots) = &slots[0] else {
            bail!("no slots");
        };
        assert_eq!(
            slots[..2],
            [RespValue::Integer(0), RespValue::Integer(16_383)]
        );
        assert_eq!(slots.len(), 4, "{slots:?}");
        let RespValue::Array(first) = &slots[2] else {
            bail!("no node");
        };
        assert_eq!(first[1], RespValue::Integer(there.into()));
        let RespValue::Bulk(text) = client.say("CLUSTER NODES")? else {
            bail!("no nodes");
        };
        assert_eq!(text.matches("myself,").count(), 1, "{text}");
        assert_has(
            &text,
            &[
                &format!("127.0.0.1:{there}@0"),
                "master - 0 0 0 connected 0-16383",
                "slave ",
            ],
        );
        let RespValue::Bulk(id) = client.say("CLUSTER MYID")? else {
            bail!("no id");
        };
        assert_eq!(id.len(), 40);
        assert_has(&text, &[&id]);
        let RespValue::Bulk(info) = client.say("CLUSTER INFO")? else {
            bail!("no info");
        };
        assert_has(&info, &["cluster_state:ok", "cluster_known_nodes:2"]);
    }
    // A port that says nothing of a cluster cannot keep the order.
    let mut http = TcpStream::connect(("127.0.0.1", nodes.nodes[active].http_port()?))?;
    http.write_all(b"POST /v1/keys/orders HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    http.read_to_string(&mut answer)?;
    assert_has(&answer, &["HTTP/1.1 500 ", "tag_ordered"]);
    Ok(())
}

/// Three programs, of which the active one is killed, stopped for longer than its lease, and told to end; clients that go where they are sent; and
/// none gets an id below one that anybody had read before it asked.
#[test]
fn nobody_gets_an_id_below_one_that_was_read_before() -> Result<()> {
    // A file stays locked while a program is stopped that writes to it.
    let server = Upstream::start_with(Flavour::MariaDb, &["--innodb-flush-log-at-trx-commit=1"])?;
    let config = ProxyConfig {
        store_url: make_store(&server, "keywright", &[])?,
        ..ProxyConfig::default()
    };
    let mut nodes = Nodes::start_with(3, "", config, TempDir::new()?)?;
    let ports = nodes.ports()?;
    let highest = AtomicI64::new(0);
    let (replies, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let inversions = AtomicUsize::new(0);
    let happened = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (highest, replies, over, inversions, ports) =
                (&highest, &replies, &over, &inversions, &ports);
            scope.spawn(move || {
                let mut at = client % ports.len();
                while !over.load(Ordering::Relaxed) {
                    let ended = take_at(ports[at], client, over, (highest, replies, inversions));
                    // Where it was sent, or the next one.
                    let sent = ended.ok().flatten();
                    let sent = sent.and_then(|port| ports.iter().position(|its| *its == port));
                    at = sent.unwrap_or((at + 1) % ports.len());
                }
            });
        }
        let rounds = std::env::var("KEYWRIGHT_KILLS").ok();
        let rounds: usize = rounds.and_then(|text| text.parse().ok()).unwrap_or(6);
        let happened = (0..rounds).try_for_each(|round| {
            let before = replies.load(Ordering::Relaxed);
            wait_until("keys", WAIT_MAX, || {
                Ok(replies.load(Ordering::Relaxed) > before + 1_000)
            })?;
            let active = nodes.active()?;
            match round % 3 {
                0 => {
                    let killed = Instant::now();
                    nodes.nodes[active].kill9()?;
                    let others: Vec<u16> = ports
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| *at != active)
                        .map(|(_, port)| *port)
                        .collect();
                    wait_until("another", WAIT_MAX, || {
                        let issued = RespClient::connect(others[0])?.say("INCR orders")?;
                        Ok(matches!(issued, RespValue::Integer(_))
                            || moved_to(&issued)?.is_some_and(|port| others.contains(&port)))
                    })?;
                    println!("another gives keys {:?} after a kill", killed.elapsed());
                    nodes.nodes[active].restart()
                }
                1 => {
                    let pid = Pid::from_raw(nodes.nodes[active].pid()?.try_into()?);
                    kill(pid, Signal::SIGSTOP)?;
                    let before = highest.load(Ordering::Relaxed);
                    let another = wait_until("another", WAIT_MAX, || {
                        Ok(highest.load(Ordering::Relaxed) > before + 100)
                    });
                    // It finds requests that came meanwhile.
                    kill(pid, Signal::SIGCONT)?;
                    another
                }
                _ => {
                    nodes.nodes[active].begin_stop()?;
                    ensure!(
                        nodes.nodes[active].wait()?.success(),
                        "{}",
                        nodes.nodes[active].log()
                    );
                    nodes.nodes[active].restart()
                }
            }
        });
        let before = replies.load(Ordering::Relaxed);
        let last = wait_until("keys", WAIT_MAX, || {
            Ok(replies.load(Ordering::Relaxed) > before + 1_000)
        });
        over.store(true, Ordering::Relaxed);
        happened.and(last)
    });
    happened?;
    println!("{} replies", replies.load(Ordering::Relaxed));
    assert_eq!(inversions.load(Ordering::Relaxed), 0);
    Ok(())
}

/// Takes keys until the connection ends, or somebody else is to be asked.
fn take_at(
    port: u16,
    client: usize,
    over: &AtomicBool,
    (highest, replies, inversions): (&AtomicI64, &AtomicUsize, &AtomicUsize),
) -> Result<Option<u16>> {
    let mut wire = RespClient::connect(port)?;
    // Whoever is stopped answers much later, and others are asked meanwhile.
    wire.stream().set_read_timeout(Some(Duration::from_millis(
        TTL_MS * (1 + client as u64 % 3),
    )))?;
    let pipelined = client % 3 * 4 + 1;
    let request = RespClient::written(&["INCR", "orders"]).repeat(pipelined);
    while !over.load(Ordering::Relaxed) {
        let floor = highest.load(Ordering::SeqCst);
        wire.send(&request)?;
        let mut moved = None;
        for _ in 0..pipelined {
            match wire.read()? {
                RespValue::Integer(id) => {
                    ensure!(moved.is_none(), "served behind MOVED");
                    if id <= floor {
                        eprintln!("{id} was given, and {floor} had been read before");
                        inversions.fetch_add(1, Ordering::Relaxed);
                    }
                    highest.fetch_max(id, Ordering::SeqCst);
                    replies.fetch_add(1, Ordering::Relaxed);
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

/// A store that never had a lease may have been restored: whoever is first waits as if somebody had it.
#[test]
fn before_anybody_is_active_no_ordered_key_is_given() -> Result<()> {
    let scratch = TempDir::new()?;
    let lines = format!("{KEYS}cluster_address = \"127.0.0.1:$PORT\"\norder_ttl_ms = 60000\n");
    let mut config = ProxyConfig::key_port(&scratch.path().join("store.db"), &lines);
    config.store.push_str("wait_ms_max = 300\n");
    ProxyProcess::said(&config, &["init", "--monotonic", "orders"])?;
    let proxy = ProxyProcess::start(config)?;
    let mut client = RespClient::connect(proxy.key_port()?)?;
    assert!(client.say("INCR plain")?.integer()? > 0);
    for request in ["INCR orders", "GET orders", "MGET orders"] {
        let refused = client.say(request)?;
        assert!(refused.error()?.starts_with("CLUSTERDOWN "), "{refused:?}");
    }
    assert_eq!(client.say("CLUSTER SLOTS")?, RespValue::Array(Vec::new()));
    let RespValue::Bulk(info) = client.say("CLUSTER INFO")? else {
        bail!("no info");
    };
    assert_has(&info, &["cluster_state:fail"]);
    Ok(())
}

#[test]
fn redis_cli_follows() -> Result<()> {
    let nodes = Nodes::start(2, "")?;
    let active = nodes.active()?;
    let standby = nodes.ports()?[1 - active].to_string();
    let mut cli = RedisTools::get()?.command("redis-cli")?;
    cli.args(["-c", "-p", &standby, "INCR", "orders"]);
    assert_eq!(said(&mut cli)?, "1\n");
    Ok(())
}

const PYTHON: &str = r#"
import sys, redis
from redis.cluster import RedisCluster
port, seconds = int(sys.argv[1]), float(sys.argv[2])
import time
r = RedisCluster(host="127.0.0.1", port=port, decode_responses=True)
last, end, slowest = 0, time.time() + seconds, 0
print("begun", flush=True)
while time.time() < end:
    begun = time.time()
    id = r.incr("orders")
    slowest = max(slowest, time.time() - begun)
    assert id > last, (id, last)
    last = id
assert int(r.get("orders")) >= last
assert r.incr("plain") > 0
print("slowest", slowest)
"#;

/// A client in cluster mode sees no error while one program after the other hands over.
#[test]
fn redis_py_follows_hand_overs() -> Result<()> {
    let mut nodes = Nodes::start(2, "")?;
    let active = nodes.active()?;
    let standby = nodes.ports()?[1 - active].to_string();
    let mut python = Command::new(python_with_redis()?);
    python.args(["-c", PYTHON, &standby, "6"]);
    let client = thread::spawn(move || said(&mut python));
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(1_500));
        let active = nodes.active()?;
        nodes.nodes[active].begin_stop()?;
        assert!(nodes.nodes[active].wait()?.success());
        nodes.nodes[active].restart()?;
    }
    match client.join() {
        Ok(said) => println!("{}", said?),
        Err(_) => bail!("the client's thread panicked"),
    }
    Ok(())
}

#[test]
fn an_administrator_has_another_program_give_keys() -> Result<()> {
    let nodes = Nodes::start(2, "users = true\n")?;
    for (name, grants) in [
        (
            "root",
            &[("administer", "*"), ("use", "*"), ("create", "*")][..],
        ),
        ("app", &[("use", "*")]),
    ] {
        ProxyProcess::add_user(&nodes.config, name, PASSWORD, grants)?;
    }
    let ports = nodes.ports()?;
    let mut clients = [client_as(ports[0], "root")?, client_as(ports[1], "root")?];
    let issued = |client: &mut RespClient| -> Result<Option<i64>> {
        match client.say("INCR orders")? {
            RespValue::Integer(id) => Ok(Some(id)),
            _ => Ok(None),
        }
    };
    let mut last = 0;
    for _ in 0..4 {
        let mut active = None;
        wait_until("keys", WAIT_MAX, || {
            for (at, client) in clients.iter_mut().enumerate() {
                if let Some(id) = issued(client)? {
                    ensure!(id > last, "{id} behind {last}");
                    (last, active) = (id, Some(at));
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        let active = active.context("nobody")?;
        let refused = client_as(ports[active], "app")?.say("KEYWRIGHT DEMOTE")?;
        assert!(refused.error()?.starts_with("NOPERM "), "{refused:?}");
        let refused = clients[1 - active].say("KEYWRIGHT DEMOTE")?;
        assert!(refused.error()?.starts_with("ERR "), "{refused:?}");
        assert_eq!(clients[active].say("KEYWRIGHT DEMOTE")?, ok());
        let begun = Instant::now();
        let mut id = None;
        wait_until("the other one", WAIT_MAX, || {
            id = issued(&mut clients[1 - active])?;
            Ok(id.is_some())
        })?;
        println!("handed over in {:?}", begun.elapsed());
        ensure!(id > Some(last), "{id:?} behind {last}");
        assert!(moved_to(&clients[active].say("INCR orders")?)?.is_some());
    }
    // The order of a tag is chosen when it is made.
    for (request, expected) in [
        ("KEYWRIGHT CREATE fresh ORDER monotonic", "OK"),
        ("KEYWRIGHT CREATE fresh ORDER monotonic", "TAG_EXISTS "),
        (
            "KEYWRIGHT CREATE other ORDER strict",
            "ARGUMENT_OUT_OF_RANGE ",
        ),
    ] {
        match clients[0].say(request)? {
            RespValue::Simple(said) => assert_eq!(said, expected),
            other => assert!(other.error()?.starts_with(expected), "{request}: {other:?}"),
        }
    }
    Ok(())
}

/// Who is connected to the program that was taken over finds the new one behind a new connection.
#[test]
fn another_program_takes_over_with_the_lease() -> Result<()> {
    let mut nodes = Nodes::start(1, "")?;
    nodes.active()?;
    let port = nodes.ports()?[0];
    let mut before = RespClient::connect(port)?;
    let first = before.say("INCR orders")?.integer()?;
    let mut old = nodes.nodes[0].take_over()?;
    let mut after = RespClient::connect(port)?;
    let mut id = 0;
    wait_until("keys", WAIT_MAX, || {
        let issued = after.say("INCR orders")?;
        id = issued.integer().unwrap_or(0);
        Ok(id > 0)
    })?;
    assert!(id > first);
    before.send(&RespClient::written(&["INCR", "orders"]))?;
    assert_eq!(before.rest()?, b"");
    assert!(old.wait()?.success());
    Ok(())
}
