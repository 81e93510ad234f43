//! `release`: how tables come to give keys of their own again.

use anyhow::Result;
use clap::Args;
use keywright_proxy::release::{Issued, statements};

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
            let issued = Issued::read(&keys).await;
            statements(&config, self.rule.as_deref(), &issued).await
        })?;
        print!("{report}");
        Ok(())
    }
}
