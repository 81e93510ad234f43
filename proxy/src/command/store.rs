//! `store`: what is done to a store as a whole.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use keywright_core::Tag;
use keywright_proxy::config::Config;
use keywright_store::{Keys, RestoredBuckets, RestoredStore};

use super::{File, of_store, runtime};

/// A longer time is taken for a mistake.
const LOST_MAX: Duration = Duration::from_secs(366 * 86_400);

#[derive(Args)]
pub(crate) struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tell the store that it was restored from a backup: leave a gap in each tag for ids that may have been issued since, and end leases of worker ids.
    ///
    /// Stop all programs first, and start them again afterwards.
    Restored(Restored),
}

#[derive(Args)]
struct Restored {
    #[command(flatten)]
    file: File,
    /// The time from the backup to the last key that was issued, or longer: 90s, 15m, 2h, 1day.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    lost: Duration,
    /// With several stores: the one that was restored.
    #[arg(long, value_name = "NAME")]
    store: Option<String>,
    /// Fed PostgreSQL servers that do not answer are gone, and so are the ids in their memory. You vouch for that.
    #[arg(long)]
    fed_servers_gone: bool,
}

impl Store {
    pub(crate) fn run(&self) -> Result<()> {
        match &self.command {
            Command::Restored(restored) => restored.run(),
        }
    }
}

impl Restored {
    fn run(&self) -> Result<()> {
        if self.lost > LOST_MAX {
            bail!("--lost is more than a year");
        }
        let (config, keys) = self.file.open()?;
        if keys.are_several() && self.store.is_none() {
            let names: Vec<String> = keys.stores_up().into_iter().map(|of| of.name).collect();
            bail!(
                "which store was restored? --store {}",
                names.join(", --store ")
            );
        }
        let runtime = runtime()?;
        let restored = of_store(&keys, self.store.as_deref())?;
        let is_main = restored.store_name() == keys.store_name();
        let last_ids = match is_main {
            true => runtime.block_on(self.handed_over(&config, &keys))?,
            // What is fed is in the other store.
            false => BTreeMap::new(),
        };
        let keys = restored;
        for (tag, id) in &last_ids {
            println!("tag \"{tag}\": PostgreSQL servers were handed ids up to {id}");
        }
        let restored = runtime.block_on(keys.restored(self.lost, last_ids));
        let restored = restored.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        tell_done(&restored, keys);
        self.tell_what_is_left(&config);
        Ok(())
    }

    /// What the operator is to see to.
    fn tell_what_is_left(&self, config: &Config) {
        println!(
            "the gaps are estimates, from the fastest that each tag was used: where you know the highest id, keywright advance above it, too"
        );
        if config.store.keeps_ranges() {
            println!(
                "a program that was killed, or stopped while the store was away, may go on with its kept_ranges_file: delete each before programs start"
            );
        }
        if config.store.worker_ids().assigned.is_some() {
            println!(
                "no new worker id is assigned before keywright worker advance --above N, the largest that any database has"
            );
        }
        if self.store.is_some() {
            println!(
                "tags that moved since the backup may be open here and elsewhere, or nowhere: keywright check names them, and programs do not start with them. What to do: \"A store that was restored\" in docs/operations/several-stores.md"
            );
        }
        println!(
            "tags that were made after the backup are gone: advance them when init has made them again"
        );
    }

    /// How far each tag came in servers that are fed, which go on with what they have. Asked before anything is changed.
    async fn handed_over(&self, config: &Config, keys: &Keys) -> Result<BTreeMap<Tag, u64>> {
        let mut last_ids: BTreeMap<Tag, u64> = BTreeMap::new();
        for feed in &config.feeds {
            let answer = keys.handed_over(feed).await;
            let of_server = match answer {
                Ok(of_server) => of_server,
                Err(_) if self.fed_servers_gone => continue,
                Err(failure) => bail!(
                    "{failure}\nit may have ids in its memory that the store knows nothing of; if it is gone, add --fed-servers-gone"
                ),
            };
            for (tag, last) in of_server {
                let known = last_ids.entry(tag).or_default();
                *known = last.max(*known);
            }
        }
        Ok(last_ids)
    }
}

/// What was done to the store.
fn tell_done(restored: &RestoredStore, keys: &Keys) {
    for its in &restored.tags {
        println!(
            "tag \"{}\": its bound is {}, and a gap of {} ids or more is left out above it",
            its.tag, its.next, its.gap
        );
    }
    for problem in &restored.unusable {
        println!(
            "{problem}: nothing is given of it; when that is mended, keywright advance it above all that was given"
        );
    }
    for (tag, id) in &restored.unknown {
        println!(
            "tag \"{tag}\" is not in the store: when init has made it again, keywright advance {tag} --above {id}"
        );
    }
    if !keys.has_own_tags() {
        println!("tags are another system's: keywright advance them above all that was given");
    }
    println!(
        "worker ids are leased anew, above all moments until now; rests that were handed back are dropped"
    );
    match restored.buckets {
        RestoredBuckets::All => {}
        RestoredBuckets::Closed => {
            println!("no new bucket of readable ids is leased here before keywright init has run")
        }
        RestoredBuckets::ClosedUntilWord => println!(
            "no new bucket of readable ids is leased here before keywright init --no-other-buckets, with a configuration that has each store of readable ids and all buckets that it ever had"
        ),
    }
}
