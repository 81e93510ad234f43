//! `release`: how tables come to give keys of their own again.

use anyhow::Result;
use clap::Args;
use keywright_proxy::release::statements;

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
        let (config, keys) = self.file.open()?;
        let report = runtime()?.block_on(async {
            // It may be gone already.
            let tags = keys.tags().await.unwrap_or_default();
            statements(&config, self.rule.as_deref(), &tags).await
        })?;
        print!("{report}");
        Ok(())
    }
}
