//! `decode`: what an id says of itself.

use anyhow::Result;
use clap::Args;
use keywright_core::Layout;

#[derive(Args)]
pub(crate) struct Decode {
    /// The id.
    #[arg(allow_negative_numbers = true)]
    id: String,
    /// The layout of snowflake ids: "twitter", or any that a configuration may name.
    #[arg(long, default_value = "twitter")]
    layout: String,
}

impl Decode {
    pub(crate) fn run(&self) -> Result<()> {
        let layout = Layout::parse(&self.layout)?;
        println!("{}", keywright_proxy::decode::decode(&self.id, &layout)?);
        Ok(())
    }
}
