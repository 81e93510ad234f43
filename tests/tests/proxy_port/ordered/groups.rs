//! Several slot groups: other programs give keys of other tags.

use std::collections::HashMap;
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    ProxyConfig, ProxyProcess, Result, WAIT_MAX, assert_has, scratch_dir, wait_until,
};
use redis::Commands;
use redis::cluster::ClusterClient;
use tempfile::TempDir;

use super::{SLOT, moved_to};
use crate::{PASSWORD, client_as, ok};

/// `orders` is in the first of two groups and `carts` in the second, as is `shop:{carts}`; `shop` is in the first.
const KEYS: &str = "keys = { orders = \"segment:orders\", carts = \"segment:carts\", \"shop:{carts}\" = \"segment:carts\", shop = \"segment:carts\", \
                    plain = \"segment:plain\" }\n";
const CARTS_SLOT: u16 = 9_321;
/// Programs that are started one after the other within it share.
const TTL_MS: u64 = 3_000;
const NODES: usize = 3;

struct Groups {
    nodes: Vec<ProxyProcess>,
    config: ProxyConfig,
    scratch: TempDir,
}

fn config(scratch: &TempDir, slot_groups: u32) -> ProxyConfig {
    let lines = format!(
        "{KEYS}cluster_address = \"127.0.0.1:$PORT\"\norder_ttl_ms = {TTL_MS}\nusers = true\n"
    );
    let mut config = ProxyConfig::key_port(&scratch.path().join("store.db"), &lines);
    config
        .store
        .push_str(&format!("slot_groups = {slot_groups}\n"));
    config
}

impl Groups {
    fn start(order: &str) -> Result<Groups> {
        let scratch = scratch_dir()?;
        let config = config(&scratch, 2);
        let made = ProxyProcess::said(&config, &["init", order, "orders", order, "carts"])?;
        assert_has(&made, &["slot groups: 2", "created tag \"carts\""]);
        ProxyProcess::add_user(
            &config,
            "root",
            PASSWORD,
            &[("administer", "*"), ("use", "*")],
        )?;
        // Together: who is alone for long takes both groups.
        let nodes = thread::scope(|scope| {
            let start = || ProxyProcess::start(config.clone());
            let starts: Vec<_> = (0..NODES).map(|_| scope.spawn(start)).collect();
            let started = starts
                .into_iter()
                .map(|start| start.join().expect("a start"));
            started.collect::<Result<Vec<_>>>()
        })?;
        Ok(Groups {
            nodes,
            config,
            scratch,
        })
    }

    fn ports(&self) -> Result<Vec<u16>> {
        self.nodes.iter().map(ProxyProcess::key_port).collect()
    }

    /// The place of the one of these that gives keys of a name, once all of them say so.
    fn active(&self, name: &str, of: &[usize]) -> Result<usize> {
        let ports = self.ports()?;
        let clients = of.iter().map(|at| Ok((ports[*at], self.client(*at)?)));
        let mut clients: Vec<(u16, RespClient)> = clients.collect::<Result<_>>()?;
        let mut active = None;
        wait_until("one that is active", WAIT_MAX, || {
            let mut found = Vec::new();
            for (port, client) in &mut clients {
                let said = client.say(&format!("GET {name}"))?;
                let is_here = matches!(said, RespValue::Null | RespValue::Bulk(_));
                found.push(moved_to(&said)?.or(is_here.then_some(*port)));
            }
            active = found[0].and_then(|port| ports.iter().position(|its| *its == port));
            let is_one_of_them = active.is_some_and(|at| of.contains(&at));
            Ok(is_one_of_them && found.iter().all(|its| *its == found[0]))
        })?;
        active.context("nobody")
    }

    /// Of `orders` and of `carts`.
    fn actives(&self) -> Result<(usize, usize)> {
        let all: Vec<usize> = (0..NODES).collect();
        Ok((self.active("orders", &all)?, self.active("carts", &all)?))
    }

    fn client(&self, at: usize) -> Result<RespClient> {
        client_as(self.nodes[at].key_port()?, "root")
    }
}

