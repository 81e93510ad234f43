//! The fence, where keys are in force and where it is not wanted.

use keywright_testkit::{
    AT_FENCE, Flavour, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, assert_has, wait_until,
};

use super::ahead::is_fenced;
use crate::{Shop, id, rule};

pub(crate) fn a_fence_of_another_rule_is_not_taken_for_ones_own(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    shop.server.run(
        "shop",
        "CREATE TABLE extra (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let wide = rule("one", "rewrite").replace("shop.orders", "shop.*");
    let mut config = shop.config.clone();
    config.rules.push(wide);
    let mut proxy = ProxyProcess::start(config.clone())?;
    let mut wire = proxy.wire("shop")?;
    wire.run("INSERT INTO orders (a) VALUES (1)")?;
    let insert = "INSERT INTO orders (a) VALUES (1)";
    config.rules.insert(0, rule("two", "rewrite"));
    proxy.reload(config.clone())?;
    // It would go natively from then on, and its fence would refuse each INSERT.
    wait_until("the refusal", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("to rule shop.orders.id (native auto-increment) past the switch"))
    })?;
    wire.run(insert)?;
    let said = ProxyProcess::command(&config, &["check"])?;
    assert!(!said.status.success(), "{said:?}");
    let told = "error: `shop`.`orders` has a fence, and goes by rule shop.orders.id, which gives no keys; rule shop.*.id behind it does";
    assert_has(&String::from_utf8(said.stdout)?, &[told]);

    // Nor does one switch it that starts with such a file.
    let other = ProxyProcess::start(config)?;
    let given_up = "the switch is given up: `shop`.`orders` has its fence by rule shop.*.id (\"segment:one\"), which is in force";
    wait_until("the switch to be given up", WAIT_MAX, || {
        Ok(other.log().contains(given_up))
    })?;
    wire.run(insert)?;
    let rows = shop
        .server
        .wire("shop")?
        .rows("SELECT COUNT(*) FROM keywright.keywright_rule WHERE key_space = 'segment:two'")?;
    assert_eq!(rows, [["0"]]);
    Ok(())
}

/// The same keys, by a pattern that is not the one in force: nobody is told to lift the fence of a table that others give keys.
pub(crate) fn a_rule_in_force_that_is_written_another_way_is_named(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let proxy = ProxyProcess::start(shop.with("one", "rewrite"))?;
    let key = id(proxy
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?)?;
    let mut config = shop.config.clone();
    config.rules = vec![rule("one", "rewrite").replace("shop.orders", "shop.order?")];
    let told = "`shop`.`orders` has its fence by rule shop.orders.id (\"segment:one\"), which is in force: write the rule as it is there";
    let said = ProxyProcess::said(&config, &["check"])?;
    assert_has(&said, &[&format!("warning: {told}")]);
    let other = ProxyProcess::start(config)?;
    let given_up = format!("the switch is given up: {told}");
    wait_until("the switch to be given up", WAIT_MAX, || {
        Ok(other.log().contains(&given_up))
    })?;
    for said in [said, other.log()] {
        assert!(!said.contains("lift the fence as"), "{said}");
        assert!(!said.contains("lift it first"), "{said}");
    }
    let next = id(proxy
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?)?;
    assert!(next > key, "{next} {key}");
    Ok(())
}

pub(crate) fn a_fence_comes_where_keys_are_in_force(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let without = |text: &str| text.replace("fence = true", "fence = false");
    let mut open = shop.with("one", "rewrite");
    open.rules = open.rules.iter().map(|rule| without(rule)).collect();
    let mut proxy = ProxyProcess::start(open)?;
    let mut wire = proxy.wire("shop")?;
    assert_eq!(
        wire.run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id,
        500
    );
    proxy.reload(shop.with("one", "rewrite"))?;
    wait_until("the fence", WAIT_MAX, || {
        Ok(proxy.log().contains("fence applied"))
    })?;
    let direct = shop
        .server
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?;
    assert!(
        matches!(direct.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)),
        "{direct:?}"
    );
    // Without a fence the server may have made ids among those that were reserved: they are dropped, a moment later.
    wait_until("keys above what was reserved", WAIT_MAX, || {
        Ok(id(wire.query("INSERT INTO orders (a) VALUES (1)")?)? > 1_000)
    })
}

