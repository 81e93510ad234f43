//! `cargo xtask test`.

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use keywright_tests::{Extension, PgVersion};

use crate::install::PG_CONFIG;
use crate::shell::{cargo, run_loudly, step};
use crate::{check, fuzz, needs, simulate};

/// How many tests run at once, each with servers of its own.
const THREADS: &str = "2";

/// Run everything: the checks, the simulation, and the end-to-end tests against real servers.
#[derive(Args)]
pub(crate) struct Test {
    /// Run the end-to-end tests on PostgreSQL 14, 16, 17 and 18 too; the servers come from the Python package index.
    #[arg(long)]
    all_versions: bool,
    /// Run only the end-to-end tests whose name contains this, and no checks.
    filter: Option<String>,
}

impl Test {
    pub(crate) fn run(self) -> Result<()> {
        let started = Instant::now();
        let mut needs = needs::to_build();
        needs.extend(needs::to_serve());
        needs.extend(needs::to_test());
        needs.extend(needs::to_fuzz());
        if self.all_versions {
            needs.extend(needs::to_fetch());
        }
        needs::install(&needs)?;
        if self.filter.is_none() {
            check::all()?;
            simulate::seeds(simulate::SEEDS)?;
            fuzz::each(fuzz::SECONDS, None)?;
        }
        if self.filter.is_none() {
            of_the_proxy()?;
        }
        step("building the extension for PostgreSQL 15");
        Extension::build(PgVersion::V15, PG_CONFIG.as_ref(), true)?;
        let mut failed = Vec::new();
        for version in PgVersion::ALL {
            let wanted = self.all_versions || version == PgVersion::V15;
            if wanted && end_to_end(version, self.filter.as_deref()).is_err() {
                failed.push(version.to_string());
            }
        }
        let took_s = started.elapsed().as_secs();
        if !failed.is_empty() {
            bail!(
                "end-to-end tests failed on PostgreSQL {} ({took_s} s)",
                failed.join(", ")
            );
        }
        step(&format!("all passed in {took_s} s"));
        Ok(())
    }
}

/// Store, state machine and proxy against private MariaDB and MySQL servers.
fn of_the_proxy() -> Result<()> {
    step("the store, the state machine and the proxy on MariaDB and MySQL");
    for (package, tests) in [
        ("keywright-store", "*"),
        ("keywright-session", "live"),
        ("keywright-proxy", "*"),
    ] {
        let mut command = cargo(["test", "--package", package, "--no-fail-fast"]);
        command.args(["--test", tests, "--", "--test-threads", THREADS]);
        run_loudly(&mut command)?;
    }
    Ok(())
}

fn end_to_end(version: PgVersion, filter: Option<&str>) -> Result<()> {
    step(&format!("end-to-end tests on PostgreSQL {version}"));
    let mut command = cargo(["test", "--package", "keywright-tests", "--no-fail-fast"]);
    command.env(PgVersion::VARIABLE, version.to_string());
    command
        .args(["--test", "*", "--"])
        .args(filter)
        .args(["--test-threads", THREADS]);
    run_loudly(&mut command)
}
