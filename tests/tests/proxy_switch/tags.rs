//! Several tags that are switched on together.

use keywright_testkit::{Flavour, ProxyProcess, Result};

use crate::{Shop, id};

/// Tables that share no tag share no ids: one whose ids are high raises its own tag alone.
pub(crate) fn each_tag_begins_above_its_own_tables(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let raise = "ALTER TABLE line AUTO_INCREMENT = 1000000000000";
    shop.server.run("shop", raise)?;
    let config = shop.with("one", "rewrite").rule("shop.line", "segment:two");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("shop")?;
    let first = id(wire.query("INSERT INTO orders (a) VALUES (1)")?)?;
    let other = id(wire.query("INSERT INTO line (a) VALUES (1)")?)?;
    assert_eq!((first, other), (500, 1_000_000_000_000));
    Ok(())
}