/// The ranges of slots that `CLUSTER SLOTS` shows, each with the port of its program.
fn slots(client: &mut RespClient) -> Result<Vec<(i64, i64, i64)>> {
    let RespValue::Array(ranges) = client.say("CLUSTER SLOTS")? else {
        bail!("no slots");
    };
    let range = |range: &RespValue| -> Result<(i64, i64, i64)> {
        let RespValue::Array(range) = range else {
            bail!("no range");
        };
        let RespValue::Array(first) = &range[2] else {
            bail!("no node");
        };
        Ok((
            range[0].integer()?,
            range[1].integer()?,
            first[1].integer()?,
        ))
    };
    ranges.iter().map(range).collect()
}

#[test]
fn programs_share_the_groups_and_say_who_has_which() -> Result<()> {
    let groups = Groups::start("--monotonic")?;
    let (orders, carts) = groups.actives()?;
    assert_ne!(orders, carts);
    let standby = (0..NODES).find(|at| *at != orders && *at != carts);
    let standby = standby.context("no standby")?;
    let ports = groups.ports()?;
    let shown = [
        (0, 8_191, i64::from(ports[orders])),
        (8_192, 16_383, i64::from(ports[carts])),
    ];
    for at in 0..NODES {
        let mut client = groups.client(at)?;
        // Each notes itself, and who else is there, once per time to live.
        wait_until("all programs", WAIT_MAX, || {
            let RespValue::Bulk(info) = client.say("CLUSTER INFO")? else {
                bail!("no info");
            };
            Ok(info.contains("cluster_known_nodes:3"))
        })?;
        assert_eq!(slots(&mut client)?, shown);
        let RespValue::Bulk(text) = client.say("CLUSTER NODES")? else {
            bail!("no nodes");
        };
        let has = |port: u16, what: &str| -> Result<()> {
            let is_it = |line: &str| line.contains(&format!(":{port}@")) && line.contains(what);
            ensure!(text.lines().any(is_it), "{port} {what}: {text}");
            Ok(())
        };
        has(ports[orders], "master - 0 0 0 connected 0-8191")?;
        has(ports[carts], "master - 0 0 0 connected 8192-16383")?;
        has(ports[standby], "slave ")?;
        let RespValue::Bulk(info) = client.say("CLUSTER INFO")? else {
            bail!("no info");
        };
        assert_has(
            &info,
            &[
                "cluster_state:ok",
                "cluster_slots_assigned:16384",
                "cluster_size:2",
            ],
        );
        let RespValue::Array(shards) = client.say("CLUSTER SHARDS")? else {
            bail!("no shards");
        };
        assert_eq!(shards.len(), 2);
        let crossed = client.say("MGET orders carts")?;
        assert!(crossed.error()?.starts_with("CROSSSLOT "), "{crossed:?}");
        // Clients would look for the program of the first group, and the tag is in the second.
        for request in ["INCR shop", "GET shop", "MGET shop"] {
            let refused = client.say(request)?;
            assert!(refused.error()?.starts_with("TAG_ORDERED "), "{refused:?}");
        }
        assert!(client.say("INCR plain")?.integer()? > 0);
        let metrics = groups.nodes[at].http_get("/metrics")?.1;
        let of_group = |group: u8, is_active: bool| {
            format!(
                "keywright_order_group_active{{group=\"{group}\"}} {}\n",
                u8::from(is_active)
            )
        };
        assert_has(
            &metrics,
            &[&of_group(1, at == orders), &of_group(2, at == carts)],
        );
    }
    // One pipeline: its own group's keys, and where the others are, also for what was sent behind.
    let mut client = groups.client(orders)?;
    let requests =
        ["orders", "carts", "orders", "carts"].map(|name| RespClient::written(&["INCR", name]));
    client.send(&requests.concat())?;
    let moved = RespValue::Error(format!("MOVED {CARTS_SLOT} 127.0.0.1:{}", ports[carts]));
    let replies = [
        client.read()?,
        client.read()?,
        client.read()?,
        client.read()?,
    ];
    assert_eq!(
        replies,
        [
            RespValue::Integer(1),
            moved.clone(),
            RespValue::Integer(2),
            moved
        ]
    );
    let mut other = groups.client(carts)?;
    assert_eq!(other.say("INCR shop:{carts}")?, RespValue::Integer(1));
    assert_eq!(other.say("INCR carts")?, RespValue::Integer(2));
    let moved = RespValue::Error(format!("MOVED {SLOT} 127.0.0.1:{}", ports[orders]));
    assert_eq!(other.say("INCR orders")?, moved);
    Ok(())
}

