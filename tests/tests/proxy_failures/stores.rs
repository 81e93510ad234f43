//! Stores that are away, or that have no keys for such a rule.

use anyhow::{Context, bail};
use keywright_core::cause::Cause;
use keywright_testkit::{
    Flavour, ProxyProcess, Result, SqlFault, Upstream, WAIT_MAX, make_store, scratch_dir,
    wait_until,
};

use super::{Shop, expect, goes_on, refusal};

/// Rows of one INSERT while the store is away.
const ROWS: usize = 100;
/// More keys than are ever reserved ahead here.
const KEYS_MAX: usize = 10_000_000;

/// A program does not start with a rule for an ordered tag. Where it could not ask the store when it started, the statement is refused.
pub(super) fn a_tag_that_is_ordered(shop: &Shop) -> Result<()> {
    let mut store =
        Upstream::start_with(Flavour::MariaDb, &["--innodb-flush-log-at-trx-commit=1"])?;
    let mut config = shop.config.clone();
    config.store_url = make_store(&store, "keywright", &[("orders", 1)])?;
    // Tables of such a rule are not switched, so that it needs no store to begin.
    shop.server.run(
        "shop",
        "CREATE TABLE in_order (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT)",
    )?;
    for rule in &mut config.rules {
        *rule = rule.replace("shop.orders", "shop.in_order").replace(
            "\"segment:orders\"",
            "\"stride:orders\"\noffset = 1\nincrement = 2",
        );
    }
    store.run(
        "keywright",
        "UPDATE keywright_segment SET issue_order = 'monotonic'",
    )?;
    let Err(refused) = ProxyProcess::start(config.clone()) else {
        bail!("it started");
    };
    let said = format!("{refused:#}");
    assert!(said.contains("tag \"orders\" is ordered"), "{said}");
    store.kill9()?;
    let proxy = ProxyProcess::start(config)?;
    store.restart()?;
    let mut wire = proxy.wire("shop")?;
    let mut fault = None;
    wait_until("the store's answer", WAIT_MAX, || {
        let insert = "INSERT INTO in_order (a) VALUES ('first')";
        fault = refusal(wire.query(insert)?);
        let of_store =
            |fault: &SqlFault| String::from_utf8_lossy(&fault.message).contains("the store at");
        Ok(!fault.as_ref().is_some_and(of_store))
    })?;
    let fault = fault.context("it was not refused")?;
    expect(Cause::TagOrdered, &fault, "tag \"orders\" is ordered");
    goes_on(&mut wire)
}

/// Where there are several stores, the tag's row must list the others.
pub(super) fn a_tag_that_may_be_open_elsewhere(shop: &Shop) -> Result<()> {
    let scratch = scratch_dir()?;
    let mut config = shop.config.clone();
    let file = scratch.path().join("far.db");
    config.further_stores = vec![format!(
        "name = \"far\"\ntags = [\"far.*\"]\nany_file_system = true\nurl = \"file:{}\"\n",
        file.display()
    )];
    let named =
        "UPDATE keywright_segment SET key_space_id = REPEAT('a', 32) WHERE key_space_id = ''";
    shop.server.run("keywright", named)?;
    ProxyProcess::said(&config, &["init"])?;
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("shop")?;
    let insert = "INSERT INTO orders (a) VALUES ('b')";
    wire.run(insert)?;
    shop.server
        .run("keywright", "UPDATE keywright_segment SET closed_in = NULL")?;
    let rows = vec!["('more')"; ROWS].join(",");
    let mut found = None;
    wait_until("the end of what is held", WAIT_MAX, || {
        found = refusal(wire.query(format!("INSERT INTO orders (a) VALUES {rows}"))?);
        Ok(found.is_some())
    })?;
    let fault = found.context("a refusal")?;
    expect(
        Cause::TagHomeUnknown,
        &fault,
        "is not known to be closed in store \"far\"",
    );
    goes_on(&mut wire)
}

/// What is left is issued; then inserts fail, and everything else goes on.
pub(super) fn a_store_that_is_away(shop: &Shop) -> Result<()> {
    // One that lost its last commits would have gone back.
    let durable = ["--innodb-flush-log-at-trx-commit=1"];
    let mut store = Upstream::start_with(Flavour::MariaDb, &durable)?;
    let mut config = shop.config.clone();
    config.store_url = make_store(&store, "keywright", &[("orders", 1_000_000)])?;
    // The fence of the others is that of another store's keys.
    shop.server
        .run("shop", "CREATE TABLE elsewhere LIKE orders")?;
    for rule in &mut config.rules {
        *rule = rule.replace("shop.orders", "shop.elsewhere");
    }
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("shop")?;
    wire.run("INSERT INTO elsewhere (a) VALUES ('first')")?;
    store.kill9()?;
    let rows = vec!["('more')"; ROWS].join(",");
    let mut issued = 0;
    let fault = loop {
        match refusal(wire.query(format!("INSERT INTO elsewhere (a) VALUES {rows}"))?) {
            None => issued += ROWS,
            Some(fault) => break fault,
        }
        assert!(issued < KEYS_MAX, "keys without a store");
    };
    assert!(issued > 0, "nothing was left in memory");
    expect(Cause::StoreUnavailable, &fault, "the store at 127.0.0.1:");
    goes_on(&mut wire)?;
    wire.run("UPDATE elsewhere SET a = 'second' WHERE a = 'first'")?;
    store.restart()?;
    wait_until("keys again", WAIT_MAX, || {
        Ok(refusal(wire.query("INSERT INTO elsewhere (a) VALUES ('third')")?).is_none())
    })
}
