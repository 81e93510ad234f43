//! What tests of stores on other engines than MySQL's have in common.

use std::thread;

use keywright_testkit::{Flavour, ProxyConfig, ProxyProcess, Result, Upstream};

/// A server with the tables `killed.t` and `killed.s`.
pub(crate) fn server_with_tables() -> Result<Upstream> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        "CREATE DATABASE killed;
         CREATE TABLE killed.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE killed.s (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    Ok(server)
}

/// Ids of rows of `killed.NAME` that are inserted.
pub(crate) fn insert(proxy: &ProxyProcess, table: &str, rows: usize) -> Result<Vec<u64>> {
    let mut wire = proxy.wire("killed")?;
    let insert = format!("INSERT INTO {table} (a) VALUES (1)");
    let ids = (0..rows).map(|_| Ok(wire.run(&insert)?.last_insert_id));
    ids.collect()
}

/// What copies of one configuration say that make the store at the same time.
pub(crate) fn made_by_all(config: &ProxyConfig) -> Result<Vec<String>> {
    const COPIES: usize = 6;
    thread::scope(|scope| {
        let init = || ProxyProcess::said(config, &["init"]);
        let all: Vec<_> = (0..COPIES).map(|_| scope.spawn(init)).collect();
        let all = all
            .into_iter()
            .map(|copy| copy.join().expect("it panicked"));
        all.collect()
    })
}
