//! `init`: the store's tables and tags, and the first administrator.

mod done;
mod ordered;
mod tags;

use anyhow::{Result, bail};
use clap::Args;
use keywright_core::{Cause, Tag};
use keywright_proxy::config::Config;
use keywright_proxy::config::port::redis::ORDER_TTL_MS;
use keywright_store::users::{UserChange, UserName};
use keywright_store::{Keys, SlotGroupsRecorded, WorkerIdsRecorded};

use self::done::{Done, failed};
use self::ordered::{OrderedTags, check_ordered};
use self::tags::Making;
pub(super) use self::tags::largest_of;
use super::user::{self, Password};
use super::{File, of_store, runtime};

/// What `init` is told.
#[derive(Args)]
pub(crate) struct Init {
    #[command(flatten)]
    file: File,
    /// Accept a store's file that was copied or moved here, or into which an older state was written. You vouch that nobody uses another copy any more: two
    /// copies issue the same keys. Behind an older state, run keywright store restored then.
    #[arg(long)]
    accept_moved_file: bool,
    /// With several stores: the one whose file is accepted; default: the one without tags.
    #[arg(long, value_name = "NAME", requires = "accept_moved_file")]
    store: Option<String>,
    /// Record leased_worker_ids, fed_worker_ids and assigned_worker_ids of this configuration in the store, in place of its own. You vouch that no number
    /// which can be assigned, or leased by fed databases, from now on was ever set by hand.
    #[arg(long)]
    change_worker_ids: bool,
    /// Record slot_groups of this configuration in the store, in place of its own number. Waits until no program issues keys of ordered tags, and is
    /// refused while one does.
    #[arg(long)]
    change_slot_groups: bool,
    /// After a store of readable ids was lost, or restored from a backup. You vouch that no store ever leased another bucket of readable ids than its
    /// readable_buckets in this configuration, and that no store beside these may lease any. The stores rely on this where they no longer know it.
    #[arg(long)]
    no_other_buckets: bool,
    /// Add this user of key ports as an administrator, unless there is a user of that name. The password is the first line of standard input, or of a
    /// file.
    #[arg(long, value_name = "NAME")]
    admin: Option<String>,
    #[command(flatten)]
    password: Password,
    /// Make this tag, which `keys` of a listener name, with the order monotonic, if it does not exist yet. May be given several times: the other tags
    /// of the configuration become distinct, and the order of a tag never changes.
    #[arg(long, value_name = "TAG", value_parser = tag_of)]
    monotonic: Vec<Tag>,
    /// Make this tag with the order strict. The store must lose nothing that it has acknowledged.
    #[arg(long, value_name = "TAG", value_parser = tag_of)]
    strict: Vec<Tag>,
}

fn tag_of(text: &str) -> Result<Tag> {
    Ok(Tag::parse(text)?)
}

impl Init {
    /// Creates what is missing, and raises what is too low.
    pub(crate) fn run(&self) -> Result<()> {
        if self.admin.is_none() && self.password.is_file() {
            bail!("--password-file is that of --admin NAME");
        }
        let (config, keys) = self.file.open()?;
        check_ordered(&config, &self.ordered())?;
        // Before anything is made: whoever types a password need not do so in vain.
        let admin = self.admin.as_ref();
        let admin = admin.map(|name| user::administrator(name, &self.password));
        let admin = admin.transpose()?;
        let done = Done::default();
        runtime()?.block_on(async {
            self.make(&config, &keys, &done).await?;
            if let Some((name, add)) = admin {
                make_administrator(&keys, name, add, &done).await?;
            }
            // A store's file is whole then.
            keys.hand_back().await;
            anyhow::Ok(())
        })?;
        if done.is_nothing() {
            println!("nothing to do: everything is there");
        }
        Ok(())
    }

