//! Runs pgbench.

use std::ffi::OsString;
use std::fs;
use std::thread;

use anyhow::{Context, Result};
use keywright_tests::PgServer;
use tempfile::TempDir;

use crate::shell::output;

/// One run: that statement, from that many clients, for so long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) statement: &'a str,
    pub(super) clients: u16,
    pub(super) seconds: u32,
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
        let figure = said
            .lines()
            .find_map(|line| line.strip_prefix("tps = "))
            .and_then(|rest| rest.split_whitespace().next());
        let figure = figure.with_context(|| format!("pgbench told no tps:\n{said}"))?;
        figure
            .parse()
            .with_context(|| format!("pgbench's tps {figure:?} is no number"))
    }

    /// How long each transaction took, microseconds, shortest first.
    ///
    /// # Errors
    /// pgbench failed, a client was refused, or its log is not what it should be.
    pub(super) fn latencies_us(self, server: &PgServer) -> Result<Vec<u32>> {
        let dir = TempDir::new().context("making a temporary directory")?;
        let mut prefix = OsString::from("--log-prefix=");
        prefix.push(dir.path().join("transactions"));
        // A thread that serves several clients reads the clock once for all that are ready: their times come out wrong.
        let threads = usize::from(self.clients);
        self.go(server, &dir, threads, &[OsString::from("--log"), prefix])?;
        let mut latencies = Vec::new();
        for entry in fs::read_dir(dir.path())? {
            let entry = entry?;
            if !entry
                .file_name()
                .to_string_lossy()
                .starts_with("transactions")
            {
                continue;
            }
            // One line per transaction: client, number, microseconds, script, and when.
            for line in fs::read_to_string(entry.path())?.lines() {
                let took = line.split(' ').nth(2).and_then(|word| word.parse().ok());
                latencies.push(took.with_context(|| format!("pgbench logged {line:?}"))?);
            }
        }
        latencies.sort_unstable();
        Ok(latencies)
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
