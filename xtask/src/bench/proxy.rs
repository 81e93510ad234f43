//! `cargo xtask bench proxy`: what a statement costs on its way through a proxy, all in one run on one private server.

mod idle;
mod load;
mod misses;
mod ways;

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};
use keywright_testkit::MariaServer;
use tempfile::TempDir;

use super::cores::Cores;
use super::machine;
use super::report::{Limit, Report, Section, Table, Target};
use super::rounds::{Rounds, interleave};
use crate::needs;
use crate::shell::step;
use load::{CLIENTS, Run, Statement};
use ways::{Hop, Way};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) rounds: u16,
    /// Duration of one run, seconds.
    pub(super) run_s: u32,
}

/// One run: the statement and the way it went.
type Contender = (Statement, Way);

/// What one run showed.
struct Figures {
    run: Run,
    /// CPU seconds of the proxy per 100,000 statements.
    cpu_s: f64,
}

/// What the proxy sets BIGINT's counter to, so that the server cannot issue: the largest value + 1. Another value is a
/// counter that has run ahead, and the proxy gives the table no keys.
const FENCE: u64 = 1 << 63;

const SCHEMA: &str = "
CREATE DATABASE bench;
CREATE USER bench@'127.0.0.1';
GRANT ALL ON bench.* TO bench@'127.0.0.1';
USE bench;
CREATE TABLE t_native (id bigint AUTO_INCREMENT PRIMARY KEY, customer int NOT NULL, note varchar(200) NOT NULL);
CREATE TABLE t_segment LIKE t_native;
CREATE TABLE t_snowflake LIKE t_native;
CREATE TABLE t_wrapped LIKE t_native;
CREATE TABLE read_only LIKE t_native;
INSERT INTO read_only SELECT seq, seq, repeat('n', 120) FROM seq_1_to_10000;
CREATE TABLE big (kilobyte varchar(1024) NOT NULL);
INSERT INTO big SELECT repeat('k', 1024) FROM seq_1_to_10000;
";

/// Measures everything.
///
/// # Errors
/// A program is missing or fails; a statement is refused.
pub(super) fn measure(sizes: Sizes) -> Result<Report> {
    needs::install(&needs::to_bench_proxy())?;
    let load_before = machine::load()?;
    step("starting a private MariaDB, HAProxy and the proxy");
    let dir = TempDir::new().context("making a temporary directory")?;
    let script = dir.path().join("load.lua");
    fs::write(&script, include_str!("proxy/load.lua"))?;
    ways::build()?;
    let cores = Cores::get()?;
    let server = cores.on_others(MariaServer::start)?;
    server.run("mysql", SCHEMA)?;
    server.run(
        "mysql",
        "CREATE DATABASE keywright; SET GLOBAL max_connections = 3000",
    )?;
    ways::prepare(&server, dir.path())?;
    let mut hops = BTreeMap::new();
    for way in Way::ALL {
        hops.insert(way, Hop::start(way, &server, dir.path(), &cores)?);
    }
    let started = Instant::now();
    let mut contenders: Vec<Contender> = Statement::ALL
        .into_iter()
        .flat_map(|statement| Way::ALL.map(|way| (statement, way)))
        .collect();
    let wrapped = Statement::ALL.into_iter().filter_map(Statement::wrapped);
    contenders.extend(wrapped.map(|statement| (statement, Way::Haproxy)));
    step("statements over every way");
    let figures = interleave(&contenders, sizes.rounds, |(statement, way)| {
        let hop = hops.get(&way).context("every way was started")?;
        let into = match statement {
            Statement::WrappedInsert | Statement::WrappedPrepared => "t_wrapped",
            Statement::TextInsert
            | Statement::PreparedInsert
            | Statement::ThousandRows
            | Statement::InsertOnce
            | Statement::PointSelect
            | Statement::BigResult => way.table(),
        };
        if statement.inserts() {
            // Not DELETE: the server would go on clearing away during the run. TRUNCATE takes the fence away.
            server.run("bench", &format!("TRUNCATE {into}"))?;
            if way.is_fenced() {
                server.run(
                    "bench",
                    &format!("ALTER TABLE {into} AUTO_INCREMENT = {FENCE}"),
                )?;
            }
        }
        let before_ns = hop.cpu_ns()?;
        let run =
            cores.on_others(|| load::run(&script, hop.port(), statement, into, sizes.run_s))?;
        let used_ns = hop.cpu_ns()?.saturating_sub(before_ns);
        Ok(Figures {
            run,
            cpu_s: used_ns as f64 / 1e9 / run.statements * 100_000.0,
        })
    })?;
    drop(hops);
    step("connections that are idle");
    let idle = idle::measure(&server, dir.path(), sizes.rounds, &cores)?;
    Ok(Report {
        machine: machine::facts_of_proxies(&server, sizes.rounds, load_before, started.elapsed())?,
        sections: vec![section(&figures, sizes), idle],
    })
}

