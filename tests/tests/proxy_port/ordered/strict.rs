//! Strict tags: what clients see of replies that wait for the store.

use anyhow::{Context, bail};
use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{Flavour, WAIT_MAX, make_store, scratch_dir, wait_until};
use keywright_testkit::{ProxyConfig, ProxyProcess, Result, Upstream, assert_has};

use super::{KEYS, Nodes, SLOT};
use crate::{PASSWORD, USERS, bulk, client_as, ok};

/// Requests of one pipeline.
const PIPELINED: usize = 500;

fn figure(node: &ProxyProcess, name: &str) -> Result<f64> {
    let value = node.figure(name, &[])?;
    Ok(value.context("no such figure")?.parse()?)
}

#[test]
fn a_standby_sends_clients_to_the_active_one() -> Result<()> {
    let nodes = Nodes::start_strict(2, "")?;
    let active = nodes.active()?;
    let ports = nodes.ports()?;
    nodes.are_known()?;
    let (there, standby) = (ports[active], ports[1 - active]);
    let mut issuing = RespClient::connect(there)?;
    let mut moving = RespClient::connect(standby)?;
    assert_eq!(issuing.say("GET orders")?, RespValue::Null);
    assert_eq!(issuing.say("INCR orders")?, RespValue::Integer(1));
    assert_eq!(issuing.say("INCRBY orders 10")?, RespValue::Integer(11));
    assert_eq!(issuing.say("GET orders")?, bulk("11"));
    assert_eq!(
        issuing.say("KEYWRIGHT NEXT orders COUNT 2")?,
        RespValue::Array(vec![RespValue::Integer(12), RespValue::Integer(13)])
    );
    assert_eq!(
        issuing.say("MGET orders orders")?,
        RespValue::Array(vec![bulk("13"), bulk("13")])
    );
    let moved = RespValue::Error(format!("MOVED {SLOT} 127.0.0.1:{there}"));
    for request in ["INCR orders", "GET orders", "MGET orders"] {
        assert_eq!(moving.say(request)?, moved, "{request}");
    }
    // What lists and roles say.
    let RespValue::Array(list) = issuing.say("KEYWRIGHT LIST")? else {
        bail!("no list");
    };
    assert!(list.contains(&bulk("segment:orders strict")), "{list:?}");
    let RespValue::Bulk(info) = issuing.say("INFO")? else {
        bail!("no info");
    };
    let others = format!("slave0:ip=127.0.0.1,port={standby},state=online");
    assert_has(&info, &["role:master", "connected_slaves:1", &others]);
    let RespValue::Bulk(info) = moving.say("INFO")? else {
        bail!("no info");
    };
    let port = format!("master_port:{there}");
    assert_has(
        &info,
        &[
            "role:slave",
            "master_host:127.0.0.1",
            &port,
            "master_link_status:up",
        ],
    );
    // The HTTP listener beside gives none, and says so.
    let (_, listed) = http(nodes.nodes[active].http_port()?)?;
    assert_has(
        &listed,
        &["segment:orders strict", "is ordered, and not given here"],
    );
    Ok(())
}

/// The list of names over HTTP.
fn http(port: u16) -> Result<(u16, String)> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /v1/keys HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok((200, answer))
}

/// What was read together is confirmed together, and answered in its order, whatever stands between.
#[test]
fn a_pipeline_waits_once() -> Result<()> {
    let nodes = Nodes::start_strict(1, "")?;
    let node = &nodes.nodes[nodes.active()?];
    let mut client = RespClient::connect(node.key_port()?)?;
    let mut last = client.say("INCR orders")?.integer()?;
    let before = figure(node, "keywright_order_confirmations_total")?;
    let mut requests = Vec::new();
    for _ in 0..PIPELINED {
        requests.extend(RespClient::written(&["INCR", "orders"]));
        requests.extend(RespClient::written(&["PING"]));
        requests.extend(RespClient::written(&["INCR", "plain"]));
        requests.extend(RespClient::written(&["GET", "more"]));
    }
    requests.extend(RespClient::written(&["QUIT"]));
    client.send(&requests)?;
    for _ in 0..PIPELINED {
        let id = client.read()?.integer()?;
        assert!(id > last, "{id} behind {last}");
        last = id;
        assert_eq!(client.read()?, RespValue::Simple("PONG".to_owned()));
        assert!(client.read()?.integer()? > 0);
        assert_eq!(client.read()?, RespValue::Null);
    }
    assert_eq!(client.read()?, ok());
    assert_eq!(client.rest()?, b"");
    let confirmations = figure(node, "keywright_order_confirmations_total")? - before;
    println!("{PIPELINED} replies by {confirmations} confirmations");
    assert!(confirmations * 10.0 < PIPELINED as f64, "{confirmations}");
    assert!(figure(node, "keywright_order_confirm_seconds_total")? > 0.0);
    assert!(figure(node, "keywright_order_confirmed_total")? > 0.0);
    Ok(())
}

