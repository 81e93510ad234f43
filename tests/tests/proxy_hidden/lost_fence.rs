//! Tables that were truncated or swapped in, and have got keys before anybody saw that they have no fence.

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Reply, Result, WAIT_MAX, Wire, assert_has, wait_until,
};

use crate::Shop;

const INSERT: &str = "INSERT INTO orders (a) VALUES (1)";

fn looking(config: &ProxyConfig, every_s: u32) -> ProxyConfig {
    let mut config = config.clone();
    let limits = "[limits]\nswitch_wait_ms_max = 500\nschema_refresh_s";
    config.more.push_str(&format!("\n{limits} = {every_s}\n"));
    config
}

/// With another interval between looks, which begins with one.
fn look(shop: &Shop, proxy: &mut ProxyProcess, every_s: u32) -> Result<()> {
    let taken = "connections follow the rules as they are now";
    let before = proxy.log().matches(taken).count();
    proxy.reload(looking(&shop.config, every_s))?;
    wait_until("the rules to be taken", WAIT_MAX, || {
        Ok(proxy.log().matches(taken).count() > before)
    })
}

/// Nobody gets keys, everybody who says so names the statement, and by it they come again.
fn mend(shop: &Shop, proxy: &mut ProxyProcess, wire: &mut Wire, fence: u64) -> Result<()> {
    look(shop, proxy, 1)?;
    let mut told = String::new();
    wait_until("no more keys", WAIT_MAX, || {
        let replies = wire.query(INSERT)?;
        let [Reply::Failed(fault)] = replies.as_slice() else {
            return Ok(false);
        };
        assert_eq!(fault.errno, 1467);
        told = String::from_utf8_lossy(&fault.message).into_owned();
        Ok(true)
    })?;
    let statement = format!("ALTER TABLE `shop`.`orders` AUTO_INCREMENT = {fence}");
    let condition = "if all of them are keys of its tag";
    assert_has(&told, &["hidden keys may meet", condition, &statement]);
    let refused = "Of tables that have lost their fence, if all their ids are keys of the tag";
    wait_until("the switch to be refused", WAIT_MAX, || {
        Ok(proxy.log().contains(refused))
    })?;
    let log = proxy.log();
    for line in ["hidden keys may be any, so that it gets no keys", refused] {
        let mut lines = log.lines().filter(|its| its.contains(line));
        assert!(lines.any(|its| its.contains(&statement)), "{log}");
    }

    let check = || ProxyProcess::command(&shop.config, &["check"]);
    let said = check()?;
    assert!(!said.status.success(), "{said:?}");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_has(&said, &["error: `shop`.`orders` gets no keys", &statement]);
    shop.server.run("shop", &statement)?;
    wait_until("keys again", WAIT_MAX, || {
        let replies = wire.query(INSERT)?;
        Ok(matches!(replies.as_slice(), [Reply::Done(_)]))
    })?;
    let said = check()?;
    assert!(said.status.success(), "{said:?}");
    // From here on nobody looks by himself.
    look(shop, proxy, 3_600)
}

pub(crate) fn tables_that_lost_their_fence_get_keys_again_by_the_statement_that_is_named(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour, "")?;
    let fence = match flavour {
        Flavour::MariaDb => i64::MAX.cast_unsigned() + 1,
        Flavour::MySql => u64::MAX,
    };
    ProxyProcess::said(&shop.config, &["init"])?;
    let mut proxy = ProxyProcess::start(looking(&shop.config, 3_600))?;
    wait_until("keys to be in force", WAIT_MAX, || {
        Ok(proxy.http_get("/readyz")?.0 == 200)
    })?;
    let mut wire = proxy.wire("shop")?;
    wire.run(INSERT)?;
    wire.run("TRUNCATE orders")?;
    wire.run(INSERT)?;
    mend(&shop, &mut proxy, &mut wire, fence)?;
    let repeated = || proxy.log().matches("the switch is repeated").count();
    assert_eq!(repeated(), 1, "{}", proxy.log());

    // As tools do that change a table by a copy.
    shop.server.run(
        "shop",
        "CREATE TABLE _orders_new LIKE orders;
         INSERT INTO _orders_new (id, a) SELECT id, a FROM orders;
         RENAME TABLE orders TO _orders_old, _orders_new TO orders",
    )?;
    mend(&shop, &mut proxy, &mut wire, fence)?;
    let numbers = shop.numbers()?;
    assert!(numbers.iter().all(|number| *number < 1_000), "{numbers:?}");
    Ok(())
}
