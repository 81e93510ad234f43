//! What keeps tables from going over: it is named, and nothing changes.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use keywright_testkit::{Flavour, ProxyProcess, Result, WAIT_MAX, assert_has, wait_until};

use crate::{Shop, id, rule};

pub(crate) fn a_table_that_somebody_locks_is_named_and_nothing_changes(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = |mode| {
        let mut config = shop.with("one", mode);
        config.more = "[limits]\nswitch_wait_ms_max = 2000\n".to_owned();
        config
    };
    let mut proxy = ProxyProcess::start(config("observe"))?;
    let mut wire = proxy.wire("shop")?;
    // Past the proxy, and named where the server says it.
    let mut locks = shop.server.wire("shop")?;
    locks.run("BEGIN")?;
    locks.rows("SELECT * FROM orders")?;
    proxy.reload(config("rewrite"))?;
    wait_until("the blocker to be named", WAIT_MAX, || {
        Ok(proxy.log().contains("`shop`.`orders` is locked"))
    })?;
    let began = Instant::now();
    assert_eq!(
        wire.run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        500
    );
    assert!(began.elapsed() < WAIT_MAX);
    assert_eq!(shop.in_force()?, None);
    let names = format!("connection {} of root", locks.thread_id());
    if flavour == Flavour::MariaDb {
        assert_has(&proxy.log(), &[&names]);
    }
    locks.run("COMMIT")?;
    shop.wait_for(Some("one"))?;
    let key = wire
        .run("INSERT INTO orders (a) VALUES (1)")?
        .last_insert_id;
    assert!(key > 500, "{key} {}", proxy.log());
    Ok(())
}

