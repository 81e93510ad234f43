//! When the proxy is ready and when it is not, and what a reload takes over.

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};

keywright_testkit::on_both_flavours!(
    what_cannot_work_is_not_ready,
    a_table_without_room_stops_no_others,
    a_server_that_waits_less_long_than_the_proxy_is_told,
    while_a_rule_observes_nobody_is_told_to_stop_native_keys,
    a_reload_with_an_unknown_tag_changes_nothing,
    the_store_s_password_is_changed_by_a_reload,
    tags_are_raised_by_init_and_by_hand,
);

/// A server of the test's own with a table, and a store with a tag.
fn shop(flavour: Flavour, options: &[&str]) -> Result<(Upstream, ProxyConfig)> {
    let server = Upstream::start_with(flavour, options)?;
    server.run(
        "mysql",
        "CREATE DATABASE shop; USE shop;
         CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE small (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "keywright", &[("orders", 1000)])?;
    let config = ProxyConfig::before(&server, &store);
    Ok((server, config))
}

fn what_cannot_work_is_not_ready(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    server.run("mysql", "CREATE USER blind@'127.0.0.1'")?;
    let port = server.port();
    let blind = ProxyConfig {
        upstream_ports: Vec::new(),
        more: format!(
            "[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:{port}\"\nadmin = \"mysql://blind@127.0.0.1:{port}\""
        ),
        ..config.clone().rule("shop.orders", "segment:orders")
    };
    let nobody = ProxyConfig {
        more: "[limits]\nconnections_max = 0\n".to_owned(),
        ..config.clone().rule("shop.orders", "segment:orders")
    };
    let mut column = config.clone();
    let rule = "table = \"shop.orders\"\ncolumn = \"nr\"\nkey = \"segment:orders\"\n";
    column.rules.push(rule.to_owned());
    for (config, says) in [
        (
            config.clone().rule("shop.orders", "segment:order"),
            "tag \"order\"",
        ),
        (
            config.clone().rule("shop.order", "segment:orders"),
            "no table matches \"shop.order\" with a column \"id\"",
        ),
        (
            column,
            "no table matches \"shop.orders\" with a column \"nr\"",
        ),
        (
            blind,
            "no table matches \"shop.orders\" with a column \"id\"",
        ),
        (nobody, "connections_max"),
    ] {
        let output = ProxyProcess::command(&config, &["check"])?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said)?;
        assert!(
            !output.status.success() && !said.contains("ready"),
            "{said}"
        );
        assert_has(&said, &[says]);
        if config.upstream_ports.is_empty() {
            continue;
        }
        let refused = ProxyProcess::start(config).map(drop).unwrap_err();
        assert_has(&format!("{refused:#}"), &[says, "it has ended"]);
    }
    Ok(())
}

fn a_server_that_waits_less_long_than_the_proxy_is_told(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    let config = config.rule("shop.orders", "segment:orders");
    let said = ProxyProcess::said(&config, &["check"])?;
    assert!(!said.contains("connect_timeout"), "{said}");
    server.run("mysql", "SET GLOBAL connect_timeout = 4")?;
    let said = ProxyProcess::said(&config, &["check"])?;
    assert_has(
        &said,
        &["connect_timeout is 4000 ms, and answer_ms_max 8000"],
    );
    Ok(())
}

fn a_table_without_room_stops_no_others(flavour: Flavour) -> Result<()> {
    let (_server, config) = shop(flavour, &[])?;
    let config = config
        .rule("shop.small", "snowflake")
        .rule("shop.*", "segment:orders");
    let output = ProxyProcess::command(&config, &["check"])?;
    assert!(!output.status.success());
    let lack = "shop.small.id is int";
    assert_has(&String::from_utf8(output.stdout)?, &["error: ", lack]);
    let proxy = ProxyProcess::start(config.clone())?;
    assert_has(&proxy.log(), &["ERROR", lack]);
    let mut wire = proxy.wire("shop")?;
    assert_eq!(
        wire.run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        1000
    );
    // Also where nothing gets keys yet.
    let (_server, observing) = shop(flavour, &[])?;
    let mut observing = observing.rule("shop.*", "segment:orders");
    observing.rules[0].push_str("mode = \"observe\"\n");
    let proxy = ProxyProcess::start(observing)?;
    let mut wire = proxy.wire("shop")?;
    assert_eq!(
        wire.run("INSERT INTO small (a) VALUES (1)")?.last_insert_id,
        1
    );
    Ok(())
}

fn while_a_rule_observes_nobody_is_told_to_stop_native_keys(flavour: Flavour) -> Result<()> {
    let (_server, config) = shop(flavour, &[])?;
    let mut config = config.rule("shop.orders", "stride:orders");
    config.rules[0].push_str("offset = 1\nincrement = 2\n");
    assert_has(
        &ProxyProcess::said(&config, &["check"])?,
        &["AUTO_INCREMENT = "],
    );
    let mut observing = config;
    observing.rules[0].push_str("fence = false\nmode = \"observe\"\n");
    let said = ProxyProcess::said(&observing, &["check"])?;
    assert!(!said.contains("AUTO_INCREMENT"), "{said}");
    Ok(())
}

