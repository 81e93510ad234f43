//! Keys of a tag that tables have, too: through SQL and through a key port, and as tables go over to it and leave it.

use std::collections::BTreeSet;

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    scratch_dir, wait_until,
};

use super::{PASSWORD, client_as, ok};

const NAMES: &str = "keys = { orders = \"segment:orders\" }\n";
const NATIVE_ROWS: i64 = 3_000;

fn shop(mode: &str, store: &str, server: &Upstream) -> ProxyConfig {
    let mut config = ProxyConfig::before(server, store);
    config.rules.push(format!(
        "table = \"shop.orders\"\ncolumn = \"id\"\nkey = \"segment:orders\"\nmode = \"{mode}\"\n"
    ));
    config.key_ports.push(NAMES.to_owned());
    config
}

/// A server whose table has rows with ids of its own, and a store in it.
fn server_with_rows() -> Result<(Upstream, String)> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        &format!(
            "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
             INSERT INTO shop.orders (a) SELECT seq FROM seq_1_to_{NATIVE_ROWS}"
        ),
    )?;
    let store = make_store(&server, "keywright", &[("orders", 1)])?;
    Ok((server, store))
}

#[test]
fn sql_and_key_ports_share_a_tag() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "keywright", &[("orders", 1)])?;
    let proxy = ProxyProcess::start(shop("rewrite", &store, &server))?;
    let mut wire = proxy.wire("shop")?;
    let mut client = RespClient::connect(proxy.key_port()?)?;
    let mut all = BTreeSet::new();
    for _ in 0..500 {
        let id = wire
            .run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id;
        assert!(all.insert(i64::try_from(id)?));
        assert!(all.insert(client.say("INCR orders")?.integer()?));
        // Known before the INSERT.
        let known = client.say("INCR orders")?.integer()?;
        assert!(all.insert(known));
        wire.run(format!("INSERT INTO orders (id, a) VALUES ({known}, 2)"))?;
    }
    Ok(())
}

/// A program that has a key port and no rule takes part in the switch: it gives no key that a table may have natively.
#[test]
fn keys_follow_tables_that_go_over_to_the_tag_and_leave_it() -> Result<()> {
    let (server, store) = server_with_rows()?;
    let mut proxy = ProxyProcess::start(shop("observe", &store, &server))?;
    let alone = ProxyProcess::start(ProxyConfig {
        store_url: store.clone(),
        key_ports: vec![NAMES.to_owned()],
        ..ProxyConfig::default()
    })?;
    let mut clients = [
        RespClient::connect(proxy.key_port()?)?,
        RespClient::connect(alone.key_port()?)?,
    ];
    // What they have reserved is below the table's own ids.
    for client in &mut clients {
        assert!(client.say("INCR orders")?.integer()? < NATIVE_ROWS);
    }
    proxy.reload(shop("rewrite", &store, &server))?;
    // Requests meanwhile wait, and none fails.
    let mut taken = BTreeSet::new();
    wait_until("the switch", WAIT_MAX, || {
        for client in &mut clients {
            assert!(taken.insert(client.say("INCR orders")?.integer()?));
        }
        Ok(proxy.log().contains("the rule is in force"))
    })?;
    for client in &mut clients {
        let key = client.say("INCR orders")?.integer()?;
        assert!(key > NATIVE_ROWS, "{key}");
        assert!(taken.insert(key));
    }
    let mut wire = proxy.wire("shop")?;
    wire.run("INSERT INTO orders (a) VALUES (1)")?;

    proxy.reload(shop("observe", &store, &server))?;
    wait_until("the way back", WAIT_MAX, || {
        let log = proxy.log();
        Ok(log.matches("the rule is in force").count() == 2)
    })?;
    for client in &mut clients {
        let mut refused = RespValue::Null;
        wait_until("no more keys", WAIT_MAX, || {
            refused = client.say("INCR orders")?;
            Ok(refused.error().is_ok())
        })?;
        assert_has(
            refused.error()?,
            &["KEYS_LEFT tables have left segment:orders"],
        );
    }

    // Nor does it give them from another store.
    let scratch = scratch_dir()?;
    let file = scratch.path().join("far.db");
    let with_far = |pattern: &str| ProxyConfig {
        store_url: store.clone(),
        further_stores: vec![format!(
            "name = \"far\"\nurl = \"file:{}\"\nany_file_system = true\ntags = [\"{pattern}\"]\n",
            file.display()
        )],
        key_ports: vec![NAMES.to_owned()],
        ..ProxyConfig::default()
    };
    // The kit makes the tag by hand.
    let drawn = "UPDATE keywright.keywright_segment SET key_space_id = REPLACE(UUID(), '-', '')";
    server.run("", drawn)?;
    ProxyProcess::said(&with_far("nothing"), &["init"])?;
    let moves = ["tag", "move", "orders", "--to-store", "far"];
    let moved = ProxyProcess::command(&with_far("orders"), &moves)?;
    assert!(!moved.status.success(), "{moved:?}");
    let told = String::from_utf8([moved.stdout, moved.stderr].concat())?;
    assert_has(&told, &["tables have left tag \"orders\""]);
    Ok(())
}

/// A tag that is made through a port begins at 1. Where the store has lost one that is in use, its ids would come again: a rule without fence
/// has nothing else that keeps them apart.
#[test]
fn a_lost_tag_is_made_by_init_alone() -> Result<()> {
    let (server, store) = server_with_rows()?;
    let port = |names: &str| format!("users = true\nkeys = {{ {names}free = \"segment:free\" }}\n");
    let mut config = shop("rewrite", &store, &server);
    config.rules = vec![format!("{}fence = false\n", config.rules.concat())];
    config.key_ports = vec![port("sold = \"segment:orders\", ")];
    let others = ProxyConfig {
        store_url: store,
        key_ports: vec![port("")],
        ..ProxyConfig::default()
    };
    ProxyProcess::said(&config, &["init"])?;
    ProxyProcess::add_user(&config, "maker", PASSWORD, &[("create", "*")])?;
    let proxy = ProxyProcess::start(config.clone())?;
    let alone = ProxyProcess::start(others)?;
    let mut wire = proxy.wire("shop")?;
    wire.run("INSERT INTO orders (a) VALUES (1)")?;
    server.run("keywright", "DELETE FROM keywright_segment")?;
    let by_rule = "tag \"orders\" is that of the rule for shop.orders.id";
    let by_listener = "tag \"free\" is that of the listener 127.0.0.1:";
    for (port, name, by) in [
        (&proxy, "orders", by_rule),
        (&proxy, "sold", by_rule),
        (&proxy, "free", by_listener),
        // Which knows of no rule.
        (&alone, "orders", by_rule),
        (&alone, "free", by_listener),
    ] {
        let mut maker = client_as(port.key_port()?, "maker")?;
        let refused = maker.say(&format!("KEYWRIGHT CREATE {name}"))?;
        let told = ["TAG_IN_USE ", by, "keywright init makes it"];
        assert_has(refused.error()?, &told);
    }
    // That no rule and no listener names.
    let mut maker = client_as(proxy.key_port()?, "maker")?;
    assert_eq!(maker.say("KEYWRIGHT CREATE fresh")?, ok());
    let made = ProxyProcess::said(&config, &["init"])?;
    assert_has(&made, &["created tag \"orders\", above "]);
    Ok(())
}
