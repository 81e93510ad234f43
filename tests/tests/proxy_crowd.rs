//! Many connections at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use keywright_testkit::{
    Flavour, IdLog, ProxyConfig, ProxyProcess, Result, Upstream, Wire, make_store,
};

/// Connections held, and how many of them work at any time.
const HELD: usize = 2000;
const ACTIVE: usize = 200;

/// How long they work, in seconds; the variable asks for longer than a quick run does.
const WORK_S: u64 = 3;
const WORK_VARIABLE: &str = "KEYWRIGHT_CROWD_S";

/// What a connection may cost the proxy when it is idle, in bytes: its buffers are others' then.
const IDLE_BYTES_MAX: u64 = 10 * 1024;

#[test]
fn two_thousand_connections_are_held() -> Result<()> {
    let server = Upstream::start_with(
        Flavour::MariaDb,
        &[
            "--max-connections=2500",
            "--open-files-limit=10000",
            "--back-log=2000",
        ],
    )?;
    server.run("mysql", "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")?;
    let store = make_store(&server, "keywright", &[("orders", 1)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("shop.orders", "segment:orders");
    config.more = "[limits]\nconnections_max = 2500\n".to_owned();
    let proxy = ProxyProcess::start(config)?;
    proxy
        .wire("shop")?
        .run("INSERT INTO orders (a) VALUES (0)")?;
    let before = resident_bytes(proxy.pid()?)?;
    let mut crowd = (0..HELD)
        .map(|_| proxy.wire("shop"))
        .collect::<Result<Vec<Wire>>>()?;
    let per_connection = resident_bytes(proxy.pid()?)?.saturating_sub(before) / HELD as u64;

    let seconds = std::env::var(WORK_VARIABLE)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(WORK_S);
    let until = Instant::now() + Duration::from_secs(seconds);
    let (log, statements, failed) = (IdLog::new(), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for part in crowd.chunks_mut(HELD / ACTIVE) {
            let (log, statements, failed) = (&log, &statements, &failed);
            scope.spawn(move || {
                let mut ids = Vec::new();
                let done = work(part, until, &mut ids);
                statements.fetch_add(ids.len() as u64, Ordering::Relaxed);
                log.record_unordered(ids);
                if let Err(error) = done {
                    eprintln!("{error:#}");
                    failed.store(true, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(
        !failed.load(Ordering::Relaxed),
        "an error on a connection; proxy's log:\n{}",
        proxy.log()
    );
    let issued = log.check()?;
    println!(
        "{HELD} connections, {ACTIVE} of them active for {seconds} s: {} inserts, {per_connection} bytes per idle connection, {} bytes in all afterwards",
        statements.load(Ordering::Relaxed),
        resident_bytes(proxy.pid()?)?
    );
    assert!(issued.count >= HELD, "each connection inserted: {issued:?}");
    assert!(
        per_connection <= IDLE_BYTES_MAX,
        "{per_connection} bytes per idle connection"
    );
    // Every connection still works, and says what it inserted last.
    for wire in &mut crowd {
        assert_ne!(wire.rows("SELECT LAST_INSERT_ID()")?, [["0"]]);
    }
    Ok(())
}

/// Inserts on one connection after another until the time is up, and once on each in any case.
fn work(part: &mut [Wire], until: Instant, ids: &mut Vec<i64>) -> Result<()> {
    loop {
        for wire in part.iter_mut() {
            let done = wire.run("INSERT INTO orders (a) VALUES (1)")?;
            ids.push(i64::try_from(done.last_insert_id)?);
        }
        if Instant::now() >= until {
            return Ok(());
        }
    }
}

/// `VmRSS` of a process.
fn resident_bytes(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .context("no VmRSS")?;
    Ok(kilobytes.trim().parse::<u64>()? * 1024)
}