fn a_reload_with_an_unknown_tag_changes_nothing(flavour: Flavour) -> Result<()> {
    let (_server, config) = shop(flavour, &[])?;
    let config = config.rule("shop.orders", "segment:orders");
    let mut proxy = ProxyProcess::start(config.clone())?;
    let wrong = ProxyConfig {
        rules: Vec::new(),
        ..config
    }
    .rule("shop.orders", "snowflake")
    .rule("shop.small", "segment:smal");
    proxy.reload(wrong)?;
    wait_until("the reload", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("reload failed, keeping the previous configuration"))
    })?;
    assert_has(&proxy.log(), &["tag \"smal\""]);
    let mut wire = proxy.wire("shop")?;
    assert_eq!(
        wire.run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        1000
    );
    assert_eq!(
        wire.run("INSERT INTO small (a) VALUES (1)")?.last_insert_id,
        1
    );
    Ok(())
}

fn the_store_s_password_is_changed_by_a_reload(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    server.run(
        "mysql",
        "CREATE USER kw@'127.0.0.1' IDENTIFIED BY 'old'; GRANT ALL ON keywright.* TO kw@'127.0.0.1';
         UPDATE keywright.keywright_segment SET step = 10, step_min = 10, step_max = 10",
    )?;
    let url = |password: &str| {
        format!(
            "mysql://kw:{password}@127.0.0.1:{}/keywright",
            server.port()
        )
    };
    let by = |password: &str| {
        let config = ProxyConfig {
            store_url: url(password),
            ..config.clone()
        };
        config.rule("shop.orders", "segment:orders")
    };
    let mut proxy = ProxyProcess::start(by("old"))?;
    proxy.reload(by("wrong"))?;
    wait_until("the reload", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("reload failed, keeping the previous configuration"))
    })?;
    let mut wire = proxy.wire("shop")?;
    let mut insert = || wire.run("INSERT INTO orders (a) VALUES (1)").map(drop);
    insert()?;
    server.run("mysql", "ALTER USER kw@'127.0.0.1' IDENTIFIED BY 'new'")?;
    let connected = server.run(
        "mysql",
        "SELECT id FROM information_schema.processlist WHERE user = 'kw'",
    )?;
    for id in connected.iter().flatten() {
        server.run("mysql", &format!("KILL {id}"))?;
    }
    // All that is reserved is used up, and then there is nothing.
    let refused = (0..200).find_map(|_| insert().err());
    assert!(refused.is_some(), "the store was not needed");
    proxy.reload(by("new"))?;
    wait_until("keys", WAIT_MAX, || Ok(insert().is_ok()))?;
    for _ in 0..200 {
        insert()?;
    }
    Ok(())
}

fn tags_are_raised_by_init_and_by_hand(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    let config = config.rule("shop.orders", "segment:orders");
    let next = || -> Result<String> {
        let rows = server.run("keywright", "SELECT hi FROM keywright_segment")?;
        Ok(rows[0][0].clone())
    };
    let said = ProxyProcess::said(&config, &["init"])?;
    assert!(!said.contains("raised"), "{said}");
    server.run("shop", "INSERT INTO orders VALUES (5000, 1)")?;
    let said = ProxyProcess::said(&config, &["init"])?;
    assert_has(
        &said,
        &["raised tag \"orders\" above 5000, the highest id in `shop`.`orders`"],
    );
    assert_eq!(next()?, "5001");
    let said = ProxyProcess::said(&config, &["advance", "orders", "--above", "70000"])?;
    assert_has(&said, &["tag \"orders\" goes on at 70001"]);
    assert_eq!(next()?, "70001");
    let output = ProxyProcess::command(&config, &["advance", "order", "--above", "7"])?;
    assert!(!output.status.success());
    assert_has(
        &String::from_utf8(output.stderr)?,
        &["tag \"order\" is not in"],
    );
    // One digit too many is for ever.
    server.run(
        "keywright",
        "UPDATE keywright_segment SET id_max = 2147483647",
    )?;
    let to_the_end = ["advance", "orders", "--above", "2147483647"];
    let output = ProxyProcess::command(&config, &to_the_end)?;
    assert!(!output.status.success());
    assert_has(&String::from_utf8(output.stderr)?, &["--use-up"]);
    assert_eq!(next()?, "70001");
    let used_up = [to_the_end.as_slice(), &["--use-up"]].concat();
    let said = ProxyProcess::said(&config, &used_up)?;
    assert_has(
        &said,
        &["tag \"orders\" has no ids left: 2147483647 is its largest"],
    );
    Ok(())
}
