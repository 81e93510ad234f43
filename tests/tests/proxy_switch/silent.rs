//! A program that was silent while others switched, and cannot follow at once.

use std::collections::BTreeSet;

use keywright_testkit::redis::RespClient;
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Shop, rule};

/// How long a reload takes whose server says nothing, milliseconds.
const RELOAD_MS: i64 = 10_000;
/// Ids that a table has before it goes over.
const NATIVE_MAX: i64 = 60_000;

/// While something is under way by what was in force before, its key port gives nothing of what a table leaves, and of all else nothing
/// that a table may have natively.
pub(super) fn a_key_port_goes_by_what_its_program_knows_before_it_follows(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    shop.server.run(
        "shop",
        &format!(
            "CREATE TABLE item (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = {NATIVE_MAX};
             INSERT INTO item (a) VALUES (1)"
        ),
    )?;
    let config = |key: &str, of_items: &str| ProxyConfig {
        rules: vec![
            rule(key, "rewrite"),
            rule("one", "rewrite").replace("shop.orders", "shop.line"),
            rule("three", of_items).replace("shop.orders", "shop.item"),
        ],
        key_ports: vec!["keys = { one = \"segment:one\", three = \"segment:three\" }\n".to_owned()],
        more: "[limits]\nswitch_peer_wait_s = 1\nswitch_wait_ms_max = 2000\n".to_owned(),
        ..shop.config.clone()
    };
    let in_force = |wanted: &[&str]| -> Result<()> {
        let sql = "SELECT SUBSTRING(key_space, 9) FROM keywright.keywright_rule WHERE key_space IS NOT NULL ORDER BY 1";
        wait_until(&format!("{wanted:?} to be in force"), WAIT_MAX, || {
            let tags = shop.server.wire("shop")?.rows(sql)?.concat();
            Ok(tags.iter().filter(|tag| !tag.is_empty()).eq(wanted))
        })
    };
    let mut leads = ProxyProcess::start(config("one", "observe"))?;
    in_force(&["one", "one"])?;
    let away = ProxyProcess::start(config("one", "observe"))?;
    // It names a table of the rule, so it counts as under way; on the server it locks nothing.
    let mut open = away.wire("shop")?;
    open.run("BEGIN")?;
    open.rows("SELECT 'orders'")?;
    let mut client = RespClient::connect(away.key_port()?)?;
    let mut given = BTreeSet::new();
    for name in ["one", "three"] {
        let key = client.say(&format!("INCR {name}"))?.integer()?;
        assert!(key < NATIVE_MAX, "{name}: {key}");
        given.insert((name, key));
    }

    let pid = Pid::from_raw(i32::try_from(away.pid()?)?);
    kill(pid, Signal::SIGSTOP)?;
    leads.reload(config("two", "rewrite"))?;
    in_force(&["one", "three", "two"])?;
    kill(pid, Signal::SIGCONT)?;
    wait_until("no more keys that a table leaves", WAIT_MAX, || {
        let said = client.say("INCR one")?;
        if let Ok(key) = said.integer() {
            assert!(given.insert(("one", key)));
            return Ok(false);
        }
        assert_has(said.error()?, &["tables go over to the keys of"]);
        Ok(true)
    })?;
    for _ in 0..20 {
        let key = client.say("INCR three")?.integer()?;
        assert!(key > NATIVE_MAX, "{key} may be a native id");
        assert!(given.insert(("three", key)));
    }
    // Nor by the transaction itself: a table that came to the tag meanwhile may have what was reserved before.
    let insert = "INSERT INTO orders (a) VALUES (1)";
    let refused = open.run(insert).expect_err("its keys have been left");
    assert_has(&refused.to_string(), &["this program cannot follow yet"]);
    open.run("COMMIT")?;
    wait_until("what the store says to be followed", WAIT_MAX, || {
        let Ok(key) = client.say("INCR one")?.integer() else {
            return Ok(false);
        };
        assert!(given.insert(("one", key)));
        Ok(true)
    })?;
    open.run(insert)?;
    Ok(())
}

/// Its server says nothing more while the file is read: that is no silence of the program.
pub(super) fn a_program_is_heard_of_while_it_reads_its_file(flavour: Flavour) -> Result<()> {
    let store = Upstream::start_with(flavour, &[])?;
    let server = Upstream::start_with(flavour, &[])?;
    server.run(
        "mysql",
        "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let proxy = ProxyProcess::start(ProxyConfig {
        store_url: make_store(&store, "keywright", &[("one", 1)])?,
        upstream_ports: vec![server.port()],
        rules: vec![rule("one", "observe")],
        more: format!("[limits]\nconnect_ms_max = {RELOAD_MS}\n"),
        ..ProxyConfig::default()
    })?;
    let mut store = store.wire("keywright")?;
    let silent = "SELECT COALESCE(MAX(TIMESTAMPDIFF(MICROSECOND, seen_at, UTC_TIMESTAMP(6)) DIV 1000), 0) FROM keywright_program";
    server.signal(Signal::SIGSTOP)?;
    proxy.reload_again()?;
    let mut longest_ms = 0;
    wait_until("the end of the reload", WAIT_MAX, || {
        let ms = store.rows(silent)?.concat().concat().parse::<i64>()?;
        longest_ms = longest_ms.max(ms);
        Ok(proxy.log().contains("reload failed"))
    })?;
    server.signal(Signal::SIGCONT)?;
    assert!((1..RELOAD_MS / 2).contains(&longest_ms), "{longest_ms} ms");
    Ok(())
}
