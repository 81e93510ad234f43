//! `cargo xtask soak pg-regress`.

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_testkit::{Extension, PgSuite, PgVersion, SuiteOutcome, workspace_root};

use crate::install::PG_CONFIG;
use crate::needs;
use crate::shell::step;

/// What is preloaded without keywright, and where keywright is put among it. The server runs the hooks of the last library
/// first, so beside others it makes a difference.
const LEGS: &[(&str, &[&str])] = &[
    ("", &["keywright"]),
    (
        "pg_stat_statements,pgaudit",
        &[
            "keywright,pg_stat_statements,pgaudit",
            "pg_stat_statements,pgaudit,keywright",
        ],
    ),
];

/// Run PostgreSQL's own regression suite with and without the library preloaded, alone and beside others, and compare.
///
/// The suite, its server and pgaudit come from Debian's packages of one minor version and are kept below `target/`. A run
/// takes two minutes.
#[derive(Args)]
pub(crate) struct PgRegress {
    /// Only alone, not beside pg_stat_statements and pgaudit.
    #[arg(long)]
    alone: bool,
}

impl PgRegress {
    pub(crate) fn run(self) -> Result<()> {
        let mut needs = needs::to_build();
        needs.extend(needs::to_serve());
        needs.extend(needs::to_unpack());
        needs::install(&needs)?;
        step("building the extension for PostgreSQL 15");
        let extension = Extension::build(PgVersion::V15, PG_CONFIG.as_ref(), true)?;
        let suite = PgSuite::with(&extension)?;
        let mut differ = Vec::new();
        for (without, with) in LEGS.iter().take(if self.alone { 1 } else { LEGS.len() }) {
            let expected = leg(&suite, without)?.failed;
            for preload in *with {
                let found = leg(&suite, preload)?;
                if found.failed != expected {
                    keep_differences(preload, &found)?;
                    let names: BTreeSet<_> = found.failed.symmetric_difference(&expected).collect();
                    differ.push(format!("{preload}: {names:?}"));
                }
            }
        }
        if differ.is_empty() {
            step("the same tests pass with the library as without");
            return Ok(());
        }
        bail!(
            "these tests end otherwise with the library: {}",
            differ.join("; ")
        )
    }
}

fn leg(suite: &PgSuite, preload: &str) -> Result<SuiteOutcome> {
    let shown = if preload.is_empty() {
        "nothing"
    } else {
        preload
    };
    let started = Instant::now();
    let outcome = suite
        .run(preload)
        .with_context(|| format!("with {shown} preloaded"))?;
    let failed: Vec<&str> = outcome.failed.iter().map(String::as_str).collect();
    step(&format!(
        "{shown} preloaded: {} of {} tests passed in {} s{}{}",
        outcome.tests - failed.len(),
        outcome.tests,
        started.elapsed().as_secs(),
        if failed.is_empty() { "" } else { "; failed: " },
        failed.join(", "),
    ));
    Ok(outcome)
}

fn keep_differences(preload: &str, outcome: &SuiteOutcome) -> Result<()> {
    let dir = workspace_root().join("target/regress");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let file = dir.join(format!("{}.diffs", preload.replace(',', "+")));
    fs::write(&file, &outcome.differences)
        .with_context(|| format!("writing {}", file.display()))?;
    println!("    differences: {}", file.display());
    Ok(())
}