/// Who asked gets them, whoever the client says it is by then.
#[test]
fn a_reply_is_told_to_who_asked() -> Result<()> {
    let nodes = Nodes::start_strict(1, "users = true\norder_ttl_ms = 5000\n")?;
    for (name, grants) in USERS {
        ProxyProcess::add_user(&nodes.config, name, PASSWORD, grants)?;
    }
    let port = nodes.nodes[0].key_port()?;
    let mut client = client_as(port, "everything")?;
    wait_until("the lease", WAIT_MAX, || {
        Ok(client.say("INCR orders")?.integer().is_ok())
    })?;
    for next in [&["RESET"][..], &["AUTH", "nobody", PASSWORD]] {
        let mut client = client_as(port, "everything")?;
        // That it is known already keeps the next turn from waiting for it.
        client_as(port, "nobody")?;
        let mut requests = RespClient::written(&["INCR", "orders"]);
        requests.extend(RespClient::written(next));
        client.send(&requests)?;
        assert!(client.read()?.integer()? > 0, "{next:?}");
        assert!(client.read()?.error().is_err(), "{next:?}");
        client.say("INCR orders")?.error()?;
    }
    Ok(())
}

/// A program whose lease somebody else has by now tells nothing of what it took: a client is sent where it can ask.
#[test]
fn who_has_lost_the_lease_sends_clients_on() -> Result<()> {
    let nodes = Nodes::start_strict(1, "")?;
    let node = &nodes.nodes[nodes.active()?];
    let mut client = RespClient::connect(node.key_port()?)?;
    assert!(client.say("INCR orders")?.integer()? > 0);
    let file = nodes
        .config
        .store_url
        .strip_prefix("file:")
        .context("no file")?;
    let connection = rusqlite::Connection::open(file)?;
    connection.busy_timeout(keywright_testkit::WAIT_MAX)?;
    connection.execute(
        "UPDATE keywright_order_lease SET owner = 'other', address = '10.0.0.1:1', epoch = epoch + 1, ttl_ms = 60000",
        (),
    )?;
    let request = RespClient::written(&["INCR", "orders"]).repeat(3);
    client.send(&request)?;
    for _ in 0..3 {
        assert_eq!(
            client.read()?,
            RespValue::Error(format!("MOVED {SLOT} 10.0.0.1:1"))
        );
    }
    Ok(())
}

/// A server that may lose what it acknowledged: told when the tag is made.
#[test]
fn a_store_that_may_lose_commits_has_no_strict_tags() -> Result<()> {
    let server = Upstream::start_with(Flavour::MariaDb, &["--innodb-flush-log-at-trx-commit=1"])?;
    let scratch = scratch_dir()?;
    let lines = format!("{KEYS}cluster_address = \"127.0.0.1:$PORT\"\n");
    let config = ProxyConfig {
        store_url: make_store(&server, "keywright", &[])?,
        key_ports: vec![lines.clone()],
        ..ProxyConfig::default()
    };
    let refused = ProxyProcess::command(&config, &["init", "--strict", "orders"])?;
    assert!(!refused.status.success());
    let said = String::from_utf8(refused.stderr)?;
    assert_has(
        &said,
        &["may lose what it has acknowledged", "semi-synchronous"],
    );
    let both = ["init", "--strict", "orders", "--monotonic", "orders"];
    let refused = ProxyProcess::command(&config, &both)?;
    assert_has(&String::from_utf8(refused.stderr)?, &["one of both"]);
    let with_users = ProxyConfig {
        key_ports: vec![format!("{lines}users = true\n")],
        ..config
    };
    ProxyProcess::said(&with_users, &["init"])?;
    ProxyProcess::add_user(&with_users, "root", PASSWORD, &[("create", "*")])?;
    let proxy = ProxyProcess::start(with_users)?;
    let mut client = client_as(proxy.key_port()?, "root")?;
    let refused = client.say("KEYWRIGHT CREATE fresh ORDER strict")?;
    assert!(
        refused.error()?.starts_with("STORE_MAY_LOSE "),
        "{refused:?}"
    );
    // A tag that is there keeps its order.
    let config = ProxyConfig::key_port(&scratch.path().join("store.db"), &lines);
    ProxyProcess::said(&config, &["init", "--monotonic", "orders"])?;
    let refused = ProxyProcess::command(&config, &["init", "--strict", "orders"])?;
    assert!(!refused.status.success());
    assert_has(
        &String::from_utf8(refused.stderr)?,
        &["tag \"orders\" is there, and monotonic: its order cannot change"],
    );
    Ok(())
}
