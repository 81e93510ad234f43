//! A store that gives ranges and keeps nothing else: a key port of another program, or a Redis.

mod chained;
mod key_port;
mod plain;
mod plain_refused;
mod rules;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{ProxyConfig, ProxyProcess, Result, WAIT_MAX, scratch_dir, wait_until};
use tempfile::TempDir;

const KEYS: &str = "keys = { orders = \"segment:orders\" }\n";

/// What has it try again soon, and take ranges of a size that is used up soon.
const SMALL_RANGES: &str =
    "step = 200\nstep_max = 400\nstore_ms_max = 500\nbackoff_ms_max = 100\nwait_ms_max = 10000\n";

/// The program whose key port the other's store is; its own is in a file.
struct Far {
    config: ProxyConfig,
    proxy: ProxyProcess,
    scratch: TempDir,
}

impl Far {
    fn start(lines: &str) -> Result<Far> {
        let scratch = scratch_dir()?;
        let config = ProxyConfig::key_port(&scratch.path().join("store.db"), lines);
        ProxyProcess::said(&config, &["init"])?;
        Ok(Far {
            proxy: ProxyProcess::start(config.clone())?,
            config,
            scratch,
        })
    }

    fn port(&self) -> Result<u16> {
        self.proxy.key_port()
    }
}

/// A program that takes its ranges at this port of the machine, with further lines of `[store]`.
fn near(port: u16, store: &str) -> ProxyConfig {
    ProxyConfig {
        store_url: format!("redis://127.0.0.1:{port}"),
        store: format!("{SMALL_RANGES}{store}"),
        key_ports: vec![KEYS.to_owned()],
        ..ProxyConfig::default()
    }
}

/// What `check` says, and whether the program could run.
fn checked(config: &ProxyConfig) -> Result<(bool, String)> {
    let output = ProxyProcess::command(config, &["check"])?;
    let told = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8(told)?))
}

/// The refusal of a program that does not start.
fn not_started(config: ProxyConfig) -> Result<String> {
    match ProxyProcess::start(config) {
        Ok(_) => anyhow::bail!("it started"),
        Err(error) => Ok(format!("{error:#}")),
    }
}

/// Runs of numbers that clients were told, first and last.
#[derive(Default)]
struct Given {
    runs: Mutex<Vec<(i64, i64)>>,
    count: AtomicI64,
    highest: AtomicI64,
}

impl Given {
    fn note(&self, last: i64, count: i64) {
        self.lock().push((last - count + 1, last));
        self.count.fetch_add(count, Ordering::Relaxed);
        self.highest.fetch_max(last, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(i64, i64)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runs(&self) -> Vec<(i64, i64)> {
        let mut runs = self.lock().clone();
        runs.sort_unstable();
        runs
    }

    fn count(&self) -> i64 {
        self.count.load(Ordering::Relaxed)
    }

    fn highest(&self) -> i64 {
        self.highest.load(Ordering::Relaxed)
    }

    /// That no number is in two of them.
    fn assert_distinct(&self) {
        for pair in self.runs().windows(2) {
            assert!(pair[0].1 < pair[1].0, "given twice: {pair:?}");
        }
    }

    /// Takes runs until there is an error, or nobody any more; that error.
    fn take_until_refused(&self, port: u16, count: i64) -> Result<String> {
        let mut client = RespClient::connect(port)?;
        loop {
            match client.ask(&["INCRBY", "orders", &count.to_string()])? {
                RespValue::Integer(last) => self.note(last, count),
                RespValue::Error(text) => return Ok(text),
                other => anyhow::bail!("{other:?}"),
            }
        }
    }

    /// Takes runs, whatever comes between, until it is over.
    fn take_until_over(&self, port: u16, count: i64, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let _ended = self.take_some(port, count, over);
        }
    }

    fn take_some(&self, port: u16, count: i64, over: &AtomicBool) -> Result<()> {
        let mut client = RespClient::connect(port)?;
        while !over.load(Ordering::Relaxed) {
            if let RespValue::Integer(last) =
                client.ask(&["INCRBY", "orders", &count.to_string()])?
            {
                self.note(last, count);
            }
        }
        Ok(())
    }

    /// Waits until a run is given that is longer than what was left of the last range.
    fn wait_until_given(&self, port: u16) -> Result<()> {
        const COUNT: i64 = 100;
        wait_until("numbers", WAIT_MAX, || {
            let mut client = RespClient::connect(port)?;
            match client.ask(&["INCRBY", "orders", &COUNT.to_string()])? {
                RespValue::Integer(last) => self.note(last, COUNT),
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    /// So many single ones.
    fn take(&self, port: u16, count: usize) -> Result<()> {
        let mut client = RespClient::connect(port)?;
        for _ in 0..count {
            let last = client.say("INCR orders")?.integer()?;
            self.note(last, 1);
        }
        Ok(())
    }
}

/// The names of all figures that a program has of its sources.
fn series(proxy: &ProxyProcess) -> Result<BTreeSet<String>> {
    let (_, text) = proxy.http_get("/metrics")?;
    let lines = text.lines().filter(|line| line.contains("segment:orders"));
    Ok(lines
        .filter_map(|line| line.split('{').next())
        .map(str::to_owned)
        .collect())
}
