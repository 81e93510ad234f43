//! `cargo xtask soak interleavings`.

use anyhow::Result;
use clap::Args;

use crate::shell::{cargo, run};

/// Words, buffer and gate through all the orders in which threads may do things, with what weak memory lets each see.
///
/// The checks do the same, but interrupt threads three times at most. Without a limit it takes hours.
#[derive(Args)]
pub(crate) struct Interleavings {
    /// How often threads may be interrupted, or all: without a limit.
    #[arg(long, default_value = "all")]
    preemptions: String,
}

impl Interleavings {
    pub(crate) fn run(&self) -> Result<()> {
        run(cargo([
            "test",
            "--quiet",
            "--release",
            "--package",
            "keywright-core",
            "--test",
            "interleavings",
            "nothing_comes_twice",
            "--",
            "--nocapture",
        ])
        .env("KEYWRIGHT_PREEMPTIONS", &self.preemptions))
    }
}
