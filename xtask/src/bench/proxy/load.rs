//! Runs sysbench with `load.lua`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::output;

/// Connections that send at the same time.
pub(super) const CLIENTS: u16 = 8;

/// What is sent, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Statement {
    TextInsert,
    PreparedInsert,
    ThousandRows,
    /// A text insert on a connection of its own: connect, log in, insert, close.
    InsertOnce,
    PointSelect,
    BigResult,
    /// A text insert whose key the application writes as `LAST_INSERT_ID(k)`, as the proxy would.
    WrappedInsert,
    /// The same prepared.
    WrappedPrepared,
}

impl Statement {
    /// Those that every way to the server is measured with.
    pub(super) const ALL: [Statement; 6] = [
        Statement::TextInsert,
        Statement::PreparedInsert,
        Statement::ThousandRows,
        Statement::InsertOnce,
        Statement::PointSelect,
        Statement::BigResult,
    ];

    /// The same statement with its key in it as the proxy would write it, where the server pays for that by itself.
    pub(super) fn wrapped(self) -> Option<Statement> {
        match self {
            Statement::TextInsert => Some(Statement::WrappedInsert),
            Statement::PreparedInsert => Some(Statement::WrappedPrepared),
            Statement::ThousandRows
            | Statement::InsertOnce
            | Statement::PointSelect
            | Statement::BigResult
            | Statement::WrappedInsert
            | Statement::WrappedPrepared => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Statement::TextInsert => "text insert",
            Statement::PreparedInsert => "prepared insert",
            Statement::ThousandRows => "insert of 1000 rows",
            Statement::InsertOnce => "connect, insert, close",
            Statement::PointSelect => "point select",
            Statement::BigResult => "result of 10 MB",
            Statement::WrappedInsert => "text insert with LAST_INSERT_ID(k)",
            Statement::WrappedPrepared => "prepared insert with LAST_INSERT_ID(k)",
        }
    }

    fn in_script(self) -> &'static str {
        match self {
            Statement::TextInsert => "insert",
            Statement::PreparedInsert => "insert_prepared",
            Statement::ThousandRows => "insert_thousand",
            Statement::InsertOnce => "insert_once",
            Statement::PointSelect => "select",
            Statement::BigResult => "result",
            Statement::WrappedInsert => "insert_wrapped",
            Statement::WrappedPrepared => "insert_wrapped_prepared",
        }
    }

    /// Whether it writes rows.
    pub(super) fn inserts(self) -> bool {
        match self {
            Statement::TextInsert
            | Statement::PreparedInsert
            | Statement::ThousandRows
            | Statement::InsertOnce
            | Statement::WrappedInsert
            | Statement::WrappedPrepared => true,
            Statement::PointSelect | Statement::BigResult => false,
        }
    }
}

/// What one run of sysbench showed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) statements: f64,
    pub(super) per_s: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// Sends `statement` to `port` for so long.
///
/// # Errors
/// sysbench failed, which it does when one statement does.
pub(super) fn run(
    script: &Path,
    port: u16,
    statement: Statement,
    into: &str,
    seconds: u32,
) -> Result<Run> {
    let mut command = Command::new("sysbench");
    command
        .args(["--db-driver=mysql", "--mysql-host=127.0.0.1"])
        .args(["--mysql-user=bench", "--mysql-db=bench"])
        .args(["--percentile=99", "--histogram=on"])
        .arg(format!("--mysql-port={port}"))
        .arg(format!("--threads={CLIENTS}"))
        .arg(format!("--time={seconds}"))
        .arg(script)
        .arg(format!("--statement={}", statement.in_script()))
        .arg(format!("--into={into}"))
        .arg("run");
    let said = output(&mut command)?;
    read(&said).with_context(|| format!("sysbench printed\n{said}"))
}

fn read(said: &str) -> Option<Run> {
    let (statements, rest) = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("transactions:"))?
        .trim()
        .split_once(' ')?;
    let per_s = rest.trim().trim_start_matches('(').split(' ').next()?;
    let p99_ms = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("99th percentile:"))?;
    Some(Run {
        statements: statements.parse().ok()?,
        per_s: per_s.parse().ok()?,
        p50_ms: median(said)?,
        p99_ms: p99_ms.trim().parse().ok()?,
    })
}

/// The median of the histogram, whose lines are `milliseconds |bar count`.
fn median(said: &str) -> Option<f64> {
    let buckets: Vec<(f64, u64)> = said
        .lines()
        .filter_map(|line| {
            let (ms, bar) = line.split_once('|')?;
            let count = bar.split_whitespace().last()?;
            Some((ms.trim().parse().ok()?, count.parse().ok()?))
        })
        .collect();
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    buckets.iter().find_map(|(ms, count)| {
        seen += count;
        (2 * seen >= all).then_some(*ms)
    })
}
