//! Where an order cannot be kept.

use keywright_testkit::redis::RespClient;
use keywright_testkit::{ProxyConfig, ProxyProcess, Result, assert_has};

use super::{KEYS, Nodes};

/// Nor is anything told of its keys, and `check` says so before.
#[test]
fn a_port_without_cluster_address_refuses_ordered_tags() -> Result<()> {
    let nodes = Nodes::start(1, "")?;
    let config = ProxyConfig {
        key_ports: vec![KEYS.to_owned()],
        http_ports: Vec::new(),
        ..nodes.config.clone()
    };
    let said = ProxyProcess::said(&config, &["check"])?;
    assert_has(
        &said,
        &[
            "warning: listener 127.0.0.1:1 refuses keys of \"orders\", which is ordered: write its cluster_address, or name another tag",
            "ready to run",
        ],
    );
    assert!(!said.contains("plain"), "{said}");
    let strict = ProxyProcess::command(&config, &["check", "--strict"])?;
    assert!(!strict.status.success());
    // The one that stands has an HTTP listener beside.
    let said = ProxyProcess::said(&nodes.config, &["check"])?;
    assert_has(&said, &["listener 127.0.0.1:2 refuses keys of \"orders\""]);
    assert!(!said.contains("listener 127.0.0.1:1 "), "{said}");
    let other = ProxyProcess::start(config)?;
    let mut client = RespClient::connect(other.key_port()?)?;
    for request in [
        "INCR orders",
        "INCRBY orders 3",
        "KEYWRIGHT NEXT orders",
        "GET orders",
        "MGET plain orders",
    ] {
        let refused = client.say(request)?;
        assert!(refused.error()?.starts_with("TAG_ORDERED "), "{refused:?}");
    }
    assert!(client.say("INCR plain")?.integer()? > 0);
    Ok(())
}

#[test]
fn a_rule_for_an_ordered_tag_is_an_error() -> Result<()> {
    let nodes = Nodes::start(1, "")?;
    let config = ProxyConfig {
        upstream_ports: vec![1],
        ..nodes.config.clone()
    };
    let config = ProxyConfig {
        listener: "check = \"warn\"".to_owned(),
        key_ports: Vec::new(),
        http_ports: Vec::new(),
        ..config.rule("shop.orders", "segment:orders")
    };
    let checked = ProxyProcess::command(&config, &["check"])?;
    assert!(!checked.status.success());
    let said = String::from_utf8(checked.stdout)?;
    assert_has(&said, &["error: tag \"orders\" is ordered, so no rule"]);
    Ok(())
}
