//! Tables that come to a rule late, and a program that dies on the way to their fence.

use std::collections::BTreeMap;

use keywright_testkit::{Flavour, ProxyProcess, Result, WAIT_MAX, Wire, wait_until};

use super::ahead::is_fenced;
use super::{Shop, id, rule};

/// Of the ids that programs have reserved, the late table has its own from here on, counted from a key.
const AMONG: u64 = 500;
/// Native ids that it makes while nobody looks after it.
const NATIVE: u64 = 20;

/// The store says that what was reserved is dropped, and then the one that said so dies, before the fence: that is refused to it until it is
/// gone, so that it cannot have been there.
pub(super) fn a_program_dies_before_the_fence_of_a_late_table(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let with = |more: &str| {
        let mut config = shop.config.clone();
        config.rules = vec![rule("one", "rewrite").replace("shop.orders", "shop.or*")];
        config.more = more.to_owned();
        config
    };
    let mut dies = ProxyProcess::start(with(
        "[limits]\nswitch_peer_wait_s = 300\nschema_refresh_s = 1\n",
    ))?;
    // It looks at the servers long after the test.
    let lives = ProxyProcess::start(with(
        "[limits]\nswitch_peer_wait_s = 300\nschema_refresh_s = 3600\n",
    ))?;
    let mut ids = BTreeMap::new();
    let mut given = |by: &'static str, id: u64| {
        let before = ids.insert(id, by);
        assert_eq!(before, None, "{id} again, by {by}");
    };
    let insert = |wire: &mut Wire| id(wire.query("INSERT INTO orders (a) VALUES (1)")?);
    let mut wire = lives.wire("shop")?;
    let key = insert(&mut wire)?;
    given("lives", key);
    given("dies", insert(&mut dies.wire("shop")?)?);

    let mut direct = shop.server.wire("shop")?;
    let next = key + AMONG;
    direct.run(format!(
        "CREATE TABLE archive (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = {next}"
    ))?;
    // Whoever connects from now on may not.
    let account = direct
        .rows("SELECT CONCAT('\\'', REPLACE(CURRENT_USER(), '@', '\\'@\\''), '\\'')")?
        .concat()
        .concat();
    direct.run(format!("REVOKE ALTER ON *.* FROM {account}"))?;
    direct.run("RENAME TABLE archive TO or_archive")?;
    let generation = "SELECT generation FROM keywright.keywright_segment WHERE tag = 'one'";
    let before = direct.rows(generation)?;
    wait_until("what was reserved to be dropped", WAIT_MAX, || {
        Ok(direct.rows(generation)? != before)
    })?;
    dies.kill9()?;
    direct.run(format!("GRANT ALTER ON *.* TO {account}"))?;

    // There is no fence, and the table's ids go on among those that were reserved: nobody gives these.
    for _ in 0..NATIVE {
        given(
            "table",
            id(direct.query("INSERT INTO or_archive (a) VALUES (1)")?)?,
        );
    }
    wait_until("keys above", WAIT_MAX, || {
        let key = insert(&mut wire)?;
        given("lives", key);
        Ok(key >= next + NATIVE)
    })?;
    for _ in 0..NATIVE {
        given(
            "table",
            id(direct.query("INSERT INTO or_archive (a) VALUES (1)")?)?,
        );
    }
    let before = direct.rows(generation)?;
    dies.restart()?;
    // The switch cannot be repeated for minutes: the one that died might come back. Whoever writes past the programs is stopped before.
    wait_until("the fence", WAIT_MAX, || {
        is_fenced(&mut direct, "or_archive")
    })?;
    assert!(direct.rows(generation)? != before);
    let mut started = dies.wire("shop")?;
    for _ in 0..AMONG {
        given("lives", insert(&mut wire)?);
        given("started", insert(&mut started)?);
        let archived = started.query("INSERT INTO or_archive (a) VALUES (2)")?;
        given("started", id(archived)?);
    }
    Ok(())
}
