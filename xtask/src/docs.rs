//! `cargo xtask docs`.

use anyhow::Result;
use clap::Args;

use crate::install::PG_CONFIG;
use crate::needs;
use crate::shell::{cargo, run_loudly};

/// Write the parts of the documentation that are made from the sources: statements, errors, configuration, metrics, command line,
/// functions and settings.
///
/// The tests that write them compare them otherwise, in `cargo xtask check` and `cargo xtask test`.
#[derive(Args)]
pub(crate) struct Docs {}

/// Each test that makes a part, by package.
const MAKERS: [&str; 3] = ["xtask", "keywright-proxy", "keywright-tests"];

impl Docs {
    pub(crate) fn run(self) -> Result<()> {
        // Functions and settings are those of a server that runs.
        let mut needs = needs::to_build();
        needs.extend(needs::to_build_program());
        needs.extend(needs::to_serve());
        needs.extend(needs::to_step_clocks());
        needs::install(&needs)?;
        for package in MAKERS {
            let test = ["test", "--package", package, "--test", "generated"];
            let mut command = cargo(test);
            command.env("PGRX_PG_CONFIG_PATH", PG_CONFIG);
            run_loudly(command.env("KEYWRIGHT_DOCS", "write"))?;
        }
        Ok(())
    }
}
