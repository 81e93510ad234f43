//! `cargo xtask check`.

use anyhow::Result;
use clap::Args;

use crate::install::PG_CONFIG;
use crate::needs;
use crate::shell::{cargo, run_loudly};

/// Check formatting, lints and unit tests: what needs no server.
#[derive(Args)]
pub(crate) struct Check {}

impl Check {
    pub(crate) fn run(self) -> Result<()> {
        // The lints see the extension too, and pgrx reads the server's headers to build it.
        needs::install(&needs::to_build())?;
        all()
    }
}

/// The steps, without installing anything.
pub(crate) fn all() -> Result<()> {
    run_loudly(&mut cargo(["fmt", "--all", "--check"]))?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ];
    run_loudly(cargo(clippy).env("PGRX_PG_CONFIG_PATH", PG_CONFIG))?;
    for package in ["keywright-core", "keywright-rewrite"] {
        run_loudly(&mut cargo(["test", "--package", package]))?;
    }
    run_loudly(&mut cargo([
        "test",
        "--package",
        "keywright-session",
        "--test",
        "transcripts",
        "--test",
        "hostile",
    ]))?;
    for package in ["keywright-store", "keywright-proxy"] {
        run_loudly(&mut cargo(["test", "--package", package, "--lib"]))?;
    }
    run_loudly(&mut cargo([
        "test",
        "--package",
        "keywright-tests",
        "--lib",
    ]))
}
