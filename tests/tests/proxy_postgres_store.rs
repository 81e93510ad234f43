//! A store in PostgreSQL: bounds of MySQL's keys on another kind of server.

#[path = "common/stores.rs"]
mod stores;

use std::collections::BTreeSet;

use keywright_testkit::{
    Flavour, PgServer, ProxyConfig, ProxyProcess, Result, Stop, Upstream, assert_has,
};
use stores::{insert, made_by_all, server_with_tables};

/// As copies of one configuration do that are started together.
#[test]
fn whoever_makes_the_store_together_with_others_is_content() -> Result<()> {
    let store = PgServer::builder().preload(false).start()?;
    store
        .client("postgres")?
        .batch_execute("CREATE DATABASE keywright")?;
    let server = Upstream::start(Flavour::MariaDb)?;
    let config = ProxyConfig::before(&server, &store.url("keywright"))
        .rule("shop.a", "segment:a")
        .rule("shop.b", "segment:b");
    let said = made_by_all(&config)?;
    for tag in ["created tag \"a\"", "created tag \"b\""] {
        let made = said.iter().filter(|said| said.contains(tag));
        assert_eq!(made.count(), 1, "{said:?}");
    }
    Ok(())
}

#[test]
fn no_key_comes_twice_however_programs_and_the_store_end() -> Result<()> {
    let mut store = PgServer::builder().preload(false).start()?;
    let owner = "CREATE ROLE keywright LOGIN; CREATE DATABASE keywright OWNER keywright";
    for sql in owner.split("; ") {
        store.client("postgres")?.batch_execute(sql)?;
    }
    let server = server_with_tables()?;
    let url = format!("postgres://keywright@127.0.0.1:{}/keywright", store.port());
    let config = ProxyConfig::before(&server, &url)
        .rule("killed.t", "segment:orders")
        .rule("killed.s", "snowflake");
    let output = ProxyProcess::command(&config, &["check"])?;
    assert_has(
        &String::from_utf8(output.stdout)?,
        &["it has none of its tables yet: run keywright init"],
    );
    let output = ProxyProcess::said(&config, &["init"])?;
    assert_has(
        &output,
        &["created keywright_segment", "created tag \"orders\""],
    );
    assert_has(&ProxyProcess::said(&config, &["init"])?, &["nothing to do"]);
    let mut ids = [BTreeSet::new(), BTreeSet::new()];
    let mut all = 0;
    // Two programs share it.
    let other = ProxyProcess::start(config.clone())?;
    for round in 0..4 {
        let mut proxy = ProxyProcess::start(config.clone())?;
        for program in [&proxy, &other] {
            for (table, ids) in ["t", "s"].iter().zip(&mut ids) {
                let given = insert(program, table, 50)?;
                all += given.len();
                ids.extend(given);
            }
        }
        match round % 2 {
            0 => proxy.kill9()?,
            _ => proxy.stop()?,
        };
        match round {
            1 => store.restart(Stop::Fast)?,
            2 => {
                store.kill9()?;
                store.start()?;
            }
            _ => {}
        }
    }
    assert_eq!(ids.iter().map(BTreeSet::len).sum::<usize>(), all);
    let output = ProxyProcess::said(&config, &["advance", "orders", "--above", "70000"])?;
    assert_has(&output, &["tag \"orders\" goes on at 70001"]);
    Ok(())
}
