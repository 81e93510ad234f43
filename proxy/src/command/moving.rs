//! `tag move`: a tag of a PostgreSQL database moves to the store, or back.

use anyhow::{Result, anyhow};
use clap::{ArgGroup, Args, ValueEnum};
use keywright_core::Tag;
use keywright_store::{MoveError, MoveProgress, MovedTo, Moving};

use super::target::Target;
use super::{File, with_store};

#[derive(Args)]
#[command(group = ArgGroup::new("whose").required(true).args(["database"]))]
pub(crate) struct Move {
    /// The tag, which has the same name in the database and in the store.
    name: String,
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    target: Target,
    /// Where its ids are to come from.
    #[arg(long, value_enum)]
    to: To,
    /// The database that the store named as the tag's heir is lost, or its server has started anew since: it issues no id of the tag any more, nor
    /// does a copy of it. You vouch for that.
    #[arg(long, requires = "above")]
    heir_lost: bool,
    /// With --heir-lost: the largest id of the tag that it, or anybody, may have issued; 0, if it cannot have issued any.
    #[arg(long, value_name = "ID", requires = "heir_lost")]
    above: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum To {
    /// The store: the database is fed, as others may be.
    Fed,
    /// The database: it issues them itself, and nobody else does.
    Native,
}

fn told(error: &MoveError) -> anyhow::Error {
    match error.hint() {
        Some(hint) => anyhow!("{error} ({hint})"),
        None => anyhow!("{error}"),
    }
}

impl Move {
    pub(crate) fn run(self) -> Result<()> {
        let name = &self.name;
        let tag = Tag::parse(name.strip_prefix("segment:").unwrap_or(name))?;
        let to = match self.to {
            To::Fed => MovedTo::Fed,
            To::Native => MovedTo::Native,
        };
        with_store(&self.file, async |keys| {
            let database = self.target.connect().await?;
            let mut moving = Moving::new(keys, database, tag, to, self.above);
            loop {
                match moving.advance().await.map_err(|error| told(&error))? {
                    MoveProgress::Took(said) => println!("{said}"),
                    MoveProgress::Done(said) => {
                        println!("{said}");
                        return Ok(());
                    }
                }
            }
        })
    }
}
