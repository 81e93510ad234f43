//! Files that give a table another rule than it had, while rules are in force.

use keywright_core::Cause;
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Reply, Result, WAIT_MAX, Wire, assert_has, wait_until,
};

use crate::{Shop, id, rule};

const ACCEPTED: &str = "connections follow the rules as they are now";

fn with(shop: &Shop, rules: &[&str]) -> ProxyConfig {
    let mut config = shop.config.clone();
    config.rules = rules.iter().map(ToString::to_string).collect();
    config
}

/// So many rules have keys.
pub(super) fn wait_for_rules(shop: &Shop, count: u64) -> Result<()> {
    let sql = "SELECT COUNT(*) FROM keywright.keywright_rule WHERE key_space IS NOT NULL";
    let mut direct = shop.server.wire("shop")?;
    wait_until(&format!("{count} rules in force"), WAIT_MAX, || {
        Ok(direct.rows(sql)? == [[count.to_string()]])
    })
}

pub(super) fn wait_for_log(proxy: &ProxyProcess, text: &str) -> Result<()> {
    wait_until(&format!("{text:?} in the log"), WAIT_MAX, || {
        Ok(proxy.log().contains(text))
    })
}

fn insert(wire: &mut Wire, table: &str) -> Result<u64> {
    id(wire.query(format!("INSERT INTO {table} (a) VALUES (1)"))?)
}

/// `orders` is a table of both rules, and each has one of its own.
fn two_rules(mode: &str, tags: [&str; 2]) -> [String; 2] {
    [("shop.o*", tags[0]), ("shop.*e*", tags[1])]
        .map(|(tables, tag)| rule(tag, mode).replace("shop.orders", tables))
}

fn shop_with_oak(flavour: Flavour) -> Result<Shop> {
    let shop = Shop::new(flavour)?;
    let create = "CREATE TABLE oak (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    shop.server.run("shop", create)?;
    Ok(shop)
}

/// The table would get ids of the other tag, which knows nothing of those that it has.
pub(super) fn a_reload_that_swaps_rules_in_force_is_refused(flavour: Flavour) -> Result<()> {
    let shop = shop_with_oak(flavour)?;
    let [first, second] = &two_rules("rewrite", ["one", "two"]);
    let kept = with(&shop, &[first, second]);
    let mut proxy = ProxyProcess::start(kept.clone())?;
    wait_for_rules(&shop, 2)?;
    let mut wire = proxy.wire("shop")?;
    let key = insert(&mut wire, "orders")?;
    let said = ProxyProcess::said(&kept, &["check"])?;
    assert_has(
        &said,
        &["several rules in force are for these", "shop.orders"],
    );

    let swapped = with(&shop, &[second, first]);
    proxy.reload(swapped.clone())?;
    let refused = "`shop`.`orders` would go from rule shop.o*.id (\"segment:one\") to rule shop.*e*.id (\"segment:two\") past the switch: \
                   set mode = \"observe\" first in shop.o*.id and in shop.*e*.id";
    wait_for_log(&proxy, refused)?;
    assert_eq!(insert(&mut wire, "orders")?, key + 1);

    // As the log says.
    let [first, second] = &two_rules("observe", ["one", "two"]);
    proxy.reload(with(&shop, &[first, second]))?;
    wait_for_rules(&shop, 0)?;
    // They wait until the program follows.
    let native = insert(&mut wire, "orders")?;
    insert(&mut wire, "line")?;
    proxy.reload(swapped)?;
    wait_for_rules(&shop, 2)?;
    assert!(insert(&mut wire, "orders")? > native);
    Ok(())
}

