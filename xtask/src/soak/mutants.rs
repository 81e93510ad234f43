//! `cargo xtask soak mutants`.

use std::process::Command;

use anyhow::Result;
use clap::Args;
use keywright_testkit::workspace_root;

use crate::shell::{cargo, run_loudly, step};

/// The version that is installed; another finds other mutants.
const VERSION: &str = "27.1.0";

/// Change the rewriter in one place after another, and see whether a test that needs no server finds it.
///
/// A mutant that no test finds is a line of the corpus or a transcript that is missing, unless no application could notice it. All of
/// them take hours; `--shard` runs some. cargo-mutants is built once, below `target/tools`; what it found lies in `target/mutants`.
#[derive(Args)]
pub(crate) struct Mutants {
    /// Part of them, such as 0/8.
    #[arg(long)]
    shard: Option<String>,
    /// Only those of this file, such as rewrite/src/read/constant.rs.
    #[arg(long)]
    file: Option<String>,
}

impl Mutants {
    pub(crate) fn run(self) -> Result<()> {
        let tools = workspace_root().join("target/tools");
        let program = tools.join("bin/cargo-mutants");
        if !program.exists() {
            step("building cargo-mutants");
            let mut install = cargo(["install", "cargo-mutants", "--locked", "--version", VERSION]);
            run_loudly(install.arg("--root").arg(&tools))?;
        }
        let mut command = Command::new(program);
        command
            .current_dir(workspace_root())
            .args(["mutants", "--package", "keywright-rewrite"])
            .args(["--test-package", "keywright-rewrite,keywright-session"])
            .args([
                "--output",
                "target/mutants",
                "--no-shuffle",
                "--colors",
                "never",
            ]);
        if let Some(shard) = &self.shard {
            command.args(["--shard", shard]);
        }
        if let Some(file) = &self.file {
            command.args(["--file", file]);
        }
        run_loudly(&mut command)
    }
}
