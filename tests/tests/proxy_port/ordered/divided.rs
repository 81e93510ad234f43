//! The number of slot groups becomes another one while clients take keys, and a program that gave them is stopped all the while.

use std::thread;

use anyhow::ensure;
use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, make_store, wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::inversions::{Seen, follow};
use super::{TTL_MS, moved_to};

/// One in each of four groups.
const TAGS: [&str; 4] = ["orders", "bills", "carts", "items"];
const NODES: usize = 3;
const CLIENTS_OF_TAG: usize = 3;

fn config(store_url: &str, slot_groups: u8) -> ProxyConfig {
    let names = TAGS.map(|tag| format!("{tag} = \"segment:{tag}\""));
    let lines = format!(
        "keys = {{ {} }}\ncluster_address = \"127.0.0.1:$PORT\"\norder_ttl_ms = {TTL_MS}\n",
        names.join(", ")
    );
    ProxyConfig {
        store_url: store_url.to_owned(),
        key_ports: vec![lines],
        store: format!("slot_groups = {slot_groups}\n"),
        ..ProxyConfig::default()
    }
}

/// 1, 4, 2 and 1 groups. Nobody gets an id below one that anybody had read before it asked, and the one that was stopped gives none when it goes on.
#[test]
fn the_number_changes_and_nobody_gets_an_id_below_one_that_was_read_before() -> Result<()> {
    // A file stays locked while a program is stopped that writes to it.
    let server = Upstream::start_with(Flavour::MariaDb, &["--innodb-flush-log-at-trx-commit=1"])?;
    let url = make_store(&server, "keywright", &[])?;
    let first = config(&url, 1);
    let order = TAGS.map(|tag| ["--monotonic", tag]).concat();
    ProxyProcess::said(&first, &[&["init"], &order[..]].concat())?;
    let nodes = (0..NODES).map(|_| ProxyProcess::start(first.clone()));
    let mut nodes: Vec<ProxyProcess> = nodes.collect::<Result<_>>()?;
    let ports: Vec<u16> = nodes
        .iter()
        .map(ProxyProcess::key_port)
        .collect::<Result<_>>()?;
    let seen = TAGS.map(Seen::of);
    let changed = thread::scope(|scope| {
        for (client, seen) in (0..CLIENTS_OF_TAG).flat_map(|at| seen.iter().map(move |of| (at, of)))
        {
            let ports = &ports;
            scope.spawn(move || follow(ports, client, seen));
        }
        let changed = [4, 2, 1].into_iter().try_for_each(|slot_groups| {
            all_go_on(&seen)?;
            change(&mut nodes, &config(&url, slot_groups), &seen)
        });
        let last = all_go_on(&seen);
        seen.iter().for_each(Seen::end);
        changed.and(last)
    });
    changed?;
    assert_eq!(seen.each_ref().map(Seen::inversions), [0; TAGS.len()]);
    Ok(())
}

fn all_go_on(seen: &[Seen]) -> Result<()> {
    seen.iter().try_for_each(|of| of.wait_for(200))
}

/// The one that gives keys of the first tag is stopped, of the others one is killed; those that are started anew have the new number, as the store has
/// when nobody can be active by the old one.
fn change(nodes: &mut [ProxyProcess], to: &ProxyConfig, seen: &[Seen]) -> Result<()> {
    let stopped = active(nodes, seen[0].tag())?;
    let mut waiting = RespClient::connect(nodes[stopped].key_port()?)?;
    waiting.stream().set_read_timeout(Some(WAIT_MAX))?;
    assert_eq!(waiting.say("PING")?, RespValue::Simple("PONG".to_owned()));
    let pid = Pid::from_raw(nodes[stopped].pid()?.try_into()?);
    kill(pid, Signal::SIGSTOP)?;
    let changed = while_stopped(nodes, stopped, (to, seen), &mut waiting);
    kill(pid, Signal::SIGCONT)?;
    let floors = changed?;
    // It was asked for each when others had given some.
    for (of, floor) in seen.iter().zip(floors) {
        let reply = waiting.read()?;
        let is_none = matches!(reply, RespValue::Error(_));
        ensure!(is_none, "{reply:?} of {}, behind {floor}", of.tag());
    }
    nodes[stopped].reconfigure(to.clone());
    nodes[stopped].stop()?;
    nodes[stopped].restart()
}

/// What was given of each tag when the one that is stopped was asked for it.
fn while_stopped(
    nodes: &mut [ProxyProcess],
    stopped: usize,
    (to, seen): (&ProxyConfig, &[Seen]),
    waiting: &mut RespClient,
) -> Result<Vec<i64>> {
    for (at, node) in nodes.iter_mut().enumerate() {
        if at == stopped {
            continue;
        }
        node.reconfigure(to.clone());
        match at == (stopped + 1) % NODES {
            true => node.kill9()?,
            false => node.stop()?,
        };
        node.restart()?;
    }
    // What the one that is stopped was writing stays locked until the server undoes it.
    wait_until("another number of groups", WAIT_MAX, || {
        let said = ProxyProcess::command(to, &["init", "--change-slot-groups"])?;
        Ok(said.status.success())
    })?;
    all_go_on(seen)?;
    let mut floors = Vec::new();
    for of in seen {
        floors.push(of.highest());
        waiting.send(&RespClient::written(&["INCR", of.tag()]))?;
    }
    all_go_on(seen)?;
    Ok(floors)
}

/// The place of the program that gives keys of a tag.
fn active(nodes: &[ProxyProcess], tag: &str) -> Result<usize> {
    let mut active = 0;
    wait_until("one that is active", WAIT_MAX, || {
        for (at, node) in nodes.iter().enumerate() {
            let said = RespClient::connect(node.key_port()?)?.say(&format!("GET {tag}"))?;
            if moved_to(&said)?.is_none() && matches!(said, RespValue::Bulk(_)) {
                active = at;
                return Ok(true);
            }
        }
        Ok(false)
    })?;
    Ok(active)
}
