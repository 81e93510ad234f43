//! `tag`: tags of the store changed, dropped, and moved.

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use keywright_core::{Step, Tag as TagName};
use keywright_proxy::tags_in_use::TagsInUse;
use keywright_store::{Failure, TagChange};

use super::{File, hidden, of_store, with_store};

#[derive(Args)]
pub(crate) struct Tag {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Change how programs reserve of a tag, or its description. They read it with their next reservation.
    Alter(Alter),
    /// Drop a tag that the configuration no longer names. Its bound stays: a tag of the same name that is made later goes on above.
    Drop(DropTag),
    /// Move a tag of a PostgreSQL database to the store, so that it is fed, or back, so that the database alone issues its ids; or, with
    /// --to-store, from one of several stores to another.
    ///
    /// The steps are taken in the only order in which no id comes twice, and each is printed. Wherever it breaks off, run it again: it goes on.
    Move(super::moving::Move),
    /// Print the numbers behind keys of a tag that hides its volume: 2 for the second key that the tag issued.
    Number(Hidden),
    /// Print the keys of a tag that hides its volume for the numbers behind them.
    Key(Hidden),
}

#[derive(Args)]
struct Hidden {
    /// The tag.
    name: String,
    /// Its keys, or its numbers: one answer a line, in the same order.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    file: File,
}

#[derive(Args)]
struct Alter {
    /// The tag.
    name: String,
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// Ids per reservation; a tenth of it at first.
    #[arg(long, value_name = "IDS", value_parser = step)]
    step: Option<Step>,
    /// The smallest step; the step follows demand.
    #[arg(long, value_name = "IDS", value_parser = step)]
    step_min: Option<Step>,
    /// The largest step.
    #[arg(long, value_name = "IDS", value_parser = step)]
    step_max: Option<Step>,
    /// How long a reservation should last, seconds: an absence of the store that goes unnoticed.
    #[arg(long, value_name = "SECONDS")]
    cover_s: Option<u32>,
    /// Refill when this percentage of a reservation is left.
    #[arg(long, value_name = "PERCENT")]
    refill_percent: Option<u32>,
    /// A description for people.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

#[derive(Args)]
struct DropTag {
    /// The tag.
    name: String,
    /// With several stores: the one in which the tag is dropped; default: the tag's store by the configuration.
    #[arg(long, value_name = "NAME")]
    store: Option<String>,
    #[command(flatten)]
    file: File,
}

fn failed(failure: Failure) -> anyhow::Error {
    anyhow!("{failure}")
}

fn step(text: &str) -> Result<Step> {
    Ok(Step::new(text.parse()?)?)
}

fn tag(name: &str) -> Result<TagName> {
    Ok(TagName::parse(
        name.strip_prefix("segment:").unwrap_or(name),
    )?)
}

impl Tag {
    pub(crate) fn run(self) -> Result<()> {
        match self.command {
            Command::Alter(alter) => alter.run(),
            Command::Drop(drop) => drop.run(),
            Command::Move(moving) => moving.run(),
            Command::Number(of) => of.run(false),
            Command::Key(of) => of.run(true),
        }
    }
}

impl Hidden {
    /// Nothing is asked of the store: the secret alone says it.
    fn run(&self, are_numbers: bool) -> Result<()> {
        let (tag, config) = (tag(&self.name)?, self.file.load()?);
        let found: Result<Vec<u64>> = self
            .ids
            .iter()
            .map(|id| hidden::decoded(&config, &tag, id, are_numbers))
            .collect();
        found?.iter().for_each(|found| println!("{found}"));
        Ok(())
    }
}

impl Alter {
    fn run(self) -> Result<()> {
        let tag = tag(&self.name)?;
        let change = TagChange {
            step: self.change.step,
            step_min: self.change.step_min,
            step_max: self.change.step_max,
            cover_s: self.change.cover_s,
            refill_percent: self.change.refill_percent,
            description: self.change.description,
        };
        with_store(&self.file, async |keys| {
            keys.alter_tag(&tag, &change).await.map_err(failed)
        })?;
        println!("altered tag \"{tag}\"; programs read it with their next reservation");
        Ok(())
    }
}

impl DropTag {
    fn run(self) -> Result<()> {
        let tag = tag(&self.name)?;
        let config = self.file.load()?;
        let home = config.store.further_store_of(&tag);
        let home = home.unwrap_or(config.store.name());
        if self.store.as_deref().is_none_or(|store| store == home) {
            let named = TagsInUse::of(&[&config]).check(&tag);
            named
                .map_err(|failure| failed(failure.hint("first let nothing in the file name it")))?;
        }
        let next = with_store(&self.file, async |keys| {
            let keys = match self.store.as_deref() {
                None => keys,
                store => of_store(&keys, store)?.by_itself(),
            };
            keys.drop_tag(&tag).await.map_err(failed)
        })?;
        println!(
            "dropped tag \"{tag}\"; programs use up what they have reserved before, and one of the same name would go on at {next}"
        );
        Ok(())
    }
}
