//! Tables whose keys are of ranges out of a key port.

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, wait_until,
};

use super::{Far, KEYS, SMALL_RANGES, checked};

#[test]
fn tables_get_keys_of_ranges_and_have_the_fence() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        "CREATE DATABASE near;
         CREATE TABLE near.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let far = Far::start(KEYS)?;
    let url = format!("redis://127.0.0.1:{}", far.port()?);
    let mut config = ProxyConfig::before(&server, &url).rule("near.t", "segment:orders");
    config.store = SMALL_RANGES.to_owned();
    let proxy = ProxyProcess::start(config.clone())?;
    let mut wire = proxy.wire("near")?;
    let mut ids = Vec::new();
    for _ in 0..500 {
        ids.push(wire.run("INSERT INTO t (a) VALUES (1)")?.last_insert_id);
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 500);
    // Nobody else can count there.
    let native = server.run("near", "INSERT INTO t (a) VALUES (2)");
    assert!(native.is_err());
    // Ids of their own lie above: none below is given.
    server.run("near", "INSERT INTO t (id, a) VALUES (90000, 3)")?;
    let mut proxy = proxy;
    proxy.stop()?;
    proxy.restart()?;
    let refusal = proxy
        .wire("near")?
        .run("INSERT INTO t (a) VALUES (1)")
        .unwrap_err();
    assert_has(
        &format!("{refusal:#}"),
        &["tables have ids of their own", "ids up to 90000 are taken"],
    );
    let mut far = far;
    far.proxy.stop()?;
    ProxyProcess::said(&far.config, &["advance", "orders", "--above", "90000"])?;
    far.proxy.restart()?;
    wait_until("keys", WAIT_MAX, || {
        Ok(proxy
            .wire("near")?
            .run("INSERT INTO t (a) VALUES (1)")
            .is_ok())
    })?;
    drop(proxy);
    let (is_ready, told) = checked(&config)?;
    assert!(is_ready, "{told}");
    config.rules.push(
        "table = \"near.u\"\ncolumn = \"id\"\nkey = \"segment:orders\"\nmode = \"observe\"\n"
            .to_owned(),
    );
    let (_, told) = checked(&config)?;
    assert_has(&told, &["mode = \"observe\" needs a store that keeps more"]);
    Ok(())
}

/// Ranges that the program has taken lie among the ids of a table that comes by a reload.
#[test]
fn a_reload_goes_on_above_what_a_table_has_that_comes() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        "CREATE DATABASE near;
         CREATE TABLE near.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE near.u LIKE near.t",
    )?;
    let far = Far::start(KEYS)?;
    let url = format!("redis://127.0.0.1:{}", far.port()?);
    let mut config = ProxyConfig::before(&server, &url).rule("near.t", "segment:orders");
    config.store = SMALL_RANGES.to_owned();
    let mut proxy = ProxyProcess::start(config.clone())?;
    let mut wire = proxy.wire("near")?;
    let mut last = 0;
    for _ in 0..50 {
        last = wire.run("INSERT INTO t (a) VALUES (1)")?.last_insert_id;
    }
    let highest = last + 20;
    server.run("near", &format!("INSERT INTO u (id) VALUES ({highest})"))?;
    proxy.reload(config.rule("near.u", "segment:orders"))?;
    wait_until("the reload", WAIT_MAX, || {
        let is_done = "connections follow the rules as they are now";
        Ok(proxy.log().contains(is_done))
    })?;
    let mut id = 0;
    // A range that lies among these ids is refused, and so is who waits for it.
    wait_until("a key", WAIT_MAX, || {
        let done = proxy.wire("near")?.run("INSERT INTO u (a) VALUES (1)");
        id = done.map_or(0, |done| done.last_insert_id);
        Ok(id > 0)
    })?;
    assert!(id > highest, "{id} may have been a row's");
    Ok(())
}
