//! `cargo xtask conformance`.

mod again;
mod applications;
mod leg;
mod listed;
mod node;
mod outcome;
mod python;
mod rust;
mod suite;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use keywright_testkit::{Flavour, workspace_root};

use crate::needs;
use crate::shell::step;
use leg::{Leg, WorkDir};
use outcome::Outcome;
use suite::Suite;

/// Run drivers' own test suites, and applications, directly and through the proxy, and compare test by test.
///
/// What differs in a suite is run again on both legs, several times: only what differs again is an error.
///
/// Suites and applications come from the package registries (PyPI, crates.io, npm, Debian) and are kept below `target/conformance`; nothing of them is
/// part of Keywright. The npm package of node-mysql2 has no tests, so it cannot be run here.
#[derive(Args)]
pub(crate) struct Conformance {
    /// Run only these suites.
    #[arg(long, value_enum)]
    suite: Vec<Suite>,
    /// The server behind all legs: mariadb, or mysql, which is fetched from Debian's unstable suite.
    #[arg(long, value_name = "FLAVOUR", value_parser = flavour, default_value = Flavour::MariaDb.name())]
    server: Flavour,
    /// Run each suite directly only, to see what there is to compare with.
    #[arg(long)]
    direct: bool,
}

fn flavour(name: &str) -> Result<Flavour> {
    Flavour::parse(name).with_context(|| {
        let names = Flavour::ALL.map(Flavour::name);
        format!("the servers are {}", names.join(" and "))
    })
}

impl Conformance {
    pub(crate) fn run(self) -> Result<()> {
        let mut needs = needs::to_serve_mysql();
        needs.extend(needs::to_build_program());
        needs.extend(needs::to_run_applications());
        needs::install(&needs)?;
        let cache = workspace_root().join("target/conformance");
        fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
        let suites = if self.suite.is_empty() {
            Suite::value_variants().to_vec()
        } else {
            self.suite
        };
        let mut differing = Vec::new();
        for suite in suites {
            let source = suite.prepare(&cache)?;
            let direct = run_leg(suite, &source, self.server, Leg::Direct)?;
            if self.direct {
                continue;
            }
            for &leg in Leg::of(suite) {
                let outcome = run_leg(suite, &source, self.server, leg)?;
                let differences = direct.differences(&outcome);
                let place = (suite, self.server, leg);
                if again::confirm(place, &source, &differences)? {
                    differing.push(format!("{}, {}", suite.name(), leg.name()));
                }
            }
        }
        if !differing.is_empty() {
            bail!(
                "through the proxy these suites give something else: {}",
                differing.join("; ")
            );
        }
        Ok(())
    }
}

/// Every leg has a server of its own: suites leave things behind.
fn run_leg(suite: Suite, source: &Path, flavour: Flavour, leg: Leg) -> Result<Outcome> {
    step(&format!(
        "{} on {}: {}",
        suite.name(),
        flavour.name(),
        leg.name()
    ));
    let place = WorkDir::start(suite, source, flavour, leg)?;
    let outcome = suite.run(source, place.port(), &[])?;
    println!("    {}", outcome.summary());
    if outcome.passed() == 0 {
        bail!("no test of {} passed: it did not run", suite.name());
    }
    Ok(outcome)
}
