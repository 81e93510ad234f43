//! `decode`: what an id says of itself.

use anyhow::Result;
use clap::Args;
use keywright_core::Layout;
use keywright_store::{Clock, SystemClock};

use super::Format;

#[derive(Args)]
pub(crate) struct Decode {
    /// The id.
    #[arg(allow_negative_numbers = true)]
    id: String,
    /// The layout of snowflake ids: "twitter", or any that a configuration may name.
    #[arg(long, default_value = "twitter")]
    layout: String,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Decode {
    pub(crate) fn run(&self) -> Result<()> {
        let layout = Layout::parse(&self.layout)?;
        let decoded = keywright_proxy::decode::decode(&self.id, &layout, SystemClock.wall_ms())?;
        match self.format {
            Format::Text => println!("{decoded}"),
            Format::Json => println!("{}", serde_json::to_string(&decoded)?),
        }
        Ok(())
    }
}
