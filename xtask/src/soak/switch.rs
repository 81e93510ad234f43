//! `cargo xtask soak switch`.

use anyhow::Result;
use clap::Args;

use crate::needs;
use crate::shell::{cargo, run};

/// Two servers behind two proxies are switched from auto-increment to keys, to another tag and back while clients insert.
///
/// The proxies are told by SIGHUP and by restarts, first in calm, then killed and paused at random, then the store's server is killed
/// as well. It fails when an insert fails, but for those that are told that the store does not answer, or when an id comes twice, and
/// tells the longest wait.
#[derive(Args)]
pub(crate) struct Switch {
    /// How often the tables go all the way in each of the three.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

impl Switch {
    pub(crate) fn run(&self) -> Result<()> {
        let mut needs = needs::to_serve_mysql();
        needs.extend(needs::to_build_program());
        needs::install(&needs)?;
        run(cargo([
            "test",
            "--quiet",
            "--package",
            "keywright-tests",
            "--test",
            "proxy_switch",
            "fleet",
            "--",
            "--nocapture",
        ])
        .env("KEYWRIGHT_SWITCHES", self.rounds.to_string()))
    }
}