fn section(figures: &Rounds<Contender, Figures>, sizes: Sizes) -> Section {
    let cost = |statement: Statement, wrapped: Statement| {
        figures.spread(move |round| {
            round[&(wrapped, Way::Haproxy)].run.per_s / round[&(statement, Way::Haproxy)].run.per_s
        })
    };
    Section {
        title: "Statements through proxies",
        text: vec![
            format!(
                "sysbench with `xtask/src/bench/proxy/load.lua`, {CLIENTS} connections, {} s a run.\nEach proxy has one core, and so one \
                 thread of keywright; client and server share the others. So throughput is that of the server, unless a proxy takes more than its \
                 core.\nThe proxy's CPU is the steadiest figure: user and system time of its process from \
                 `/proc/<pid>/task/*/schedstat`.",
                sizes.run_s
            ),
            format!(
                "The server itself pays for `LAST_INSERT_ID(k)` in place of a generated key: an insert that carries it, sent by the \
                 application\nthrough HAProxy, runs at {} (text) and {} (prepared) of the plain one's throughput.\n\
                 Targets for the throughput of single rows with keys are against those, so that they are the proxy's own.",
                cost(Statement::TextInsert, Statement::WrappedInsert),
                cost(Statement::PreparedInsert, Statement::WrappedPrepared)
            ),
            "![Statements per second beside HAProxy](plots/proxy-throughput.svg)".to_owned(),
            "![CPU per statement beside HAProxy](plots/proxy-cpu.svg)".to_owned(),
        ],
        table: table(figures),
        targets: targets(figures),
    }
}

fn table(figures: &Rounds<Contender, Figures>) -> Table {
    let mut table = Table::new(&[
        "statement, way",
        "statements/s",
        "× HAProxy",
        "p50 ms",
        "p99 ms",
        "CPU s per 100,000",
        "× HAProxy",
    ]);
    for statement in Statement::ALL {
        for way in Way::ALL {
            let of = |figure: fn(&Figures) -> f64| {
                figures.spread(move |round| figure(&round[&(statement, way)]))
            };
            let ratio = |figure: fn(&Figures) -> f64| {
                figures.spread(move |round| {
                    figure(&round[&(statement, way)]) / figure(&round[&(statement, Way::Haproxy)])
                })
            };
            let proxied = |text: String| match way {
                Way::Direct => String::new(),
                Way::Haproxy | Way::NoRule | Way::Segment | Way::Snowflake => text,
            };
            table.row(vec![
                format!("{}, {}", statement.name(), way.name()),
                format!("{:.0}", of(|f| f.run.per_s)),
                ratio(|f| f.run.per_s).to_string(),
                of(|f| f.run.p50_ms).short(2),
                of(|f| f.run.p99_ms).short(2),
                proxied(format!("{:.2}", of(|f| f.cpu_s))),
                proxied(ratio(|f| f.cpu_s).to_string()),
            ]);
        }
    }
    table
}

fn targets(figures: &Rounds<Contender, Figures>) -> Vec<Target> {
    let mut targets = Vec::new();
    for statement in Statement::ALL {
        for way in [Way::NoRule, Way::Segment, Way::Snowflake] {
            let rewrites = way != Way::NoRule && statement.inserts();
            let (cpu, throughput) = match statement {
                // A login has to be read, which HAProxy does not do.
                Statement::InsertOnce => (1.1, 0.93),
                Statement::TextInsert
                | Statement::PreparedInsert
                | Statement::ThousandRows
                | Statement::WrappedInsert
                | Statement::WrappedPrepared
                    if rewrites =>
                {
                    (1.15, 0.93)
                }
                Statement::TextInsert
                | Statement::PreparedInsert
                | Statement::ThousandRows
                | Statement::PointSelect
                | Statement::BigResult
                | Statement::WrappedInsert
                | Statement::WrappedPrepared => (1.0, 1.0),
            };
            let what = format!("{}, {}", statement.name(), way.name());
            targets.push(Target {
                what: format!("{what}: CPU × HAProxy"),
                seen: figures.spread(move |round| {
                    round[&(statement, way)].cpu_s / round[&(statement, Way::Haproxy)].cpu_s
                }),
                limit: Limit::AtMost(cpu),
                why: misses::of_cpu(statement, way),
            });
            let wrapped = statement.wrapped().filter(|_| rewrites);
            let (beside, peer) = match wrapped {
                Some(wrapped) => (wrapped, "HAProxy with LAST_INSERT_ID(k)"),
                None => (statement, "HAProxy"),
            };
            targets.push(Target {
                what: format!("{what}: throughput × {peer}"),
                seen: figures.spread(move |round| {
                    round[&(statement, way)].run.per_s / round[&(beside, Way::Haproxy)].run.per_s
                }),
                limit: Limit::AtLeast(throughput),
                why: Some(misses::of_throughput(statement, way)),
            });
        }
    }
    targets
}