#[test]
fn a_group_is_handed_over_alone() -> Result<()> {
    let groups = Groups::start("--monotonic")?;
    let (orders, carts) = groups.actives()?;
    let mut root = groups.client(carts)?;
    for (request, expected) in [
        ("KEYWRIGHT DEMOTE GROUP 1", "ERR "),
        ("KEYWRIGHT DEMOTE GROUP 3", "ARGUMENT_OUT_OF_RANGE "),
        ("KEYWRIGHT DEMOTE GROUP x", "ERR "),
        ("KEYWRIGHT DEMOTE SLOT 1", "ERR "),
    ] {
        let refused = root.say(request)?;
        assert!(
            refused.error()?.starts_with(expected),
            "{request}: {refused:?}"
        );
    }
    let last = root.say("INCR carts")?.integer()?;
    assert_eq!(root.say("KEYWRIGHT DEMOTE GROUP 2")?, ok());
    let now = groups.actives()?;
    assert_eq!(now.0, orders);
    // One of the others: the one that has none goes first, where it looks in time.
    assert_ne!(now.1, carts);
    assert!(groups.client(now.1)?.say("INCR carts")?.integer()? > last);
    Ok(())
}

/// Clients in cluster mode take keys of both groups, while the program of one of them is killed: only that group goes elsewhere.
#[test]
fn a_program_that_is_killed_loses_its_group_alone() -> Result<()> {
    let mut groups = Groups::start("--monotonic")?;
    let (orders, carts) = groups.actives()?;
    let ports = groups.ports()?;
    let (tell, said) = std::sync::mpsc::channel();
    for name in ["orders", "carts"] {
        let (tell, ports) = (tell.clone(), ports.clone());
        thread::spawn(move || -> Result<()> {
            let nodes = ports
                .iter()
                .map(|port| format!("redis://root:open%20sesame@127.0.0.1:{port}"));
            let client = ClusterClient::new(nodes)?;
            loop {
                // What it says while nobody gives keys is its own business. It looks at slots again where it is sent on, not where nobody
                // answers: then it is opened anew.
                let Ok(mut connection) = client.get_connection() else {
                    continue;
                };
                loop {
                    let id: redis::RedisResult<u64> = connection.incr(name, 1);
                    match id {
                        Ok(id) if tell.send((name, id)).is_err() => return Ok(()),
                        Ok(_) => {}
                        Err(_) => break,
                    }
                }
            }
        });
    }
    drop(tell);
    let mut last: HashMap<&str, u64> = HashMap::new();
    let mut ascend = |wanted: usize, name: &str| -> Result<()> {
        let (began, mut ids) = (Instant::now(), 0);
        while ids < wanted {
            ensure!(began.elapsed() < WAIT_MAX, "{ids} ids of {name}");
            let (of, id) = said.recv_timeout(WAIT_MAX).context("clients are silent")?;
            let last = last.entry(of).or_default();
            ensure!(id > *last, "{id} behind {last} of {of}");
            *last = id;
            ids += usize::from(of == name);
        }
        Ok(())
    };
    ascend(200, "orders")?;
    ascend(200, "carts")?;
    groups.nodes[carts].kill9()?;
    let killed = Instant::now();
    let rest: Vec<usize> = (0..NODES).filter(|at| *at != carts).collect();
    let new = groups.active("carts", &rest)?;
    println!(
        "another gives keys of the group {:?} after the kill",
        killed.elapsed()
    );
    // The one that stood by, where it looks in time; and the other group stays.
    assert_ne!(new, carts);
    assert_eq!(groups.active("orders", &rest)?, orders);
    ascend(200, "orders")?;
    ascend(200, "carts")?;
    Ok(())
}

