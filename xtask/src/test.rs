//! `cargo xtask test`.

use std::time::Instant;

use anyhow::{Result, bail};
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
                list(&build(&suites)?);
                return Ok(());
            }
            needs::install(&self.needs(&Starts::ALL))?;
            needs::install(&needs::to_run_recipes())?;
            needs::install(&needs::to_run_redis_clients())?;
            needs::install(&needs::to_fuzz())?;
            needs::install(&needs::to_check_links())?;
            check::lints()?;
            let built = build(&suites)?;
            step("building the program");
            // By itself, as people build it: with other packages its dependencies have features that only their tests ask for.
            let program = ProxyProcess::program()?.display().to_string();
            let environment = [(ProxyProcess::VARIABLE, program)];
            self.run_those_of(&built, Starts::Nothing, &environment, &mut tally)?;
            tally.note("fuzzing", fuzz::each(fuzz::SECONDS, None));
            for starts in [Starts::MySql, Starts::Both, Starts::Postgres] {
                self.run_those_of(&built, starts, &environment, &mut tally)?;
            }
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
        for starts in Starts::ALL {
            self.run_those_of(&found, starts, &[], &mut tally)?;
        }
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

    /// Runs the suites that start such servers, those of PostgreSQL on each wanted version.
    fn run_those_of(
        &self,
        built: &[Built],
        starts: Starts,
        environment: &[(&str, String)],
        tally: &mut Tally,
    ) -> Result<()> {
        let those: Vec<&Built> = built
            .iter()
            .filter(|built| built.suite.starts == starts)
            .collect();
        match starts {
            Starts::Nothing | Starts::MySql => return tally.run(those, environment),
            Starts::Postgres | Starts::Both if those.is_empty() => return Ok(()),
            Starts::Postgres | Starts::Both => {}
        }
        step("building the extension for PostgreSQL 15");
        Extension::build(PgVersion::V15, PG_CONFIG.as_ref(), true)?;
        if starts == Starts::Both {
            return tally.run(those, environment);
        }
        for version in PgVersion::ALL {
            if self.all_versions || version == PgVersion::V15 {
                let environment = [(PgVersion::VARIABLE, version.to_string())];
                tally.run(those.iter().copied(), &environment)?;
            }
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
