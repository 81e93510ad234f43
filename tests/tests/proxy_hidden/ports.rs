//! Key ports and other programs: what they get of a tag whose keys hide how many there are.

use std::collections::BTreeSet;

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{ProxyConfig, ProxyProcess, Result, assert_has, scratch_dir};
use tempfile::TempDir;

use crate::{KEY, hidden};

const KEYS: &str = "keys = { orders = \"segment:orders\" }\n";

/// A program with both kinds of key port over a store in a file.
fn open() -> Result<(TempDir, ProxyConfig, ProxyProcess)> {
    let scratch = scratch_dir()?;
    let config = ProxyConfig {
        http_ports: vec![KEYS.to_owned()],
        ..ProxyConfig::key_port(&scratch.path().join("store.db"), KEYS)
    };
    let config = hidden(config, 31, KEY);
    ProxyProcess::said(&config, &["init"])?;
    let proxy = ProxyProcess::start(config.clone())?;
    Ok((scratch, config, proxy))
}

#[test]
fn key_ports_give_hidden_keys_or_none() -> Result<()> {
    let (_scratch, config, proxy) = open()?;
    let mut client = RespClient::connect(proxy.key_port()?)?;
    let mut keys = BTreeSet::from([client.say("INCR orders")?.integer()?]);
    for run in ["INCRBY orders 2", "INCRBY orders 100"] {
        assert_has(client.say(run)?.error()?, &["1"]);
    }
    match client.say("KEYWRIGHT NEXT orders COUNT 3")? {
        RespValue::Array(listed) => {
            for key in &listed {
                keys.insert(key.integer()?);
            }
        }
        other => panic!("{other:?}"),
    }
    let said = format!("{:?}", client.say("KEYWRIGHT LIST")?);
    assert_has(&said, &["segment:orders hidden:31"]);
    let words: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let numbers = ProxyProcess::said(&config, &[&["tag", "number", "orders"], &*words].concat())?;
    let numbers: BTreeSet<&str> = numbers.lines().collect();
    assert_eq!(numbers, BTreeSet::from(["1", "2", "3", "4"]));
    assert!(
        keys.contains(&2_017_696_260),
        "as PostgreSQL's of the same key: {keys:?}"
    );
    Ok(())
}

#[test]
fn nobody_makes_ranges_of_hidden_keys() -> Result<()> {
    let (_scratch, config, proxy) = open()?;
    let near = ProxyConfig {
        store_url: format!("redis://127.0.0.1:{}", proxy.key_port()?),
        key_ports: vec![KEYS.to_owned()],
        ..ProxyConfig::default()
    };
    let error = ProxyProcess::said(&near, &["check"]).unwrap_err();
    assert_has(
        &format!("{error:#}"),
        &["hide how many there are (hide_bits = 31)"],
    );
    // It keeps no fingerprint, so it cannot have such tags of its own either.
    let error = ProxyProcess::said(&hidden(near, 31, KEY), &["check"]).unwrap_err();
    assert_has(&format!("{error:#}"), &["[[hidden_tag]] needs a store"]);
    // A server that is fed has no key for that.
    let fed = ProxyConfig {
        more: format!(
            "{}\n[[feed]]\nurl = \"postgres://x@127.0.0.1/x\"\ntags = [\"orders\"]\n",
            config.more
        ),
        ..config
    };
    let error = ProxyProcess::said(&fed, &["check"]).unwrap_err();
    assert_has(
        &format!("{error:#}"),
        &["hides how many keys there are, and fed databases have no key"],
    );
    Ok(())
}