/// One pipeline with strict tags of two groups at the one program that has both.
#[test]
fn replies_of_several_groups_are_confirmed_each_by_its_lease() -> Result<()> {
    let scratch = scratch_dir()?;
    let config = config(&scratch, 2);
    ProxyProcess::said(
        &config,
        &["init", "--strict", "orders", "--strict", "carts"],
    )?;
    ProxyProcess::add_user(&config, "root", PASSWORD, &[("use", "*")])?;
    let node = ProxyProcess::start(config)?;
    let mut client = client_as(node.key_port()?, "root")?;
    let mut given = [0, 0];
    wait_until("both groups", WAIT_MAX, || {
        for (name, given) in ["orders", "carts"].into_iter().zip(&mut given) {
            *given = client
                .say(&format!("INCR {name}"))?
                .integer()
                .unwrap_or(*given);
        }
        Ok(given.iter().all(|given| *given > 0))
    })?;
    let requests = ["orders", "carts", "plain"].map(|name| RespClient::written(&["INCR", name]));
    client.send(&requests.concat().repeat(50))?;
    let mut replies = Vec::new();
    for _ in 0..50 {
        let [orders, carts, _] = [client.read()?, client.read()?, client.read()?];
        replies.push((orders.integer()?, carts.integer()?));
    }
    let expected: Vec<(i64, i64)> = (1..=50).map(|at| (given[0] + at, given[1] + at)).collect();
    // Nothing was given up on the way.
    assert_eq!(replies, expected);
    Ok(())
}

#[test]
fn the_number_of_groups_is_the_same_for_all() -> Result<()> {
    let groups = Groups::start("--monotonic")?;
    let (_, carts) = groups.actives()?;
    let last = groups.client(carts)?.say("INCR carts")?.integer()?;
    let other = config(&groups.scratch, 1);
    let checked = ProxyProcess::command(&other, &["check"])?;
    assert!(!checked.status.success());
    assert_has(
        &String::from_utf8(checked.stdout)?,
        &["the store has 2 slot groups, and this program slot_groups = 1"],
    );
    let said = ProxyProcess::said(&groups.config, &["check"])?;
    assert_has(
        &said,
        &["refuses keys of \"carts\", which is ordered, under \"shop\""],
    );
    for (arguments, problem) in [
        (vec!["init"], "the store has 2 slot groups"),
        (
            vec!["init", "--change-slot-groups"],
            "gives keys of ordered tags of slot group",
        ),
    ] {
        let refused = ProxyProcess::command(&other, &arguments)?;
        assert!(!refused.status.success());
        assert_has(&String::from_utf8(refused.stderr)?, &[problem]);
    }
    let late = ProxyProcess::start(other.clone())?;
    let mut client = client_as(late.key_port()?, "root")?;
    let refused = client.say("INCR carts")?;
    assert!(
        refused.error()?.starts_with("SLOT_GROUPS_DIFFER "),
        "{refused:?}"
    );
    assert!(client.say("INCR plain")?.integer()? > 0);
    assert_eq!(client.say("CLUSTER SLOTS")?, RespValue::Array(Vec::new()));
    // It goes on by itself when the number is its own.
    for mut node in groups.nodes {
        node.begin_stop()?;
        ensure!(node.wait()?.success(), "{}", node.log());
    }
    let said = ProxyProcess::said(&other, &["init", "--change-slot-groups"])?;
    assert_has(&said, &["slot groups: 1"]);
    let mut id = 0;
    wait_until("keys", WAIT_MAX, || {
        id = client.say("INCR carts")?.integer().unwrap_or(0);
        Ok(id > 0)
    })?;
    assert!(id > last, "{id} behind {last}");
    assert_eq!(slots(&mut client)?.len(), 1);
    Ok(())
}
