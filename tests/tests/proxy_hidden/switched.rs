//! Tables that have, or have had, ids of their own do not go over to hidden keys, nor back from them.

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Reply, Result, WAIT_MAX, assert_has, wait_until,
};

use crate::Shop;

fn with_mode(config: &ProxyConfig, mode: &str) -> ProxyConfig {
    let mut config = config.clone();
    for rule in &mut config.rules {
        rule.push_str(&format!("mode = \"{mode}\"\n"));
    }
    config
}

pub(crate) fn hidden_keys_are_for_tables_without_ids(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour, "")?;
    // The tag is made while the table is empty, which it is not for long.
    ProxyProcess::said(&shop.config, &["init"])?;
    let mut proxy = ProxyProcess::start(with_mode(&shop.config, "observe"))?;
    let mut wire = proxy.wire("shop")?;
    assert_eq!(
        wire.run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        1
    );
    // What was deleted was an id all the same.
    wire.run("DELETE FROM orders")?;
    proxy.reload(with_mode(&shop.config, "rewrite"))?;
    wait_until("the switch to be refused", WAIT_MAX, || {
        Ok(proxy.log().contains("for tables that never had an id"))
    })?;
    assert_eq!(
        wire.run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        2
    );
    proxy.stop()?;

    // Nor is such a tag made for a table with ids.
    shop.server.run(
        "keywright",
        "DELETE FROM keywright_segment WHERE tag = 'orders'",
    )?;
    let said = ProxyProcess::command(&shop.config, &["init"])?;
    assert!(!said.status.success(), "{said:?}");
    let told = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_has(
        &told,
        &["cannot be made", "such a tag begins with empty tables"],
    );
    Ok(())
}

pub(crate) fn tables_with_hidden_keys_do_not_go_back(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour, "")?;
    let mut proxy = shop.open()?;
    let mut wire = proxy.wire("shop")?;
    let key = wire
        .run("INSERT INTO orders (a) VALUES (1)")?
        .last_insert_id;
    assert_eq!(key, 3_542_873_360_303_234);
    proxy.reload(with_mode(&shop.config, "observe"))?;
    wait_until("the way back to be refused", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("keywright release prints how tables leave them"))
    })?;
    let key = wire
        .run("INSERT INTO orders (a) VALUES (1)")?
        .last_insert_id;
    assert_eq!(key, 5_879_817_218_275_551, "it goes on with keys");
    // By hand counters go on above all that a key can be.
    let said = ProxyProcess::said(&shop.config, &["release"])?;
    assert_has(
        &said,
        &["GREATEST(COALESCE(MAX(`id`), 0), 9007199254740991) + 1"],
    );

    // One that comes in its place with ids of its own gets no keys, since these may be among them.
    let mut config = shop.config.clone();
    config
        .more
        .push_str("\n[limits]\nschema_refresh_s = 1\nswitch_wait_ms_max = 1000\n");
    proxy.reload(config)?;
    shop.server.run(
        "shop",
        "DROP TABLE orders;
         CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 50",
    )?;
    wait_until("the table to be told of", WAIT_MAX, || {
        Ok(proxy.log().contains("the table has ids and no fence"))
    })?;
    wait_until("no more keys for it", WAIT_MAX, || {
        let told = wire.query("INSERT INTO orders (a) VALUES (1)")?;
        Ok(matches!(told.as_slice(), [Reply::Failed(fault)] if fault.errno == 1467))
    })?;
    Ok(())
}
