//! Runs pgbench.

use std::ffi::OsString;
use std::fs;
use std::thread;

use anyhow::{Context, Result};
use keywright_testkit::PgServer;
use tempfile::TempDir;

use crate::shell::output;

/// One run: that statement, from that many clients, for so long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) statement: &'a str,
    pub(super) clients: u16,
    pub(super) seconds: u32,
}

/// At the start of a run with a rate each connection fills its caches: what ends in these seconds is left out of its latencies.
pub(super) const WARM_UP_S: u32 = 3;

/// What a run with a log showed.
pub(super) struct Logged {
    /// Transactions per second, connecting left out.
    pub(super) tps: f64,
    /// How long each transaction took, microseconds, shortest first. Where a rate is asked for, without those of [`WARM_UP_S`].
    pub(super) latencies_us: Vec<u32>,
}

impl Logged {
    /// The smallest latency that this part of them does not exceed.
    pub(super) fn percentile(&self, part: f64) -> f64 {
        let rank = (self.latencies_us.len() as f64 * part).ceil() as usize;
        let figure = self.latencies_us.get(rank.saturating_sub(1));
        figure.map_or(f64::NAN, |&us| f64::from(us))
    }
}

impl Run<'_> {
    /// Transactions per second, connecting left out.
    ///
    /// # Errors
    /// pgbench failed, a client was refused, or the output has no such figure.
    pub(super) fn tps(self, server: &PgServer) -> Result<f64> {
        let dir = TempDir::new().context("making a temporary directory")?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let said = self.go(server, &dir, usize::from(self.clients).min(cores), &[])?;
        tps(&said)
    }

    /// With a log of every transaction.
    ///
    /// With a rate, in transactions per second of all clients together, each begins when it is due (at random moments, as requests
    /// come), and its time counts from then on, so that one which waits for a connection is not left out.
    ///
    /// # Errors
    /// pgbench failed, a client was refused, or its log is not what it should be.
    pub(super) fn logged(self, server: &PgServer, rate: Option<u32>) -> Result<Logged> {
        let dir = TempDir::new().context("making a temporary directory")?;
        let mut prefix = OsString::from("--log-prefix=");
        prefix.push(dir.path().join("transactions"));
        let mut more = vec![OsString::from("--log"), prefix];
        more.extend(rate.map(|rate| OsString::from(format!("--rate={rate}"))));
        // A thread that serves several clients reads the clock once for all that are ready: their times come out wrong.
        let said = self.go(server, &dir, usize::from(self.clients), &more)?;
        Ok(Logged {
            tps: tps(&said)?,
            latencies_us: latencies_us(&dir, rate.map_or(0, |_| WARM_UP_S))?,
        })
    }

    /// The prepared protocol.
    fn go(
        self,
        server: &PgServer,
        dir: &TempDir,
        threads: usize,
        more: &[OsString],
    ) -> Result<String> {
        let script = dir.path().join("script.sql");
        fs::write(&script, format!("{};\n", self.statement)).context("writing the script")?;
        let mut command = server.tool("pgbench");
        command
            .args(["--no-vacuum", "--protocol=prepared"])
            .arg(format!("--client={}", self.clients))
            .arg(format!("--jobs={threads}"))
            .arg(format!("--time={}", self.seconds))
            .args(more)
            .arg("--file")
            .arg(&script);
        output(&mut command)
    }
}

fn tps(said: &str) -> Result<f64> {
    let figure = said
        .lines()
        .find_map(|line| line.strip_prefix("tps = "))
        .and_then(|rest| rest.split_whitespace().next());
    let figure = figure.with_context(|| format!("pgbench told no tps:\n{said}"))?;
    figure
        .parse()
        .with_context(|| format!("pgbench's tps {figure:?} is no number"))
}

/// Those that ended later than `warm_up_s` after the first.
fn latencies_us(dir: &TempDir, warm_up_s: u32) -> Result<Vec<u32>> {
    let mut ended = Vec::new();
    for entry in fs::read_dir(dir.path())? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with("transactions") {
            continue;
        }
        for line in fs::read_to_string(entry.path())?.lines() {
            let transaction = transaction(line);
            ended.push(transaction.with_context(|| format!("pgbench logged {line:?}"))?);
        }
    }
    let first_s = ended.iter().map(|&(s, _)| s).min().unwrap_or(0);
    let late = ended
        .iter()
        .filter(|&&(s, _)| s >= first_s + u64::from(warm_up_s));
    let mut latencies: Vec<u32> = late.map(|&(_, us)| us).collect();
    latencies.sort_unstable();
    Ok(latencies)
}

/// The second in which it ended, and microseconds that it took. A line has client, number, microseconds, script, second, and more.
fn transaction(line: &str) -> Option<(u64, u32)> {
    let mut words = line.split(' ');
    let took_us = words.nth(2)?.parse().ok()?;
    Some((words.nth(1)?.parse().ok()?, took_us))
}
