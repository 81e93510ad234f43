//! `release`: how tables come to give keys of their own again.

use anyhow::Result;
use clap::Args;

use super::{File, runtime};

#[derive(Args)]
pub(crate) struct Release {
    #[command(flatten)]
    file: File,
    /// The `table` of the rule, as the configuration writes it; default: all rules.
    #[arg(long)]
    rule: Option<String>,
}

impl Release {
    pub(crate) fn run(&self) -> Result<()> {
        let config = self.file.load()?;
        let report = runtime()?.block_on(keywright_proxy::release::statements(
            &config,
            self.rule.as_deref(),
        ))?;
        print!("{report}");
        Ok(())
    }
}
