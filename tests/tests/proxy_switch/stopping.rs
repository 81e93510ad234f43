//! Connections and programs that come to their end while tables go over.

use keywright_testkit::redis::RespClient;
use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Reply, Result, WAIT_MAX, Wire, assert_has,
    wait_until,
};

use crate::{Shop, id, rule};

pub(crate) fn a_connection_without_rules_is_ended_before_a_switch(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.config.clone())?;
    let mut old = proxy.wire("shop")?;
    assert_eq!(
        old.run("INSERT INTO orders (a) VALUES (1)")?.last_insert_id,
        500
    );
    proxy.reload(shop.with("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    let (output, _) = old.read_to_end();
    assert!(!output.is_empty(), "it is told why");
    assert!(
        proxy
            .wire("shop")?
            .run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id
            > 500
    );
    Ok(())
}

/// Nobody waited for it: it was no connection yet when the tables went over.
pub(crate) fn a_connection_whose_login_outlasts_a_switch_makes_no_ids(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.config.clone())?;
    let port = proxy.port();
    let mut late = Wire::connect_slowly(port, &Login::root("shop"), || {
        let rule = rule("one", "rewrite").replace("fence = true", "fence = false");
        let mut config = shop.config.clone();
        config.rules.push(rule);
        proxy.reload(config)?;
        shop.wait_for(Some("one"))
    })?;
    late.send_query("INSERT INTO orders (a) VALUES (1)")?;
    match late.read_query()?.as_slice() {
        [Reply::Failed(fault)] => assert_has(&fault.to_string(), &["connect again"]),
        other => panic!("{other:?}"),
    }
    let mut server = shop.server.wire("shop")?;
    assert_eq!(server.rows("SELECT COUNT(*) FROM orders")?, [["0"]]);
    Ok(())
}

pub(crate) fn one_that_is_at_something_is_ended_behind_it(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.config.clone())?;
    let (mut idle, mut waits) = (proxy.wire("shop")?, proxy.wire("shop")?);
    let mut open = proxy.wire("shop")?;
    let mut locks = shop.server.wire("shop")?;
    assert!(locks.rows("SELECT GET_LOCK('slow', 0)")? == [["1"]]);
    waits.send_query("SELECT GET_LOCK('slow', 60)")?;
    open.run("BEGIN")?;
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    proxy.reload(shop.with("one", "observe"))?;
    let (output, _) = idle.read_to_end();
    assert!(!output.is_empty(), "it is told why");
    // Each of them got the same orders at the same time.
    assert_eq!(open.rows("SELECT COUNT(*) FROM orders")?, [["1"]]);
    locks.run("DO RELEASE_LOCK('slow')")?;
    match waits.read_query()?.as_slice() {
        [Reply::Rows(rows)] => assert_eq!(rows.as_text(), [["1"]]),
        other => panic!("{other:?}"),
    }
    open.run("COMMIT")?;
    for wire in [&mut open, &mut waits] {
        let (output, _) = wire.read_to_end();
        assert!(!output.is_empty(), "it is told why");
    }
    Ok(())
}

pub(crate) fn a_program_that_stops_goes_along_until_its_connections_have_ended(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut begins = ProxyProcess::start(shop.with("one", "observe"))?;
    let mut stops = ProxyProcess::start(shop.with("one", "observe"))?;
    let mut open = begins.wire("shop")?;
    let (mut held, mut last) = (stops.wire("shop")?, stops.wire("shop")?);
    open.run("BEGIN")?;
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    last.run("BEGIN")?;
    begins.reload(shop.with("one", "rewrite"))?;
    wait_until("the hold of the other", WAIT_MAX, || {
        let held = "SELECT COUNT(*) FROM keywright.keywright_program WHERE held IS NOT NULL";
        Ok(shop.server.wire("shop")?.rows(held)? == [["1"]])
    })?;
    held.send_query("INSERT INTO orders (a) VALUES (2)")?;
    stops.begin_stop()?;
    wait_until("the end of new connections", WAIT_MAX, || {
        Ok(stops.wire("shop").is_err())
    })?;
    // What waits there goes on when the attempt is over, however that ends.
    open.run("COMMIT")?;
    id(held.read_query()?)?;
    shop.wait_for(Some("one"))?;
    // The next one is not held up either.
    begins.reload(shop.with("two", "rewrite"))?;
    shop.wait_for(Some("two"))?;
    assert!(stops.is_running()?, "{}", begins.log());
    last.run("COMMIT")?;
    Ok(())
}

