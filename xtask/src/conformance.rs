//! `cargo xtask conformance`.

mod outcome;
mod python;
mod rust;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use keywright_tests::{Flavour, ProxyConfig, ProxyProcess, Upstream, make_store, workspace_root};

use crate::needs;
use crate::shell::step;
use outcome::Outcome;

/// Run drivers' own test suites directly and through the proxy, and compare test by test.
///
/// The suites come from the package registries (PyPI, crates.io) and are kept below `target/conformance`; nothing of them is
/// part of Keywright. The npm package of node-mysql2 has no tests, so it cannot be run here.
#[derive(Args)]
pub(crate) struct Conformance {
    /// Run only these suites.
    #[arg(long, value_enum)]
    suite: Vec<Suite>,
    /// Run each suite directly only, to see what there is to compare with.
    #[arg(long)]
    direct: bool,
}

/// A driver or library with tests of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Of the last release whose source package has its tests.
    Pymysql,
    /// The tests of its MySQL dialect, with PyMySQL.
    Sqlalchemy,
    /// The unit tests, which talk to a server.
    MysqlAsync,
}

/// Where a suite's connections go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leg {
    Direct,
    Blind,
    Watching,
}

impl Leg {
    fn name(self) -> &'static str {
        match self {
            Leg::Direct => "direct",
            Leg::Blind => "proxy without rules",
            Leg::Watching => "proxy that watches all tables",
        }
    }

    /// The rules of the leg's proxy. Suites expect the first key of each of their tables to be 1, so nothing can be
    /// rewritten under them; a rule that only observes takes every statement all the way except for the change itself.
    fn config(self, server: &Upstream, store_url: &str) -> Option<ProxyConfig> {
        let config = ProxyConfig::before(server, store_url);
        match self {
            Leg::Direct => None,
            Leg::Blind => Some(config),
            Leg::Watching => {
                let mut config = config.rule("*.*", "segment:conformance");
                for rule in &mut config.rules {
                    rule.push_str("mode = \"observe\"\n");
                }
                Some(config)
            }
        }
    }
}

impl Suite {
    fn name(self) -> &'static str {
        match self {
            Suite::Pymysql => "PyMySQL",
            Suite::Sqlalchemy => "SQLAlchemy",
            Suite::MysqlAsync => "mysql_async",
        }
    }

    /// What the suite expects to be there.
    fn schemas(self) -> &'static [&'static str] {
        match self {
            Suite::Pymysql => &["test1", "test2"],
            Suite::Sqlalchemy => &["test", "test_schema", "test_schema_2"],
            Suite::MysqlAsync => &[],
        }
    }

    fn prepare(self, cache: &Path) -> Result<PathBuf> {
        match self {
            Suite::Pymysql => python::prepare_pymysql(cache),
            Suite::Sqlalchemy => python::prepare_sqlalchemy(cache),
            Suite::MysqlAsync => rust::prepare_mysql_async(cache),
        }
    }

    fn run(self, source: &Path, port: u16) -> Result<Outcome> {
        match self {
            Suite::Pymysql => python::run_pymysql(source, port),
            Suite::Sqlalchemy => python::run_sqlalchemy(source, port),
            Suite::MysqlAsync => rust::run_mysql_async(source, port),
        }
    }
}

impl Conformance {
    pub(crate) fn run(self) -> Result<()> {
        let mut needs = needs::to_test();
        needs.extend(needs::to_fetch());
        needs::install(&needs)?;
        let cache = workspace_root().join("target/conformance");
        fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
        let suites = if self.suite.is_empty() {
            Suite::value_variants().to_vec()
        } else {
            self.suite
        };
        let legs: &[Leg] = if self.direct {
            &[Leg::Direct]
        } else {
            &[Leg::Direct, Leg::Blind, Leg::Watching]
        };
        let mut differing = Vec::new();
        for suite in suites {
            let source = suite.prepare(&cache)?;
            let outcomes = legs
                .iter()
                .map(|&leg| run_leg(suite, &source, leg))
                .collect::<Result<Vec<_>>>()?;
            if !is_alike(suite, legs, &outcomes) {
                differing.push(suite.name());
            }
        }
        if !differing.is_empty() {
            bail!(
                "through the proxy these suites give something else: {}",
                differing.join(", ")
            );
        }
        Ok(())
    }
}

/// Every leg has a server of its own: suites leave things behind.
fn run_leg(suite: Suite, source: &Path, leg: Leg) -> Result<Outcome> {
    step(&format!("{}: {}", suite.name(), leg.name()));
    let server = Upstream::start_with(
        Flavour::MariaDb,
        &["--max-allowed-packet=64M", "--max-connections=500"],
    )?;
    for schema in suite.schemas() {
        server.run(
            "mysql",
            &format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4"),
        )?;
    }
    let store_url = make_store(&server, "keywright", &[("conformance", 1)])?;
    let outcome = match leg.config(&server, &store_url) {
        None => suite.run(source, server.port())?,
        Some(config) => {
            let proxy = ProxyProcess::start(config)?;
            suite.run(source, proxy.port())?
        }
    };
    println!("    {}", outcome.summary());
    if outcome.passed() == 0 {
        bail!("no test of {} passed: it did not run", suite.name());
    }
    Ok(outcome)
}

/// Prints what is different from the direct run.
fn is_alike(suite: Suite, legs: &[Leg], outcomes: &[Outcome]) -> bool {
    let mut results = legs.iter().zip(outcomes);
    let Some((_, direct)) = results.next() else {
        return true;
    };
    let mut alike = true;
    for (leg, outcome) in results {
        for difference in direct.differences(outcome) {
            alike = false;
            println!("    {}, {}: {difference}", suite.name(), leg.name());
        }
    }
    alike
}
