//! Connections and programs that come to their end while tables go over.

use keywright_testkit::{
    Flavour, Login, ProxyProcess, Reply, Result, WAIT_MAX, Wire, assert_has, wait_until,
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
