//! `back`: how tables come to give keys of their own again.

use anyhow::Result;
use clap::Args;

use super::{File, runtime};

#[derive(Args)]
pub(crate) struct Back {
    #[command(flatten)]
    file: File,
    /// The `table` of the rule, as the configuration writes it; default: all rules.
    #[arg(long)]
    rule: Option<String>,
}

impl Back {
    pub(crate) fn run(&self) -> Result<()> {
        let config = self.file.load()?;
        let told =
            runtime()?.block_on(keywright_proxy::back::tell(&config, self.rule.as_deref()))?;
        print!("{told}");
        Ok(())
    }
}
