//! A server that takes over from another behind the same listener.

use keywright_testkit::{
    AT_FENCE, Flavour, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};

use crate::{Shop, id};

/// The store is elsewhere; what the promoted server never heard of is the fence, and its ids went on.
pub(crate) fn a_server_that_took_over_gets_keys_above_its_ids(flavour: Flavour) -> Result<()> {
    let stores = Upstream::start_with(flavour, &[])?;
    let (mut shop, mut promoted) = (Shop::new(flavour)?, Shop::new(flavour)?.server);
    shop.config.store_url = make_store(&stores, "keywright", &[("one", 1)])?;
    let mut proxy = ProxyProcess::start(shop.with("one", "rewrite"))?;
    let port = shop.server.port();
    let insert = |proxy: &ProxyProcess| {
        id(proxy
            .wire("shop")?
            .query("INSERT INTO orders (a) VALUES (1)")?)
    };
    assert_eq!(insert(&proxy)?, 500);
    promoted.run("shop", "INSERT INTO orders (id, a) VALUES (90000, 1)")?;
    // In order: these servers are not as durable as real ones.
    shop.server.stop()?;
    promoted.move_to(port)?;
    let key = insert(&proxy)?;
    assert!(key > 90_000, "{key}");
    let direct = promoted
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?;
    assert!(
        matches!(direct.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)),
        "{direct:?}"
    );

    // Native again, and then the first one comes back, which never heard of that.
    proxy.reload(shop.with("one", "observe"))?;
    wait_until("native ids", WAIT_MAX, || {
        let sql = "SELECT COUNT(*) FROM keywright.keywright_rule WHERE key_space IS NULL";
        Ok(stores.wire("keywright")?.rows(sql)? == [["1"]])
    })?;
    let native = insert(&proxy)?;
    assert!(native > key, "{native} {key}");
    promoted.stop()?;
    shop.server.restart()?;
    let last = insert(&proxy)?;
    assert!(last > key, "{last} {key}");
    Ok(())
}

/// Keys come into force where `admin` leads; whoever has it lead to another server than `upstream` is told so.
pub(crate) fn a_server_that_admin_does_not_lead_to_is_told(flavour: Flavour) -> Result<()> {
    let (mut shop, other) = (Shop::new(flavour)?, Shop::new(flavour)?.server);
    shop.config.upstream_socket = Some(other.socket());
    shop.config.more = "[limits]\nswitch_wait_ms_max = 300\n".to_owned();
    let config = shop.with("one", "rewrite");
    let checked = ProxyProcess::said(&config, &["check"])?;
    assert_has(&checked, &["upstream unix:", "and admin leads to"]);
    let proxy = ProxyProcess::start(config)?;
    let told = "do upstream and admin of each listener lead to the same server?";
    wait_until("the warning", WAIT_MAX, || {
        let answer = proxy
            .wire("shop")?
            .query("INSERT INTO orders (a) VALUES (1)")?;
        assert!(
            matches!(answer.as_slice(), [Reply::Failed(fault)] if fault.errno == 1467),
            "{answer:?}"
        );
        Ok(proxy.log().contains(told))
    })?;
    assert_eq!(
        other.wire("shop")?.rows("SELECT COUNT(*) FROM orders")?,
        [["0"]]
    );
    Ok(())
}
