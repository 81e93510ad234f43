//! `cargo xtask test`.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_testkit::{Extension, PgVersion, ProxyProcess};

use crate::install::PG_CONFIG;
use crate::shell::step;
use crate::suites::build::{Built, build};
use crate::suites::find::find;
use crate::suites::run::Tally;
use crate::suites::{self, Starts};
use crate::{check, fuzz, needs};

/// How the names of suites end that run the recipes of the documentation.
const RECIPES: &str = "recipes";
/// The suite that runs other people's clients of Redis.
const PORT: &str = "proxy_port";

/// Run everything: the checks, the simulations, the fuzzers, and the tests against real servers.
#[derive(Args)]
pub(crate) struct Test {
    /// Run the tests that start PostgreSQL on 14, 16, 17 and 18 too; the servers come from the Python package index.
    #[arg(long)]
    all_versions: bool,
    /// Show which tests would run, and run none.
    #[arg(long)]
    list: bool,
    /// Run only the tests in files, modules and functions of this name, or whose path contains it: `imagined`,
    /// `session/tests/imagined.rs`, `transcripts::cursors`, part of a function's name. Only what they need is built.
    name: Option<String>,
}

impl Test {
    pub(crate) fn run(self) -> Result<()> {
        let started = Instant::now();
        let suites = suites::all()?;
        let mut tally = Tally::default();
        let Some(name) = &self.name else {
            if self.list {
                list(&build(&suites)?.suites);
                return Ok(());
            }
            needs::install(&self.needs(&Starts::ALL))?;
            needs::install(&needs::to_run_recipes())?;
            needs::install(&needs::to_run_redis_clients())?;
            needs::install(&needs::to_fuzz())?;
            needs::install(&needs::to_check_links())?;
            check::lints()?;
            let built = build(&suites)?;
            let program = built.program.context("cargo built no program")?;
            let program = (ProxyProcess::VARIABLE, program.display().to_string());
            let (others, with_servers): (Vec<Built>, Vec<Built>) = built
                .suites
                .into_iter()
                .partition(|built| built.suite.starts == Starts::Nothing);
            tally.run(&others, std::slice::from_ref(&program))?;
            tally.note("fuzzing", fuzz::each(fuzz::SECONDS, None));
            self.run_with_servers(&with_servers, &[program], &mut tally)?;
            return tally.close(started.elapsed().as_secs());
        };
        let found = find(&suites, name)?;
        if found.is_empty() {
            bail!(
                "no test lies in a file, module or function {name:?} or has that in its path; \
                 `cargo xtask test --list` shows all"
            );
        }
        if self.list {
            list(&found);
            return Ok(());
        }
        let kinds: Vec<Starts> = found.iter().map(|built| built.suite.starts).collect();
        needs::install(&self.needs(&kinds))?;
        let is_found = |name: &str| found.iter().any(|built| built.suite.name.ends_with(name));
        if is_found(RECIPES) {
            needs::install(&needs::to_run_recipes())?;
        }
        if is_found(PORT) {
            needs::install(&needs::to_run_redis_clients())?;
        }
        self.run_with_servers(&found, &[], &mut tally)?;
        tally.close(started.elapsed().as_secs())
    }

    /// What suites need that start such servers.
    fn needs(&self, kinds: &[Starts]) -> Vec<needs::Need> {
        let mut needs = needs::to_build_program();
        if kinds.iter().any(|starts| starts.mysql()) {
            needs.extend(needs::to_serve_mysql());
        }
        if kinds.iter().any(|starts| starts.postgres()) {
            needs.extend(needs::to_build());
            needs.extend(needs::to_serve());
            needs.extend(needs::to_step_clocks());
            if self.all_versions {
                needs.extend(needs::to_fetch());
            }
        }
        needs
    }

    /// Runs suites, those that start PostgreSQL and nothing else on each wanted version.
    fn run_with_servers(
        &self,
        built: &[Built],
        environment: &[(&str, String)],
        tally: &mut Tally,
    ) -> Result<()> {
        if built.iter().any(|built| built.suite.starts.postgres()) {
            step("building the extension for PostgreSQL 15");
            Extension::build(PgVersion::V15, PG_CONFIG.as_ref(), true)?;
        }
        let on = |version: PgVersion| {
            let version = (PgVersion::VARIABLE, version.to_string());
            [environment, &[version]].concat()
        };
        tally.run(built, &on(PgVersion::V15))?;
        let others = PgVersion::ALL.into_iter();
        let others = others.filter(|version| self.all_versions && *version != PgVersion::V15);
        for version in others {
            let of_version = built.iter();
            let of_version = of_version.filter(|built| built.suite.starts == Starts::Postgres);
            tally.run(of_version, &on(version))?;
        }
        Ok(())
    }
}

fn list(suites: &[Built]) {
    let mut count = 0;
    for built in suites {
        for test in &built.tests {
            println!("{}", built.path_of(test));
        }
        count += built.tests.len();
    }
    println!("{count} tests");
}
