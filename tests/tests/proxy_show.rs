//! `SHOW KEYWRIGHT …`, and the figures of listeners and clients.

use std::thread;

use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, Wire, assert_has,
    free_port, make_store, wait_until,
};

keywright_testkit::on_both_flavours!(
    lists_are_shown_to_whom_may_see_them,
    a_server_that_cannot_be_reached_is_down,
);

/// The columns of a list, and its rows.
fn shown(wire: &mut Wire, list: &str) -> Result<Vec<Vec<String>>> {
    wire.rows(format!("SHOW KEYWRIGHT {list}"))
}

fn lists_are_shown_to_whom_may_see_them(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE shown; CREATE TABLE shown.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE shown.looked_at (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_shown", &[("t", 1)])?;
    let mut config = ProxyConfig::before(&server, &store)
        .rule("shown.t", "segment:t")
        .rule("shown.looked_at", "snowflake");
    config.rules[1].push_str("mode = \"observe\"\n");
    config.more = "[status]\nusers = [\"root\"]\n".to_owned();
    let mut proxy = ProxyProcess::start(config.clone())?;
    let mut wire = proxy.wire("shown")?;
    wire.run("INSERT INTO t (a) VALUES (1), (2)")?;
    wire.run("INSERT INTO looked_at (a) VALUES (1)")?;

    let rules = shown(&mut wire, "RULES")?;
    assert_eq!(
        rules,
        [
            [
                "shown.t.id",
                "rewrite",
                "segment:t",
                "no",
                "1",
                "0",
                "0",
                "0",
                "0"
            ],
            [
                "shown.looked_at.id",
                "observe",
                "snowflake",
                "no",
                "0",
                "1",
                "0",
                "0",
                "0"
            ],
        ]
    );
    assert_eq!(
        shown(&mut wire, "rules LIKE '%LOOKED%' ;")?,
        [rules[1].clone()]
    );
    let sources = shown(&mut wire, "SOURCES LIKE 'segment:_'")?;
    assert_eq!(sources.len(), 1, "{sources:?}");
    assert_eq!(sources[0][..2], ["segment:t", "2"]);
    assert!(shown(&mut wire, "STATUS LIKE 'rule.%.rewritten'")?.len() == 2);
    assert!(shown(&mut wire, "SOURCES LIKE 'nothing'")?.is_empty());

    // One client is in a statement, and goes by the rules of before until it has ended.
    wire.rows("SELECT GET_LOCK('shown', 0)")?;
    let mut busy = proxy.wire("shown")?;
    let busy = thread::spawn(move || {
        busy.rows("SELECT GET_LOCK('shown', 60)")?;
        anyhow::Ok(busy)
    });
    wait_until("the lock's queue", WAIT_MAX, || {
        let waits = "SELECT 1 FROM information_schema.processlist WHERE state = 'User lock'";
        Ok(!server.run("mysql", waits)?.is_empty())
    })?;
    config.rules[1].push_str("on_explicit = \"refuse\"\n");
    proxy.reload(config)?;
    let connections = |wire: &mut Wire| -> Result<Vec<(String, String)>> {
        let rows = shown(wire, "CONNECTIONS")?;
        let of_root = rows.into_iter().filter(|row| row[3] == "root");
        Ok(of_root
            .map(|row| (row[1].clone(), row[5].clone()))
            .collect())
    };
    let bind = format!("127.0.0.1:{}", proxy.port());
    let is = |rules: &str| (bind.clone(), rules.to_owned());
    wait_until("the rules that were read again", WAIT_MAX, || {
        Ok(connections(&mut wire)? == [is("current"), is("earlier")])
    })?;
    let metrics = proxy.http_get("/metrics")?.1;
    assert_has(
        &metrics,
        &[
            &format!("keywright_clients{{listener=\"{bind}\",rules=\"current\"}} 1\n"),
            &format!("keywright_clients{{listener=\"{bind}\",rules=\"earlier\"}} 1\n"),
            &format!("keywright_upstream_up{{listener=\"{bind}\"}} 1\n"),
            "keywright_key_wait_seconds_bucket{source=\"segment:t\",le=\"+Inf\"}",
        ],
    );
    wire.rows("SELECT RELEASE_LOCK('shown')")?;
    let busy = busy.join().expect("the client of the lock")?;
    wait_until("both by the rules of now", WAIT_MAX, || {
        Ok(connections(&mut wire)? == [is("current"), is("current")])
    })?;
    drop(busy);
    wait_until("the client's end", WAIT_MAX, || {
        Ok(connections(&mut wire)? == [is("current")])
    })?;

    let page = proxy.http_get("/status.json")?.1;
    assert_has(&page, &["\"upstream_up\":true", "\"clients\":1"]);
    Ok(())
}

fn a_server_that_cannot_be_reached_is_down(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_down", &[])?;
    let proxy = ProxyProcess::start(ProxyConfig {
        upstream_ports: vec![free_port()?],
        listener: "check = \"warn\"\n".to_owned(),
        ..ProxyConfig::before(&server, &store)
    })?;
    let (port, login) = (proxy.port(), Login::root("mysql"));
    assert!(Wire::connect_tcp(port, &login).is_err());
    let metrics = proxy.http_get("/metrics")?.1;
    let down = format!("keywright_upstream_up{{listener=\"127.0.0.1:{port}\"}} 0\n");
    assert_has(&metrics, &[&down]);
    let page = proxy.http_get("/status.json")?.1;
    assert_has(&page, &["\"upstream_up\":false"]);
    Ok(())
}