/// Who does not wait for the next schema refresh says so.
pub(crate) fn a_reload_sets_the_fence_that_a_truncate_has_removed(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut config = shop.with("one", "rewrite");
    // Nobody looks by himself within the test.
    config.more = "[limits]\nschema_refresh_s = 3600\n".to_owned();
    let mut proxy = ProxyProcess::start(config.clone())?;
    shop.wait_for(Some("one"))?;
    let mut wire = proxy.wire("shop")?;
    wire.run("INSERT INTO orders (a) VALUES (1)")?;
    wire.run("TRUNCATE orders")?;
    proxy.reload(config)?;
    let mut direct = shop.server.wire("shop")?;
    wait_until("the fence", WAIT_MAX, || is_fenced(&mut direct, "orders"))?;
    assert!(id(wire.query("INSERT INTO orders (a) VALUES (2)")?)? > 500);
    Ok(())
}

pub(crate) fn tables_without_a_fence_go_over_above_their_counters(flavour: Flavour) -> Result<()> {
    for engine in ["InnoDB", "MyISAM"] {
        let shop = Shop::new(flavour)?;
        shop.server
            .run("shop", &format!("ALTER TABLE orders ENGINE = {engine}"))?;
        let config = |mode: &str| {
            let mut config = shop.config.clone();
            config.rules = vec![rule("one", mode).replace("fence = true", "fence = false")];
            config
        };
        let mut proxy = ProxyProcess::start(config("observe"))?;
        let mut wire = proxy.wire("shop")?;
        let mut insert = || id(wire.query("INSERT INTO orders (a) VALUES (1)")?);
        assert_eq!(insert()?, 500);
        shop.server.run(
            "shop",
            "INSERT INTO orders (a) VALUES (1), (1); DELETE FROM orders",
        )?;
        proxy.reload(config("rewrite"))?;
        shop.wait_for(Some("one"))?;
        let key = insert()?;
        assert!(key >= 503, "{key}");
        // Nobody is kept from it.
        let direct = shop
            .server
            .wire("shop")?
            .query("INSERT INTO orders (a) VALUES (1)")?;
        assert_eq!(id(direct)?, key + 1);
        proxy.reload(config("observe"))?;
        shop.wait_for(None)?;
        let native = insert()?;
        assert!(native > key + 900, "above the bound: {native}");
    }
    Ok(())
}

pub(crate) fn a_table_that_comes_later_is_fenced_below_its_tag(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut config = shop.with("one", "rewrite");
    config.rules = vec![rule("one", "rewrite").replace("shop.orders", "shop.*")];
    config.more = "[limits]\nschema_refresh_s = 1\n".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let mut direct = shop.server.wire("shop")?;
    direct.run("CREATE TABLE later (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")?;
    wait_until("the fence", WAIT_MAX, || {
        let replies = direct.query("INSERT INTO later (a) VALUES (1)")?;
        Ok(matches!(replies.as_slice(), [Reply::Failed(_)]))
    })?;
    direct.run("CREATE TABLE beyond (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 100000000")?;
    wait_until("its fence", WAIT_MAX, || {
        let replies = direct.query("INSERT INTO beyond (a) VALUES (1)")?;
        Ok(matches!(replies.as_slice(), [Reply::Failed(_)]))
    })?;
    let key = id(proxy
        .wire("shop")?
        .query("INSERT INTO beyond (a) VALUES (1)")?)?;
    let highest = direct.rows("SELECT MAX(id) FROM beyond WHERE a = 1")?;
    assert!(key > 100_000_000, "{key} {highest:?}");
    Ok(())
}

