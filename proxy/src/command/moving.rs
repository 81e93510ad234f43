//! `tag move`: a tag of a PostgreSQL database moves to the store, or back.

use anyhow::{Result, anyhow, bail};
use clap::{ArgGroup, Args, ValueEnum};
use keywright_core::Tag;
use keywright_store::{MoveError, MoveProgress, MovedTo, Moving, Relocating};

use super::target::Target;
use super::{File, with_store};

#[derive(Args)]
#[command(group = ArgGroup::new("whose").required(true).args(["database", "to_store"]))]
pub(crate) struct Move {
    /// The tag, which has the same name on both sides.
    name: String,
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    target: Target,
    /// Who is to issue its ids.
    #[arg(long, value_enum, required_unless_present = "to_store")]
    to: Option<To>,
    /// Move it to this one of several stores, from the one where it is open. Programs that do not know that store get no more of its ids.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["database", "to", "heir_lost", "above"])]
    to_store: Option<String>,
    /// The database that the store named as the tag's heir is lost, or its server was restarted since. You vouch that neither it nor a copy of it issues
    /// ids of the tag any more.
    #[arg(long, requires = "above")]
    heir_lost: bool,
    /// With --heir-lost: the largest id of the tag that the database, or anybody, may have issued; 0 if it cannot have issued any.
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

/// Moves a tag between stores, and tells each step.
fn relocate(file: &File, tag: Tag, store: &str) -> Result<()> {
    with_store(file, async |keys| {
        let mut moving = Relocating::new(keys, tag, store);
        loop {
            match moving
                .advance()
                .await
                .map_err(|failure| anyhow!("{failure}"))?
            {
                MoveProgress::Took(said) => println!("{said}"),
                MoveProgress::Done(said) => {
                    println!("{said}");
                    return Ok(());
                }
            }
        }
    })
}

impl Move {
    pub(crate) fn run(self) -> Result<()> {
        let name = &self.name;
        let tag = Tag::parse(name.strip_prefix("segment:").unwrap_or(name))?;
        if let Some(store) = &self.to_store {
            return relocate(&self.file, tag, store);
        }
        let to = match self.to {
            Some(To::Fed) => MovedTo::Fed,
            Some(To::Native) => MovedTo::Native,
            None => bail!("say --to fed, --to native, or --to-store NAME"),
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
