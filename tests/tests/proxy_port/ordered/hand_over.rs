//! One program after the other gives the keys.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use keywright_testkit::recipes::python_with_redis;
use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{ProxyProcess, Result, WAIT_MAX, wait_until};

use super::{Nodes, moved_to};
use crate::clients::said;
use crate::{PASSWORD, client_as, ok};

/// How long a client waits at most for its next key while one program hands over to another, milliseconds.
const HAND_OVER_MS_MAX: u128 = 50;
/// Hand-overs of each kind. The fastest counts: this machine does other things, too.
const HAND_OVERS: usize = 4;
/// So many at most, until one of each kind was fast enough.
const HAND_OVERS_MAX: usize = 40;

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

fn add_users(nodes: &Nodes) -> Result<()> {
    for (name, grants) in [
        (
            "root",
            &[("administer", "*"), ("use", "*"), ("create", "*")][..],
        ),
        ("app", &[("use", "*")]),
    ] {
        ProxyProcess::add_user(&nodes.config, name, PASSWORD, grants)?;
    }
    // Who knows the last has every grant.
    for port in nodes.ports()? {
        drop(client_as(port, "app")?);
    }
    Ok(())
}

#[test]
fn an_administrator_has_another_program_give_keys() -> Result<()> {
    let nodes = Nodes::start(2, "users = true\n")?;
    add_users(&nodes)?;
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
        ("KEYWRIGHT CREATE another ORDER strict", "OK"),
        ("KEYWRIGHT CREATE another ORDER monotonic", "TAG_EXISTS "),
        (
            "KEYWRIGHT CREATE other ORDER stricter",
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

/// A figure of a program that has no labels.
fn figure(node: &ProxyProcess, name: &str) -> Result<String> {
    node.figure(name, &[])?.context("no such figure")
}

/// By a command and by a signal: nobody waits long, and each request gets a key or a place to go to.
#[test]
fn a_hand_over_takes_milliseconds_and_no_client_sees_an_error() -> Result<()> {
    let mut nodes = Nodes::start(3, "users = true\n")?;
    add_users(&nodes)?;
    let ports = nodes.ports()?;
    let clients = ports.iter().map(|port| client_as(*port, "root"));
    let mut clients: Vec<RespClient> = clients.collect::<Result<_>>()?;
    let mut fastest = [Duration::MAX; 2];
    for round in 0..HAND_OVERS_MAX {
        let is_fast = |its: &Duration| its.as_millis() <= HAND_OVER_MS_MAX;
        if round >= HAND_OVERS && fastest.iter().all(is_fast) {
            break;
        }
        for (kind, fastest) in fastest.iter_mut().enumerate() {
            let active = nodes.agreed(&mut clients)?;
            let before = clients[active].say("INCR orders")?.integer()?;
            let mut administrator = client_as(ports[active], "root")?;
            let begun = Instant::now();
            match kind {
                0 => administrator.send(&RespClient::written(&["KEYWRIGHT", "DEMOTE"]))?,
                _ => nodes.nodes[active].begin_stop()?,
            }
            let (mut at, mut last) = (active, before);
            while at == active {
                match clients[at].say("INCR orders")? {
                    RespValue::Integer(id) => {
                        ensure!(id > last, "{id} behind {last}");
                        last = id;
                    }
                    other => {
                        let port = moved_to(&other)?.with_context(|| format!("{other:?}"))?;
                        let place = ports.iter().position(|its| *its == port);
                        at = place.context("moved to nobody")?;
                    }
                }
            }
            let id = clients[at].say("INCR orders")?.integer()?;
            let took = begun.elapsed();
            ensure!(id > last, "{id} behind {last}");
            println!("handed over in {took:?} ({kind})");
            *fastest = took.min(*fastest);
            if kind == 0 {
                assert_eq!(administrator.read()?, ok());
            } else {
                ensure!(
                    nodes.nodes[active].wait()?.success(),
                    "{}",
                    nodes.nodes[active].log()
                );
                nodes.nodes[active].restart()?;
                clients[active] = client_as(ports[active], "root")?;
            }
        }
    }
    for fastest in fastest {
        assert!(fastest.as_millis() <= HAND_OVER_MS_MAX, "{fastest:?}");
    }
    // Whoever watches sees the same.
    let active = nodes.agreed(&mut clients)?;
    for (at, node) in nodes.nodes.iter().enumerate() {
        let is_active = if at == active { "1" } else { "0" };
        assert_eq!(figure(node, "keywright_order_active")?, is_active);
        assert_eq!(
            figure(node, "keywright_order_epoch")?,
            figure(&nodes.nodes[active], "keywright_order_epoch")?
        );
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