/// Nobody tells a program that starts in which order other files have the rules, but the store does by which of them a table has its keys.
pub(super) fn a_program_that_starts_with_swapped_rules_gives_a_table_no_keys_of_the_other_tag(
    flavour: Flavour,
) -> Result<()> {
    let shop = shop_with_oak(flavour)?;
    let with = |rules: &[&str]| {
        let mut config = with(&shop, rules);
        config.more = "[limits]\nschema_refresh_s = 1\nswitch_wait_ms_max = 1000\n".to_owned();
        config
    };
    let [first, second] = &two_rules("rewrite", ["one", "two"]);
    let kept = with(&[first, second]);
    let proxy = ProxyProcess::start(kept.clone())?;
    wait_for_rules(&shop, 2)?;
    let mut wire = proxy.wire("shop")?;
    let key = insert(&mut wire, "orders")?;
    let mut direct = shop.server.wire("shop")?;
    let said = "SELECT tag, generation FROM keywright.keywright_segment ORDER BY tag";
    let before = direct.rows(said)?;

    let mut other = ProxyProcess::start(with(&[second, first]))?;
    let mut others = other.wire("shop")?;
    let why = "`shop`.`orders` has keys by rule shop.o*.id (\"segment:one\"), which is in force, and by this program's file it would get those of \
               rule shop.*e*.id (\"segment:two\"): start the program with the rules in the order that other files have, or set mode = \"observe\" \
               first in both";
    let replies = others.query("INSERT INTO orders (a) VALUES (1)")?;
    let [Reply::Failed(fault)] = replies.as_slice() else {
        anyhow::bail!("{replies:?}: {}", other.log());
    };
    assert_eq!(fault.errno, Cause::TableAhead.mysql_errno());
    assert_has(&String::from_utf8_lossy(&fault.message), &[why]);
    assert_has(&other.log(), &[why]);
    // Other tables have the same rule by both files.
    for table in ["line", "oak"] {
        insert(&mut others, table)?;
    }
    // The first one goes on, and so it does when the fence is gone for a moment.
    assert_eq!(insert(&mut wire, "orders")?, key + 1);
    wire.run("TRUNCATE orders")?;
    wait_for_log(&proxy, "fence applied table=\"`shop`.`orders`\"")?;
    assert_eq!(insert(&mut wire, "orders")?, key + 2);
    assert!(!other.log().contains("fence applied"), "{}", other.log());
    assert_eq!(direct.rows(said)?, before, "{}", other.log());

    other.stop()?;
    other.reconfigure(kept);
    other.restart()?;
    insert(&mut other.wire("shop")?, "orders")?;
    Ok(())
}

pub(super) fn rules_with_the_same_keys_may_be_swapped(flavour: Flavour) -> Result<()> {
    let shop = shop_with_oak(flavour)?;
    let [first, second] = &two_rules("rewrite", ["one", "one"]);
    let mut proxy = ProxyProcess::start(with(&shop, &[first, second]))?;
    wait_for_rules(&shop, 2)?;
    let key = insert(&mut proxy.wire("shop")?, "orders")?;
    proxy.reload(with(&shop, &[second, first]))?;
    wait_for_log(&proxy, ACCEPTED)?;
    assert!(insert(&mut proxy.wire("shop")?, "orders")? > key);
    Ok(())
}

/// The table goes natively by a rule of its own, which observes. Without it, keys would be among its ids, and its ids among the keys.
pub(super) fn a_native_table_comes_to_keys_in_force_by_no_reload(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let observing = rule("two", "observe");
    let wide = |mode: &str| rule("one", mode).replace("shop.orders", "shop.*");
    let mut proxy = ProxyProcess::start(with(&shop, &[&observing, &wide("rewrite")]))?;
    wait_for_rules(&shop, 1)?;
    let mut wire = proxy.wire("shop")?;
    insert(&mut wire, "line")?;
    assert_eq!(insert(&mut wire, "orders")?, 500);

    proxy.reload(with(&shop, &[&wide("rewrite")]))?;
    let refused = "`shop`.`orders` would go from rule shop.orders.id (native auto-increment) to rule shop.*.id (\"segment:one\") past the switch \
                   and without a fence: set mode = \"observe\" first in shop.*.id";
    wait_for_log(&proxy, refused)?;
    assert_eq!(insert(&mut wire, "orders")?, 501);

    proxy.reload(with(&shop, &[&observing, &wide("observe")]))?;
    wait_for_rules(&shop, 0)?;
    insert(&mut wire, "line")?;
    proxy.reload(with(&shop, &[&wide("rewrite")]))?;
    wait_for_rules(&shop, 1)?;
    assert!(insert(&mut wire, "orders")? > 501);
    Ok(())
}

/// While files are changed one after the other, a program has no rule yet that others have switched.
pub(super) fn a_rule_in_force_comes_to_another_program_by_a_reload(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = shop.with("one", "rewrite");
    let first = ProxyProcess::start(config.clone())?;
    shop.wait_for(Some("one"))?;
    let key = insert(&mut first.wire("shop")?, "orders")?;
    let mut other = ProxyProcess::start(shop.config.clone())?;
    other.reload(config)?;
    wait_for_log(&other, ACCEPTED)?;
    assert!(insert(&mut other.wire("shop")?, "orders")? > key);
    Ok(())
}