    fn ordered(&self) -> OrderedTags<'_> {
        OrderedTags {
            monotonic: &self.monotonic,
            strict: &self.strict,
        }
    }

    async fn make(&self, config: &Config, keys: &Keys, done: &Done) -> Result<()> {
        if self.accept_moved_file {
            let keys = of_store(keys, self.store.as_deref())?;
            match keys.accept_moved().await.map_err(failed)? {
                true => done.tell(format_args!(
                    "accepted {}: it is another store from now on",
                    keys.store_address()
                )),
                false => println!("{} is where it was made", keys.store_address()),
            }
        }
        for store in keys.stores() {
            for made in store.init().await.map_err(failed)? {
                match store.store_name() {
                    "" => done.tell(format_args!("created {made}")),
                    name => done.tell(format_args!("created {made} in store \"{name}\"")),
                }
            }
        }
        match keys
            .record_worker_ids(self.change_worker_ids)
            .await
            .map_err(failed)?
        {
            WorkerIdsRecorded::AsBefore => {}
            WorkerIdsRecorded::Now => {
                done.tell(format_args!("worker ids: {}", config.store.worker_ids()));
            }
        }
        // Where they cannot be divided the rest is done all the same.
        let divided = divide_buckets(keys, self.no_other_buckets, done).await;
        let made = self.make_tags(config, keys, done).await;
        both(divided, made)
    }

    async fn make_tags(&self, config: &Config, keys: &Keys, done: &Done) -> Result<()> {
        record_slot_groups(config, keys, self.change_slot_groups, done).await?;
        let ordered = self.ordered();
        tags::make(&Making {
            config,
            keys,
            ordered: &ordered,
            done,
        })
        .await
    }
}

/// What is in the way of either is told.
fn both(one: Result<()>, other: Result<()>) -> Result<()> {
    match (one, other) {
        (Ok(()), other) => other,
        (one, Ok(())) => one,
        (Err(one), Err(other)) => bail!("{one:#}\n{other:#}"),
    }
}

/// Has each store know which buckets of readable ids it leases, where the configuration says it.
async fn divide_buckets(keys: &Keys, no_others: bool, done: &Done) -> Result<()> {
    let all = keys.divide_buckets(no_others).await.map_err(failed)?;
    for divided in all {
        let store = divided.store;
        match divided.buckets {
            Some(range) => done.tell(format_args!(
                "store \"{store}\" leases the buckets {range} of readable ids"
            )),
            None => done.tell(format_args!(
                "store \"{store}\" leases no buckets of readable ids"
            )),
        }
    }
    Ok(())
}

/// The number of slot groups is the store's, before any tag is ordered.
async fn record_slot_groups(
    config: &Config,
    keys: &Keys,
    may_change: bool,
    done: &Done,
) -> Result<()> {
    if !keys.has_own_tags() {
        return Ok(());
    }
    let ttl_ms = config.order().map_or(ORDER_TTL_MS, |order| order.ttl_ms);
    let recorded = keys.record_slot_groups(may_change, ttl_ms).await;
    match recorded.map_err(failed)? {
        SlotGroupsRecorded::AsBefore => {}
        SlotGroupsRecorded::Now => {
            done.tell(format_args!("slot groups: {}", keys.slot_groups()));
        }
    }
    Ok(())
}

async fn make_administrator(
    keys: &Keys,
    name: UserName,
    add: UserChange,
    done: &Done,
) -> Result<()> {
    match keys.change_user(name.clone(), add).await {
        Ok(()) => done.tell(format_args!("added user \"{name}\", who administers users")),
        // By an earlier one, maybe.
        Err(failure) if failure.cause() == Cause::UserExists => {
            println!("user \"{name}\" is there already, and was left as it is");
        }
        Err(failure) => return Err(failed(failure)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::both;

    #[test]
    fn both_problems_are_told() {
        let told = |one: Result<(), &'static str>, other: Result<(), &'static str>| {
            let told = both(
                one.map_err(|one| anyhow!(one)),
                other.map_err(|other| anyhow!(other)),
            );
            told.map_err(|error| error.to_string())
        };
        assert_eq!(told(Ok(()), Ok(())), Ok(()));
        assert_eq!(told(Err("buckets"), Ok(())), Err("buckets".to_owned()));
        assert_eq!(told(Ok(()), Err("tags")), Err("tags".to_owned()));
        assert_eq!(
            told(Err("buckets"), Err("tags")),
            Err("buckets\ntags".to_owned())
        );
    }
}
