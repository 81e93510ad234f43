//! A server that takes over from another behind the same listener.

use keywright_testkit::{
    AT_FENCE, Flavour, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, make_store, wait_until,
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