/// At the first server a table's fence cannot be set. Its other tables, and those of the second server, are looked after all the same.
pub(crate) fn a_table_that_refuses_its_fence_keeps_no_other_from_its_own(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let refuses = Upstream::start_with(flavour, &[])?;
    refuses.run("mysql", "CREATE DATABASE shop")?;
    let mut config = shop.config.clone();
    config.upstream_ports = vec![refuses.port(), shop.server.port()];
    config.rules = vec![rule("one", "rewrite").replace("shop.orders", "shop.*")];
    config.more = "[limits]\nschema_refresh_s = 1\n".to_owned();
    let proxy = ProxyProcess::start(config)?;
    shop.wait_for(Some("one"))?;
    let mut direct = refuses.wire("shop")?;
    // Whoever connects from now on may not.
    let account = direct
        .rows("SELECT CONCAT('\\'', REPLACE(CURRENT_USER(), '@', '\\'@\\''), '\\'')")?
        .concat()
        .concat();
    direct.run(format!("REVOKE ALTER ON *.* FROM {account}"))?;
    let create =
        |name: &str| format!("CREATE TABLE {name} (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)");
    direct.run(create("a_later"))?;
    wait_until("the refusal", WAIT_MAX, || {
        Ok(proxy.log().contains("setting the counter of"))
    })?;
    direct.run(create("z_later"))?;
    direct.run(format!("GRANT ALTER ON shop.z_later TO {account}"))?;
    let mut other = shop.server.wire("shop")?;
    other.run(create("later"))?;
    wait_until("the fence here", WAIT_MAX, || {
        is_fenced(&mut direct, "z_later")
    })?;
    wait_until("the fence there", WAIT_MAX, || {
        is_fenced(&mut other, "later")
    })?;
    assert!(!is_fenced(&mut direct, "a_later")?);
    Ok(())
}

/// Their rule is native again, and a server that took over has them. One table's fence cannot be lifted, and the other's is.
pub(crate) fn a_fence_that_cannot_be_lifted_keeps_no_other(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut direct = shop.server.wire("shop")?;
    let tables = ["a_table", "z_table"];
    for table in tables {
        direct.run(format!(
            "CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"
        ))?;
    }
    let config = |mode: &str| {
        let mut config = shop.config.clone();
        config.rules = vec![rule("one", mode).replace("shop.orders", "shop.*")];
        config.more = "[limits]\nschema_refresh_s = 1\n".to_owned();
        config
    };
    let mut proxy = ProxyProcess::start(config("rewrite"))?;
    shop.wait_for(Some("one"))?;
    proxy.reload(config("observe"))?;
    shop.wait_for(None)?;
    wait_until("native tables", WAIT_MAX, || {
        Ok(proxy.log().contains("the tables are native again"))
    })?;
    // Whoever connects from now on may not. The connection that does it still may.
    let account = direct
        .rows("SELECT CONCAT('\\'', REPLACE(CURRENT_USER(), '@', '\\'@\\''), '\\'')")?
        .concat()
        .concat();
    direct.run(format!("REVOKE ALTER ON *.* FROM {account}"))?;
    direct.run(format!("GRANT ALTER ON shop.z_table TO {account}"))?;
    let fence = match flavour {
        Flavour::MariaDb => 1_u64 << 63,
        Flavour::MySql => u64::MAX,
    };
    for table in tables {
        direct.run(format!("ALTER TABLE {table} AUTO_INCREMENT = {fence}"))?;
    }
    // Of a server that took over nothing is recorded.
    let forget = "DELETE FROM keywright.keywright_lifted";
    wait_until("the refusal", WAIT_MAX, || {
        direct.run(forget)?;
        let refusal = "setting the counter of `shop`.`a_table`";
        Ok(proxy.log().contains(refusal))
    })?;
    wait_until("no fence of the other", WAIT_MAX, || {
        direct.run(forget)?;
        Ok(!is_fenced(&mut direct, "z_table")?)
    })?;
    assert!(is_fenced(&mut direct, "a_table")?);
    Ok(())
}

