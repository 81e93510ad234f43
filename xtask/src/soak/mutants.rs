//! `cargo xtask soak mutants`.

use std::process::Command;

use anyhow::Result;
use clap::{Args, ValueEnum};
use keywright_testkit::workspace_root;

use crate::shell::{cargo, run_loudly, step};

/// The version that is installed; another finds other mutants.
const VERSION: &str = "27.1.0";

/// A crate that is changed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Package {
    /// The rewriter.
    Rewrite,
    /// The session, whose transcripts, broken packets and conversations find what is wrong with it.
    Session,
}

impl Package {
    fn name(self) -> &'static str {
        match self {
            Self::Rewrite => "keywright-rewrite",
            Self::Session => "keywright-session",
        }
    }

    /// Whose tests are run.
    fn tested_by(self) -> &'static str {
        match self {
            Self::Rewrite => "keywright-rewrite,keywright-session",
            Self::Session => "keywright-session",
        }
    }
}

/// Change the rewriter, or the session, in one place after another, and see whether a test that needs no server finds it.
///
/// A mutant that no test finds is a line of the corpus or a transcript that is missing, unless no application could notice it. All of
/// them take hours; `--shard` runs some. cargo-mutants is built once, below `target/tools`; what it found lies in `target/mutants`.
#[derive(Args)]
pub(crate) struct Mutants {
    /// The crate that is changed.
    #[arg(long, value_enum, default_value_t = Package::Rewrite)]
    package: Package,
    /// Part of them, such as 0/8.
    #[arg(long)]
    shard: Option<String>,
    /// Only those of this file, such as rewrite/src/read/constant.rs.
    #[arg(long)]
    file: Option<String>,
    /// Only say which there are.
    #[arg(long)]
    list: bool,
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
            .args(["mutants", "--package", self.package.name()])
            .args(["--test-package", self.package.tested_by()])
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
        if self.list {
            command.arg("--list");
        }
        run_loudly(&mut command)
    }
}
