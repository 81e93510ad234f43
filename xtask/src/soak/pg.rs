//! `cargo xtask soak pg`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use keywright_testkit::soak::Soak;

use crate::needs;
use crate::shell::step;

/// Crashes, clock steps, identities changed and rolled back, drops, copies and promotions under load, mixed by a seed.
///
/// Every id that a client saw is checked, also of transactions that were rolled back. It fails at the first id that is seen twice,
/// and says who saw it and what happened in between.
#[derive(Args)]
pub(crate) struct Pg {
    /// How long.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// Let the same happen again, as far as timing lets it; without it one is drawn.
    #[arg(long)]
    seed: Option<u64>,
}

impl Pg {
    pub(crate) fn run(self) -> Result<()> {
        let mut needs = needs::to_build();
        needs.extend(needs::to_serve());
        needs.extend(needs::to_step_clocks());
        needs::install(&needs)?;
        let soak = Soak::new(self.seed, Duration::from_secs(60 * self.minutes));
        step(&format!(
            "soaking for {} min, seed {}",
            self.minutes,
            soak.seed()
        ));
        let report = soak.run()?;
        println!("{report}");
        Ok(())
    }
}