/// Switched on, rolled back, and then given keys that are not switched: the store goes on saying that the rule's tables are native.
pub(crate) fn the_fence_of_a_rule_that_has_left_the_switch_stays(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    // Another rule keeps the program in the switch.
    let config = |of_orders: String| {
        let of_lines = rule("two", "rewrite").replace("shop.orders", "shop.line*");
        let mut config = shop.config.clone();
        config.rules = vec![of_orders, of_lines];
        config.more = "[limits]\nschema_refresh_s = 1\n".to_owned();
        config
    };
    let mut store = shop.server.wire("keywright")?;
    let mut wait_for = |keys: &str| {
        let sql = "SELECT COALESCE(key_space, '') FROM keywright_rule WHERE table_pattern = 'shop.orders'";
        wait_until(&format!("\"{keys}\" to be in force"), WAIT_MAX, || {
            Ok(store.rows(sql)? == [[keys.to_owned()]])
        })
    };
    let mut proxy = ProxyProcess::start(config(rule("one", "rewrite")))?;
    wait_for("segment:one")?;
    proxy.reload(config(rule("one", "observe")))?;
    wait_for("")?;
    let mut wire = proxy.wire("shop")?;
    // It waits until the program follows: before, a rule that is being switched cannot go.
    id(wire.query("INSERT INTO orders (a) VALUES (1)")?)?;

    let stride = rule("three", "rewrite").replace("segment:", "stride:");
    proxy.reload(config(format!("{stride}offset = 1\nincrement = 2\n")))?;
    let wait_for_fence = |proxy: &ProxyProcess, table: &str| {
        let applied = format!("fence applied table=\"`shop`.`{table}`\"");
        wait_until("the fence", WAIT_MAX, || Ok(proxy.log().contains(&applied)))
    };
    wait_for_fence(&proxy, "orders")?;
    // Late tables of the other rule get their fence in the same looks, and the second of them in one that began behind the fence.
    let mut direct = shop.server.wire("shop")?;
    for table in ["line_a", "line_b"] {
        direct.run(format!(
            "CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"
        ))?;
        wait_for_fence(&proxy, table)?;
    }
    // Each schema refresh would put it up again.
    assert!(!proxy.log().contains("fence lifted"), "{}", proxy.log());
    assert!(is_fenced(&mut direct, "orders")?);
    id(wire.query("INSERT INTO orders (a) VALUES (2)")?)?;

    // Back in the switch it is native, and the server would make ids that the other keys had, which no row need show.
    proxy.reload(config(rule("one", "observe")))?;
    let told = "`shop`.`orders` has a fence, and its rule gives no keys";
    wait_until("what is said of the fence", WAIT_MAX, || {
        Ok(proxy.log().contains(told))
    })?;
    assert!(!proxy.log().contains("fence lifted"), "{}", proxy.log());
    assert!(is_fenced(&mut direct, "orders")?);
    Ok(())
}

/// The tables that had their fence by then keep it while they have keys, and leave it with them.
pub(crate) fn a_rule_that_wants_no_fence_any_more_leaves_none_behind(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let without = |mode: &str| {
        let mut config = shop.config.clone();
        config.rules = vec![rule("one", mode).replace("fence = true", "fence = false")];
        config
    };
    let mut proxy = ProxyProcess::start(shop.with("one", "rewrite"))?;
    shop.wait_for(Some("one"))?;
    proxy.reload(without("rewrite"))?;
    wait_until("the reload", WAIT_MAX, || {
        let said = "connections follow the rules as they are now";
        Ok(proxy.log().contains(said))
    })?;
    let key = id(proxy
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?)?;
    let mut direct = shop.server.wire("shop")?;
    assert!(is_fenced(&mut direct, "orders")?);
    proxy.reload(without("observe"))?;
    shop.wait_for(None)?;
    let native = id(direct.query("INSERT INTO orders (a) VALUES (2)")?)?;
    assert!(native > key + 900, "above the bound: {native}");
    Ok(())
}

/// As WordPress makes them: the servers read the whole definition of a table when its counter is set.
pub(crate) fn tables_with_zero_dates_go_over(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    shop.server.run(
        "shop",
        "SET SESSION sql_mode = '';
         ALTER TABLE orders ADD ordered DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00';
         SET GLOBAL sql_mode = 'STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE'",
    )?;
    let proxy = ProxyProcess::start(shop.with("one", "rewrite"))?;
    let insert = "INSERT INTO orders (a, ordered) VALUES (1, NOW())";
    let mut wire = proxy.wire("shop")?;
    assert_eq!(id(wire.query(insert)?)?, 500);
    let mut direct = shop.server.wire("shop")?;
    let replies = direct.query(insert)?;
    assert!(
        matches!(replies.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)),
        "{replies:?}"
    );
    // And back.
    let config = shop.with("one", "rewrite");
    drop(proxy);
    let output = ProxyProcess::command(&config, &["release"])?;
    shop.server
        .run("shop", &String::from_utf8(output.stdout)?)?;
    // Above all that was reserved: an application may hold a key of which there is no row.
    assert_eq!(id(direct.query(insert)?)?, 1_500);
    Ok(())
}
