//! What a program answers that stands by, and clients that follow.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::bail;
use keywright_testkit::redis::{RedisTools, RespClient, RespValue};
use keywright_testkit::{
    ProxyConfig, ProxyProcess, Result, WAIT_MAX, assert_has, scratch_dir, wait_until,
};

use super::{KEYS, Nodes, SLOT};
use crate::clients::said;
use crate::{bulk, ok};

#[test]
fn a_standby_sends_clients_to_the_active_one() -> Result<()> {
    let nodes = Nodes::start(2, "")?;
    let active = nodes.active()?;
    let ports = nodes.ports()?;
    nodes.are_known()?;
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
    http.write_all(
        b"POST /v1/keys/orders HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    )?;
    let mut answer = String::new();
    http.read_to_string(&mut answer)?;
    assert_has(&answer, &["HTTP/1.1 500 ", "tag_ordered"]);
    Ok(())
}

/// A store that never had a lease may have been restored: whoever is first waits as if somebody had it.
#[test]
fn before_anybody_is_active_no_ordered_key_is_given() -> Result<()> {
    let scratch = scratch_dir()?;
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

/// As Redis writes it: clients take what is before the last colon for the host.
#[test]
fn an_address_of_ipv6_is_told_without_brackets() -> Result<()> {
    let scratch = scratch_dir()?;
    let lines = format!("{KEYS}cluster_address = \"[::1]:$PORT\"\norder_ttl_ms = 1000\n");
    let config = ProxyConfig::key_port(&scratch.path().join("store.db"), &lines);
    ProxyProcess::said(&config, &["init", "--monotonic", "orders"])?;
    let nodes = [
        ProxyProcess::start(config.clone())?,
        ProxyProcess::start(config)?,
    ];
    let ports = [nodes[0].key_port()?, nodes[1].key_port()?];
    let mut told = Vec::new();
    wait_until("one that is active", WAIT_MAX, || {
        told.clear();
        for port in ports {
            told.push(RespClient::connect(port)?.say("GET orders")?);
        }
        Ok(told.contains(&RespValue::Null))
    })?;
    let there = usize::from(told[0] != RespValue::Null);
    let moved = RespValue::Error(format!("MOVED {SLOT} ::1:{}", ports[there]));
    let mut standby = RespClient::connect(ports[1 - there])?;
    wait_until("where it is", WAIT_MAX, || {
        Ok(standby.say("INCR orders")? == moved)
    })
}

/// Whoever copies a configuration from one machine to another forgets it.
#[test]
fn programs_with_the_same_address_are_told_so() -> Result<()> {
    let scratch = scratch_dir()?;
    let lines = format!("{KEYS}cluster_address = \"10.0.0.1:6399\"\norder_ttl_ms = 300\n");
    let config = ProxyConfig::key_port(&scratch.path().join("store.db"), &lines);
    ProxyProcess::said(&config, &["init", "--monotonic", "orders"])?;
    let nodes = [
        ProxyProcess::start(config.clone())?,
        ProxyProcess::start(config)?,
    ];
    wait_until("a warning", WAIT_MAX, || {
        let has_told = |node: &ProxyProcess| {
            let log = node.log();
            log.contains("another program has the same cluster_address")
        };
        Ok(nodes.iter().any(has_told))
    })
}
