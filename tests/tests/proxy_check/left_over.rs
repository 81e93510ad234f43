//! What somebody has left who went past the switch, and what a program will make of a file that says something else than the store.

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, wait_until,
};

use crate::{rule, shop, with};

/// A program has switched the table, and has ended.
fn switched(config: &ProxyConfig) -> Result<()> {
    let mut proxy = ProxyProcess::start(with(config, rule("shop.orders", "rewrite", true)))?;
    let insert = "INSERT INTO orders (a) VALUES (1)";
    assert!(proxy.wire("shop")?.run(insert)?.last_insert_id >= 1000);
    proxy.stop()?;
    Ok(())
}

fn is_logged(proxy: &ProxyProcess, text: &str) -> Result<()> {
    wait_until(&format!("{text:?} in the log"), WAIT_MAX, || {
        Ok(proxy.log().contains(text))
    })
}

/// Else nothing says why each INSERT is refused.
pub(crate) fn a_fence_that_is_left_is_told(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    let [observe, rewrite] =
        ["observe", "rewrite"].map(|mode| with(&config, rule("shop.orders", mode, true)));
    switched(&config)?;
    let left = "`shop`.`orders` has a fence, and its rule gives no keys";
    for config in [&observe, &rewrite] {
        let said = ProxyProcess::said(config, &["check"])?;
        assert!(!said.contains(left), "{said}");
    }
    // The last step of keywright release, behind a program that has put the fence up again.
    server.run("keywright", "UPDATE keywright_rule SET key_space = NULL")?;
    for config in [&observe, &rewrite] {
        let said = ProxyProcess::said(config, &["check"])?;
        assert_has(&said, &[&format!("127.0.0.1:1: warning: {left}")]);
    }
    let mut proxy = ProxyProcess::start(observe.clone())?;
    is_logged(&proxy, left)?;
    proxy.stop()?;
    let statements = ProxyProcess::said(&observe, &["release"])?;
    server.run("shop", &statements)?;
    let said = ProxyProcess::said(&observe, &["check"])?;
    assert!(!said.contains(left), "{said}");
    Ok(())
}

/// Its counter is what a fence would be, and nothing is above its rows.
#[test]
fn a_full_column_is_not_taken_for_a_fence_that_is_left() -> Result<()> {
    if !Flavour::MariaDb.is_wanted() {
        return Ok(());
    }
    let (server, config) = shop(Flavour::MariaDb, &[])?;
    server.run(
        "shop",
        "CREATE TABLE small (id INT AUTO_INCREMENT PRIMARY KEY, a INT);
         INSERT INTO small (id, a) VALUES (2147483647, 1)",
    )?;
    let observes = rule("shop.small", "observe", true);
    let config = with(&config, format!("{observes}bits_max = 31\n"));
    let full = "`shop`.`small` is full";
    let said = ProxyProcess::said(&config, &["check"])?;
    assert_has(&said, &[&format!("127.0.0.1:1: warning: {full}")]);
    let proxy = ProxyProcess::start(config)?;
    is_logged(&proxy, full)?;
    for said in [said, proxy.log()] {
        assert!(!said.contains("has a fence"), "{said}");
    }
    Ok(())
}

pub(crate) fn a_rule_that_a_file_lacks_is_told(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    switched(&config)?;
    let lacks =
        "the store says that rule shop.orders, column id, gives keys from \"segment:orders\"";
    let has = with(&config, rule("shop.orders", "rewrite", true));
    let said = ProxyProcess::said(&has, &["check"])?;
    assert!(!said.contains(lacks), "{said}");
    let said = ProxyProcess::said(&config, &["check"])?;
    // The file of the program that has switched the table has it.
    assert_has(&said, &[&format!("store: note: {lacks}")]);
    let is_gone = "had it, and no program on that host is heard of now. If";
    assert_has(&said, &[is_gone]);
    let mut killed = ProxyProcess::start(has.clone())?;
    killed.kill9()?;
    let mut serves = ProxyProcess::start(has)?;
    let said = ProxyProcess::said(&config, &["check"])?;
    assert_has(&said, &[&format!("store: note: {lacks}"), "has it. If"]);
    serves.stop()?;
    // It has stopped just now. What the store still has is of the one that was killed before.
    wait_until("the silence of the one that was killed", WAIT_MAX, || {
        Ok(ProxyProcess::said(&config, &["check"])?.contains(is_gone))
    })?;
    server.run("keywright", "DELETE FROM keywright_wanted")?;
    let said = ProxyProcess::said(&config, &["check"])?;
    assert_has(&said, &[&format!("store: warning: {lacks}")]);
    let proxy = ProxyProcess::start(config.clone())?;
    is_logged(&proxy, lacks)?;
    // Of other servers others have the rules.
    let other = Upstream::start_with(flavour, &["--server-id=9"])?;
    let elsewhere = ProxyConfig::before(&other, &config.store_url);
    let said = ProxyProcess::said(&elsewhere, &["check"])?;
    assert!(!said.contains(lacks), "{said}");
    Ok(())
}

/// The file is new to the table, so `run` leaves it as it is.
pub(crate) fn what_run_leaves_as_it_is_is_told(flavour: Flavour) -> Result<()> {
    let (_server, config) = shop(flavour, &[])?;
    let first = with(&config, rule("shop.orders", "rewrite", true));
    let said = ProxyProcess::said(&first, &["check"])?;
    assert_has(&said, &["run switches its tables over to keys"]);
    switched(&config)?;
    let observe = rule("shop.orders", "observe", true);
    let other = rule("shop.orders", "rewrite", true).replace("segment:orders", "snowflake");
    for (rule, wanted) in [(observe, "native auto-increment"), (other, "\"snowflake\"")] {
        let config = with(&config, rule);
        let said = ProxyProcess::said(&config, &["check"])?;
        let stays = format!(
            "warning: shop.orders.id gets its ids from \"segment:orders\" now, as another program or file has switched it, and this configuration says \
             {wanted}: a program that starts leaves it so"
        );
        assert_has(&said, &[&stays]);
        assert!(!said.contains("note: shop.orders.id"), "{said}");
        let mut proxy = ProxyProcess::start(config)?;
        is_logged(&proxy, "the keys come from \"segment:orders\" now")?;
        proxy.stop()?;
    }
    Ok(())
}

/// With what leaves them out.
pub(crate) fn ids_above_the_tag_are_told(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    switched(&config)?;
    server.run("shop", "INSERT INTO orders (id, a) VALUES (50000, 1)")?;
    let config = with(&config, rule("shop.orders", "rewrite", true));
    let above = "`shop`.`orders` has ids up to 50000: those between may be given a second time. keywright advance orders --above 50000 leaves them out";
    assert_has(&ProxyProcess::said(&config, &["check"])?, &[above]);
    ProxyProcess::said(&config, &["advance", "orders", "--above", "50000"])?;
    let said = ProxyProcess::said(&config, &["check"])?;
    assert!(!said.contains("`shop`.`orders` has ids up to"), "{said}");
    Ok(())
}