/// It has said that it is there, has reserved a range and leased a worker id, and waits for a program that does not hold. What it has begun is given up.
pub(crate) fn a_program_that_stops_while_it_starts_leaves_nothing_behind(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = |mode: &str, wait_ms_max: u64| ProxyConfig {
        key_ports: vec![
            "keys = { three = \"segment:three\", flakes = \"snowflake\" }\n".to_owned(),
        ],
        more: format!("[limits]\nswitch_wait_ms_max = {wait_ms_max}\n[snowflake]\nworker_id = 7\n"),
        ..shop.with("one", mode)
    };
    let mut proxy = ProxyProcess::start(config("observe", 3_000))?;
    RespClient::connect(proxy.key_port()?)?
        .say("INCR three")?
        .integer()?;
    proxy.stop()?;
    let mut store = shop.server.wire("keywright")?;
    let returned = "SELECT COUNT(*) > 0 FROM keywright_returned WHERE tag = 'three'";
    let leased = "SELECT COUNT(*) FROM keywright_worker WHERE owner IS NOT NULL";
    assert_eq!(store.rows(returned)?, [["1"]]);
    store.run(
        "INSERT INTO keywright_program (program, holder, seen_at) \
         VALUES ('other', 'elsewhere', UTC_TIMESTAMP(3) + INTERVAL 1 DAY)",
    )?;
    proxy.reconfigure(config("rewrite", 600_000));
    proxy.begin()?;
    wait_until("a start that waits for the other", WAIT_MAX, || {
        let held = "SELECT COUNT(*) FROM keywright_program WHERE held IS NOT NULL";
        let is_waiting = store.rows(held)? == [["1"]];
        Ok(is_waiting && store.rows(leased)? == [["1"]] && store.rows(returned)? == [["0"]])
    })?;
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    let programs = store.rows("SELECT program FROM keywright_program")?;
    assert_eq!(programs, [["other"]], "{}", proxy.log());
    assert_eq!(store.rows(leased)?, [["0"]], "{}", proxy.log());
    assert_eq!(store.rows(returned)?, [["1"]], "{}", proxy.log());
    let phase = store.rows("SELECT phase FROM keywright_switch")?;
    assert_eq!(phase, [["ending"]], "{}", proxy.log());

    // Whoever starts next has the worker id, and need not wait for the one before, nor until its attempt is late.
    store.run("DELETE FROM keywright_program")?;
    proxy.restart()?;
    let mut client = RespClient::connect(proxy.key_port()?)?;
    assert!(client.say("INCR flakes")?.integer()? > 1 << 40);
    shop.wait_for(Some("one"))?;
    Ok(())
}

/// Another one's statements wait for the attempt, and it may take for ever: whoever began it is missed sooner.
pub(crate) fn a_program_that_is_killed_while_it_leads_holds_nobody_up(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = |mode: &str| ProxyConfig {
        more: "[limits]\nswitch_wait_ms_max = 600000\n".to_owned(),
        ..shop.with("one", mode)
    };
    let mut leads = ProxyProcess::start(config("observe"))?;
    let other = ProxyProcess::start(config("observe"))?;
    let (mut open, mut waits) = (other.wire("shop")?, other.wire("shop")?);
    open.run("BEGIN")?;
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    leads.reload(config("rewrite"))?;
    let mut store = shop.server.wire("keywright")?;
    wait_until("the hold of the one that leads", WAIT_MAX, || {
        let held = "SELECT COUNT(*) FROM keywright_program WHERE held IS NOT NULL";
        Ok(store.rows(held)? == [["1"]])
    })?;
    leads.kill9()?;
    wait_until("the end of the attempt", WAIT_MAX, || {
        Ok(store.rows("SELECT phase FROM keywright_switch")? == [["none"]])
    })?;
    let native = id(waits.query("INSERT INTO orders (a) VALUES (2)")?)?;
    assert_eq!(native, 501, "{}", other.log());
    open.run("COMMIT")?;
    Ok(())
}
