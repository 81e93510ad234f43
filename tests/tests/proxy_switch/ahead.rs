//! Tables in force without their fence that have ids of their own: keys go on above them, and until then there are none.

use std::time::{Duration, Instant};

use keywright_core::Cause;
use keywright_testkit::{
    AT_FENCE, Flavour, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, Wire, wait_until,
};

use super::{Shop, id, rule};

pub(super) fn is_fenced(direct: &mut Wire, table: &str) -> Result<bool> {
    let replies = direct.query(format!("INSERT INTO {table} (a) VALUES (0)"))?;
    let is_refused =
        matches!(replies.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno));
    if !is_refused {
        id(replies)?;
    }
    Ok(is_refused)
}

/// MariaDB servers of one id, host name, port and directory cannot be told from each other: here the store has been told of another
/// server what it knows of the first.
pub(super) fn a_server_taken_for_another_gets_no_keys_among_its_ids(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let first = ProxyProcess::start(shop.with("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    // From now on it has a range, in the middle of which the other table's own ids are.
    let mut firsts = first.wire("shop")?;
    id(firsts.query("INSERT INTO orders (a) VALUES (1)")?)?;
    let other = Upstream::start(flavour)?;
    other.run(
        "mysql",
        "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 800",
    )?;
    let mut direct = other.wire("shop")?;
    let last = id(direct.query("INSERT INTO orders (a) VALUES (1), (2)")?)? + 1;
    direct.run("DELETE FROM orders")?;
    let identity = match flavour {
        Flavour::MySql => "CONCAT('uuid=', @@server_uuid)",
        Flavour::MariaDb => {
            "CONCAT('id=', @@server_id, ' port=', @@port, ' host=', @@hostname, ' data=', @@datadir)"
        }
    };
    let identity = direct.rows(format!("SELECT {identity}"))?.concat().concat();
    let mut store = shop.server.wire("keywright")?;
    store.run(format!(
        "INSERT INTO keywright_rule_server SELECT table_pattern, column_name, '{identity}' FROM keywright_rule"
    ))?;
    let mut config = shop.with("one", "rewrite");
    config.upstream_ports = vec![other.port()];
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("shop")?;
    let key = id(wire.query("INSERT INTO orders (a) VALUES (3)")?)?;
    assert!(key > last, "{key} was the table's own: {}", proxy.log());
    assert!(is_fenced(&mut direct, "orders")?);
    let key = id(firsts.query("INSERT INTO orders (a) VALUES (4)")?)?;
    assert!(
        key > last,
        "{key} was the other table's own: {}",
        first.log()
    );
    Ok(())
}

/// A program that starts again goes by what its file said when that was in force, however short that was ago.
pub(super) fn a_restart_right_behind_a_switch_switches_back(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.with("one", "observe"))?;
    for _ in 0..3 {
        for (mode, wanted) in [("rewrite", Some("one")), ("observe", None)] {
            proxy.stop()?;
            proxy.reconfigure(shop.with("one", mode));
            proxy.restart()?;
            shop.wait_for(wanted)?;
        }
    }
    Ok(())
}

/// Above all that was reserved of a tag.
const BEYOND: u64 = 10_000_000;

/// What is highest in a table does not tell which ids it had.
pub(super) fn keys_go_on_above_a_table_that_is_renamed_into_a_rule(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut config = shop.config.clone();
    config.rules = vec![rule("one", "rewrite").replace("shop.orders", "shop.or*")];
    config.more = "[limits]\nschema_refresh_s = 1\nswitch_wait_ms_max = 20000\n".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("shop")?;
    let before = id(wire.query("INSERT INTO orders (a) VALUES (1)")?)?;
    wire.run("CREATE TABLE archive (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")?;
    let mut direct = shop.server.wire("shop")?;
    direct.run(format!(
        "INSERT INTO archive VALUES ({}, 0)",
        before + BEYOND
    ))?;
    direct.run("DELETE FROM archive")?;
    let bound = wire.prepare("INSERT INTO orders (a) VALUES (?)")??;
    // One that has touched another table of the rule is waited for: it does not wait in turn.
    let mut open = proxy.wire("shop")?;
    open.run("BEGIN")?;
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    direct.run("RENAME TABLE archive TO or_archive")?;
    wait_until("the look", WAIT_MAX, || {
        Ok(proxy.log().contains("the table has ids and no fence"))
    })?;
    let began = Instant::now();
    wait_until("the refusal", WAIT_MAX, || {
        let replies = open.query("INSERT INTO or_archive (a) VALUES (1)")?;
        let no_keys = Cause::TableAhead.mysql_errno();
        Ok(matches!(replies.as_slice(), [Reply::Failed(fault)] if fault.errno == no_keys))
    })?;
    assert!(began.elapsed() < Duration::from_secs(15));
    open.run("ROLLBACK")?;
    wait_until("the fence", WAIT_MAX, || {
        is_fenced(&mut direct, "or_archive")
    })?;
    let highest = direct.rows("SELECT COALESCE(MAX(id), 0) FROM or_archive")?;
    let highest: u64 = highest.concat().concat().parse()?;
    for sql in [
        "INSERT INTO or_archive (a) VALUES (1)",
        "INSERT INTO orders (a) VALUES (1)",
    ] {
        let key = id(wire.query(sql)?)?;
        assert!(
            key > highest.max(before + BEYOND),
            "{sql}: {key}, {highest}"
        );
    }
    let key = id(wire.execute(&bound, &[keywright_testkit::Param::Signed(2)])?)?;
    assert!(key > highest, "{key}");
    Ok(())
}

/// So many keys programs have left below.
const LEFT: u64 = 500;

/// Its ids are among those that programs have reserved: what these have left of it they give no more, wherever. Keys that tables had before
/// they came to have their fence are no ids of their own.
pub(super) fn ids_of_a_table_that_is_renamed_into_a_rule_are_given_to_no_table(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let with = |more: &str| {
        let mut config = shop.config.clone();
        config.rules = vec![rule("one", "rewrite").replace("shop.orders", "shop.or*")];
        config.more = more.to_owned();
        config
    };
    let config = with("[limits]\nschema_refresh_s = 1\n");
    let proxy = ProxyProcess::start(config.clone())?;
    // It looks at the servers long after the test.
    let other = ProxyProcess::start(with("[limits]\nschema_refresh_s = 3600\n"))?;
    let mut wires = [proxy.wire("shop")?, other.wire("shop")?];
    let insert = |wire: &mut Wire| id(wire.query("INSERT INTO orders (a) VALUES (1)")?);
    let mut direct = shop.server.wire("shop")?;
    let first =
        direct.rows("SELECT first_id FROM keywright.keywright_segment WHERE tag = 'one'")?;
    let first = first.concat().concat();

    // Ids that both still have: rows, and such as no row has any more.
    let next = wires.iter_mut().try_fold(0, |next, wire| {
        Ok::<u64, anyhow::Error>(next.max(insert(wire)? + LEFT))
    })?;
    direct.run("CREATE TABLE archive (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")?;
    direct.run(format!(
        "INSERT INTO archive VALUES (1, 0), ({}, 0)",
        next - 1
    ))?;
    direct.run(format!("DELETE FROM archive WHERE id = {}", next - 1))?;
    let said = || ProxyProcess::said(&config, &["check"]);
    assert!(!said()?.contains("archive"));
    direct.run("RENAME TABLE archive TO or_archive")?;
    // Nobody asks the table, which would make ids until then.
    let wait_for_fence = |table: &str| {
        let applied = format!("fence applied table=\"`shop`.`{table}`\"");
        wait_until("the fence", WAIT_MAX, || Ok(proxy.log().contains(&applied)))
    };
    wait_for_fence("or_archive")?;
    assert!(is_fenced(&mut direct, "or_archive")?);
    for wire in &mut wires {
        let mut given = 0;
        wait_until("keys above", WAIT_MAX, || {
            given += 1;
            Ok(insert(wire)? >= next)
        })?;
        assert!(given < LEFT, "what was left was given");
    }
    let found =
        format!("ids below {next} that are not all keys, while keys are given from {first} on");
    assert!(proxy.log().contains(&found), "{}", proxy.log());
    assert!(said()?.contains(&found), "{}", said()?);
    let figure = "keywright_late_tables_total{rule=\"shop.or*.id\"} 1";
    let (_, figures) = proxy.http_get("/metrics")?;
    assert!(figures.contains(figure), "{figures}");

    // Keys alone are no ids of its own.
    wires[0].run("CREATE TABLE or_new (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")?;
    wires[0].run("INSERT INTO or_new (a) VALUES (1)")?;
    wait_for_fence("or_new")?;
    assert!(is_fenced(&mut direct, "or_new")?);
    assert!(!proxy.log().contains("`or_new` on"), "{}", proxy.log());
    Ok(())
}
