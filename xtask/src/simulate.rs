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
    /// Show instead what repeats an id elsewhere: generators that trust their clock, a lease's time to live, or a time that is recorded now and
    /// then.
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    others: bool,
}

impl Simulate {
    pub(crate) fn run(self) -> Result<()> {
        if self.others {
            let test = [
                "test",
                "--package",
                "keywright-core",
                "--test",
                "others",
                "--",
                "--nocapture",
            ];
            return run_loudly(&mut cargo(test));
        }
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