/// A backup lets a table be locked, and keeps it from being altered. Once its tag is closed there would be no way back, and no way on.
pub(crate) fn a_backup_keeps_keys_in_force_until_it_ends(flavour: Flavour) -> Result<()> {
    let (begin, end) = match flavour {
        Flavour::MySql => ("LOCK INSTANCE FOR BACKUP", "UNLOCK INSTANCE"),
        Flavour::MariaDb => ("BACKUP LOCK orders", "BACKUP UNLOCK"),
    };
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.with("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    let mut wire = proxy.wire("shop")?;
    let insert = "INSERT INTO orders (a) VALUES (1)";
    let key = wire.run(insert)?.last_insert_id;
    let mut backup = shop.server.wire("shop")?;
    backup.run(begin)?;
    proxy.reload(shop.with("one", "observe"))?;
    wait_until("the backup to be named", WAIT_MAX, || {
        let output = ["`shop`.`orders` cannot be altered now", "backup"];
        Ok(output.iter().all(|output| proxy.log().contains(output)))
    })?;
    let next = wire.run(insert)?.last_insert_id;
    assert!(next > key, "{key} {next} {}", proxy.log());
    assert_eq!(shop.in_force()?.as_deref(), Some("one"));
    backup.run(end)?;
    shop.wait_for(None)?;
    let native = wire.run(insert)?.last_insert_id;
    assert!(native > next, "{next} {native} {}", proxy.log());
    Ok(())
}

pub(crate) fn what_is_in_the_way_is_told_before(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut wanted = shop.with("one", "rewrite");
    // An attempt that is late does not come to look at all.
    wanted.more = "[limits]\nswitch_wait_ms_max = 20000\n".to_owned();
    let said = ProxyProcess::said(&wanted, &["check"])?;
    assert_has(&said, &["shop.orders.id has native auto-increment now"]);
    assert!(!said.contains("no table can be switched"), "{said}");
    let mut other = shop.server.wire("shop")?;
    for sql in [
        "XA START 'x'",
        "INSERT INTO orders (a) VALUES (1)",
        "XA END 'x'",
        "XA PREPARE 'x'",
    ] {
        other.run(sql)?;
    }
    let said = ProxyProcess::said(&wanted, &["check"])?;
    assert_has(&said, &["no table can be switched", "1 XA transaction(s)"]);
    let mut proxy = ProxyProcess::start(shop.with("one", "observe"))?;
    proxy.reload(wanted)?;
    let told = wait_until("the XA transaction to be told", WAIT_MAX, || {
        let log = proxy.log();
        ensure!(
            proxy.is_running()? && !log.contains("reload failed"),
            "nothing is told any more"
        );
        Ok(log.contains("1 XA transaction(s)"))
    });
    told.with_context(|| {
        let store = shop.server.run(
            "keywright",
            "SELECT phase, leader, attempt FROM keywright_switch; SELECT * FROM keywright_program; XA RECOVER",
        );
        format!("{store:?}\n{}", proxy.log())
    })?;
    assert_eq!(shop.in_force()?, None);
    assert_eq!(
        proxy
            .wire("shop")?
            .run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        501
    );
    other.run("XA COMMIT 'x'")?;
    shop.wait_for(Some("one"))?;
    Ok(())
}

pub(crate) fn without_a_way_to_put_it_back_nothing_is_begun(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let port = shop.server.port();
    let config = |mode: &str| {
        let mut config = shop.with("one", mode);
        config.more = format!(
            "[[listener]]\nbind = \"127.0.0.1:0\"\nupstream = \"127.0.0.1:{port}\"\ncheck = \"warn\"\n\
             [limits]\nschema_refresh_s = 600\n"
        );
        config
    };
    let mut proxy = ProxyProcess::start(config("observe"))?;
    proxy.reload(config("rewrite"))?;
    wait_until("the refusal", WAIT_MAX, || {
        Ok(proxy.log().contains("this program switches no tables"))
    })?;
    assert_eq!(
        proxy
            .wire("shop")?
            .run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        500
    );
    // Its trouble is over when another program has switched.
    let trouble = |is_there: u8| -> Result<()> {
        let shown = format!("keywright_switch_trouble {is_there}\n");
        wait_until(&shown, WAIT_MAX, || {
            Ok(proxy.http_get("/metrics")?.1.contains(&shown))
        })
    };
    trouble(1)?;
    let other = ProxyProcess::start(shop.with("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    trouble(0)?;
    drop(other);
    Ok(())
}

/// The way back needs no fence. A table that can have none is only kept from keys.
#[test]
fn a_table_that_can_have_no_fence_any_more_goes_back() -> Result<()> {
    let shop = Shop::new(Flavour::MariaDb)?;
    shop.server.run(
        "shop",
        "ALTER TABLE orders MODIFY id BIGINT UNSIGNED AUTO_INCREMENT",
    )?;
    let mut proxy = ProxyProcess::start(shop.with("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    let mut open = shop.server.wire("shop")?;
    open.run("BEGIN")?;
    open.rows("SELECT * FROM orders")?;
    proxy.reload(shop.with("one", "observe"))?;
    wait_until("the attempt to be given up", WAIT_MAX, || {
        Ok(proxy.log().contains("`shop`.`orders` is locked"))
    })?;
    // It waits for the transaction, and whoever locks the table next waits for it.
    let mut alters = shop.server.wire("shop")?;
    alters.send_query("ALTER TABLE orders PARTITION BY HASH (id) PARTITIONS 4")?;
    wait_until("the statement to wait", WAIT_MAX, || {
        let waits = "SELECT COUNT(*) FROM information_schema.processlist \
                     WHERE state LIKE 'Waiting for table metadata lock' AND info LIKE 'ALTER TABLE orders%'";
        Ok(shop.server.wire("shop")?.rows(waits)? == [["1"]])
    })?;
    open.run("COMMIT")?;
    id(alters.read_query()?)?;
    shop.wait_for(None)
}

/// The file says nothing of a fence: who is to give no keys needs none.
#[test]
fn a_reload_takes_keys_back_from_a_table_that_can_have_no_fence_any_more() -> Result<()> {
    if !Flavour::MariaDb.is_wanted() {
        return Ok(());
    }
    let shop = Shop::new(Flavour::MariaDb)?;
    shop.server.run(
        "shop",
        "ALTER TABLE orders MODIFY id BIGINT UNSIGNED AUTO_INCREMENT",
    )?;
    let mut proxy = ProxyProcess::start(shop.with("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    let insert = |proxy: &ProxyProcess| -> Result<u64> {
        id(proxy
            .wire("shop")?
            .query("INSERT INTO orders (a) VALUES (1)")?)
    };
    let key = insert(&proxy)?;
    shop.server.run(
        "shop",
        "ALTER TABLE orders PARTITION BY HASH (id) PARTITIONS 4",
    )?;
    proxy.reload(shop.with("one", "observe"))?;
    shop.wait_for(None)?;
    let native = insert(&proxy)?;
    assert!(native > key, "{native} {key} {}", proxy.log());
    Ok(())
}

pub(crate) fn a_column_without_room_for_keys_stays_native(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    shop.server.run(
        "shop",
        "CREATE TABLE orders_small (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let config = |mode| {
        let mut config = shop.config.clone();
        let rule = rule("one", mode).replace("shop.orders", "shop.orders*");
        config.rules.push(rule);
        config
    };
    let mut proxy = ProxyProcess::start(config("observe"))?;
    proxy.reload(config("rewrite"))?;
    wait_until("the refusal", WAIT_MAX, || {
        let output = [
            "the switch is given up: ",
            "`shop`.`orders_small`.`id` is int",
        ];
        Ok(output.iter().all(|output| proxy.log().contains(output)))
    })?;
    assert_eq!(shop.in_force()?, None);
    // Nothing was done to the others either.
    let mut wire = proxy.wire("shop")?;
    for (table, id) in [("orders", 500), ("orders_small", 1)] {
        let insert = format!("INSERT INTO {table} (a) VALUES (1)");
        assert_eq!(wire.run(insert)?.last_insert_id, id, "{table}");
    }
    shop.server.run(
        "shop",
        "ALTER TABLE orders_small MODIFY id BIGINT AUTO_INCREMENT",
    )?;
    shop.wait_for(Some("one"))?;
    let insert = "INSERT INTO orders_small (a) VALUES (1)";
    assert!(wire.run(insert)?.last_insert_id > 500);
    Ok(())
}
