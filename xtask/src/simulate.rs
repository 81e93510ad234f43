//! `cargo xtask simulate`.

use anyhow::Result;
use clap::Args;

use crate::shell::{cargo, run_loudly};

/// How many seeds are enough to trust a change.
const SEEDS: u64 = 10_000;

/// Run the simulation of issuers, stores, clocks and crashes.
#[derive(Args)]
pub(crate) struct Simulate {
    /// Run this one seed and print its story.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// How many seeds to run.
    #[arg(long, default_value_t = SEEDS)]
    seeds: u64,
}

impl Simulate {
    pub(crate) fn run(self) -> Result<()> {
        match self.seed {
            Some(seed) => simulation("KEYWRIGHT_SEED", seed),
            None => simulation("KEYWRIGHT_SEEDS", self.seeds),
        }
    }
}

fn simulation(variable: &str, value: u64) -> Result<()> {
    let test = [
        "test",
        "--package",
        "keywright-core",
        "--test",
        "simulation",
        "--",
        "--nocapture",
    ];
    run_loudly(cargo(test).env(variable, value.to_string()))
}
