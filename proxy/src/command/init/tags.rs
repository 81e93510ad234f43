//! The tags that the configuration names: made, raised above the ids that tables have, and closed in all stores but their own. What is in the way of
//! one keeps none of the others from it, and all of it is told at the end.

use anyhow::{Result, bail};
use keywright_core::{Cause, Step, Tag};
use keywright_proxy::config::{Config, Configured};
use keywright_proxy::schema::{self, Highest, Unknown};
use keywright_store::{Failure, Keys, TagListing, TagOptions, TagOrder};

use super::super::hidden;
use super::done::{Done, failed};
use super::ordered::OrderedTags;

/// Step of tags that are made.
const STEP: i64 = 1_000;
/// But no more than such a part of a small key space: each program that is killed loses what it has reserved.
const STEP_PART: i64 = 1_000;

/// The largest key that any of a tag's rules takes.
pub(in crate::command) fn largest_of(rules: &[Configured], tag: &Tag) -> i64 {
    let of_tag = rules.iter().filter(|rule| rule.spec.tag() == Some(tag));
    let bits = of_tag.map(|rule| rule.rule.bits_max).max();
    i64::MAX >> 63_u32.saturating_sub(bits.unwrap_or(63))
}

/// What tags are made by.
pub(super) struct Making<'a> {
    pub(super) config: &'a Config,
    pub(super) keys: &'a Keys,
    pub(super) ordered: &'a OrderedTags<'a>,
    pub(super) done: &'a Done,
}

/// What is in the way, a line each, and of which tags nothing is.
#[derive(Default)]
struct Outcome {
    good: Vec<Tag>,
    problems: Vec<String>,
}

impl Outcome {
    /// The same may be in the way of several.
    fn add(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Makes the tags that are missing, raises those that are too low, and closes each in all stores but its own.
pub(super) async fn make(making: &Making<'_>) -> Result<()> {
    let (config, keys) = (making.config, making.keys);
    let tags = config.tags();
    let missing = keys.missing(&tags).await.map_err(failed)?;
    hidden::are_alike(keys, config).await?;
    let (highest, unknown) = schema::read_highest_ids(config).await;
    let mut outcome = Outcome::default();
    // A store that is away is not waited for again.
    let mut away: Vec<&str> = Vec::new();
    for tag in &tags {
        let store = keys.home_of(tag).store_name();
        if away.contains(&store) {
            continue;
        }
        let there = highest.iter().find(|highest| highest.tag == *tag);
        let there = there.filter(|highest| highest.id > 0);
        match making.make_one(tag, missing.contains(tag), there).await {
            Ok(()) => outcome.good.push(tag.clone()),
            Err(failure) => {
                if failure.cause() == Cause::StoreUnavailable {
                    away.push(store);
                }
                outcome.add(failure.to_string());
            }
        }
        let concerns = |unknown: &&Unknown| unknown.tag.as_ref().is_none_or(|its| its == tag);
        for Unknown { what, .. } in unknown.iter().filter(concerns) {
            println!("note: whether tables have higher ids is not known of {what}");
        }
    }
    if let Err(error) = hidden::are_alike(keys, config).await {
        outcome.add(error.to_string());
    }
    making.check_orders(&mut outcome).await;
    making.settle(&mut outcome).await;
    match outcome.problems.is_empty() {
        true => Ok(()),
        false => bail!(outcome.problems.join("\n")),
    }
}

impl Making<'_> {
    /// Makes a tag that is missing, or has one that is there go on above the highest id of tables.
    async fn make_one(
        &self,
        tag: &Tag,
        is_missing: bool,
        there: Option<&Highest>,
    ) -> Result<(), Failure> {
        let is_hidden = self.config.store.hidden_tags().of(tag).is_some();
        if let Some(there) = there.filter(|_| is_hidden && is_missing) {
            let message = format!(
                "tag \"{tag}\" cannot be made: its keys hide how many there are, so any may come, and {} is {there}: such a tag begins with empty tables",
                there.id
            );
            return Err(Failure::new(Cause::HideKeyMismatch, message));
        }
        let highest = there.map_or(0, |highest| highest.id);
        if is_missing && self.create(tag, highest).await? {
            match there {
                Some(there) => {
                    let id = there.id;
                    self.done
                        .tell(format_args!("created tag \"{tag}\", above {id}, {there}"));
                }
                None => self.done.tell(format_args!("created tag \"{tag}\"")),
            }
        } else if let Some(there) = there.filter(|_| !is_hidden) {
            self.raise(there).await?;
        }
        Ok(())
    }

    /// Makes a tag above an id. False: somebody else has made it meanwhile.
    async fn create(&self, tag: &Tag, highest: u64) -> Result<bool, Failure> {
        let options = TagOptions {
            order: self.ordered.of(tag),
            ..options(largest_of(&self.config.rules, tag), highest)?
        };
        match self.keys.create_tag(tag, &options).await {
            Ok(()) => Ok(true),
            Err(failure) if failure.cause() == Cause::TagExists => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Lets a tag that is there go on above the ids that tables have.
    async fn raise(&self, highest: &Highest) -> Result<(), Failure> {
        let Highest { tag, id, .. } = highest;
        let tags = self.keys.tags().await?;
        let is_below = |listing: &TagListing| listing.tag == tag.as_str() && listing.next <= *id;
        if tags.iter().any(is_below) {
            self.keys.raise(tag, *id).await?;
            self.done
                .tell(format_args!("raised tag \"{tag}\" above {id}, {highest}"));
        }
        Ok(())
    }

    /// Tags that were there may have another order.
    async fn check_orders(&self, outcome: &mut Outcome) {
        if self.ordered.all().next().is_none() {
            return;
        }
        let there = match self.keys.tags().await {
            Ok(there) => there,
            Err(failure) => return outcome.add(failure.to_string()),
        };
        for tag in self.ordered.all() {
            let row = there.iter().find(|row| row.tag == tag.as_str());
            let order = row.and_then(|row| row.order);
            // Of one that could not be made it was told why.
            if outcome.good.contains(tag) && order != Some(self.ordered.of(tag)) {
                let order = order.map_or("of an order that nobody knows", TagOrder::name);
                outcome.add(format!(
                    "tag \"{tag}\" is there, and {order}: its order cannot change"
                ));
            }
        }
    }

    /// Where there are several stores, each tag is closed in all but its own.
    async fn settle(&self, outcome: &mut Outcome) {
        for tag in std::mem::take(&mut outcome.good) {
            match self.keys.settle(&tag).await {
                Ok(closed) => closed.iter().for_each(|store| {
                    self.done
                        .tell(format_args!("closed tag \"{tag}\" in store \"{store}\""));
                }),
                Err(failure) => outcome.add(failure.to_string()),
            }
        }
    }
}

fn options(largest: i64, highest: u64) -> Result<TagOptions, Failure> {
    let step = Step::new((largest / STEP_PART).clamp(1, STEP))
        .map_err(|error| Failure::new(Cause::ArgumentOutOfRange, error.to_string()))?;
    Ok(TagOptions {
        start: highest.saturating_add(1),
        id_max: largest.cast_unsigned(),
        ..TagOptions::with_step(step)
    })
}
