//! Tags that are to give ids which tables have already: their store went back, somebody brought ids of his own, or the tables are new to them.

use anyhow::{Result, bail};
use keywright_core::Tag;
use keywright_proxy::config::{Config, Configured};
use keywright_proxy::schema::{self, Extent, Highest, Origin, Unknown};
use keywright_session::{Mode, OnExplicit};
use keywright_store::{Failure, Keys, TagListing};

use super::init::largest_of;

/// A tag that is at an id, and a table that has a higher one.
pub(super) struct Stale {
    highest: Highest,
    next: u64,
    step: u64,
}

impl Stale {
    /// What is to be said of it.
    pub(super) fn told(&self, config: &Config) -> String {
        let Highest { tag, id, .. } = &self.highest;
        let seen = self.seen();
        let advice = match self.is_in_reach(config) {
            true => format!(". keywright advance {tag} --above {id} leaves them out"),
            false => String::new(),
        };
        format!("{seen}: those between may be given a second time{advice}")
    }

    fn seen(&self) -> String {
        let Highest { tag, id, table, .. } = &self.highest;
        let ids = match self.highest.origin {
            Origin::Row => format!("{table} has ids up to {id}"),
            Origin::Counter => format!("the AUTO_INCREMENT of {table} is behind {id}"),
        };
        format!("tag \"{tag}\" is at {}, and {ids}", self.next)
    }

    /// Whether the tag is to go on above that, as native ids do above a row that somebody brought: unless ids that the application brings are its
    /// own business, or a single one far above all others would use up most of what is left.
    fn is_to_be_followed(&self, config: &Config) -> bool {
        let rules = config.rules.iter();
        let mut of_tag = rules.filter(|rule| rule.spec.tag() == Some(&self.highest.tag));
        !of_tag.any(|rule| rule.rule.on_explicit == OnExplicit::Keep) && self.is_in_reach(config)
    }

    /// Whether to go on above it leaves most of the tag's ids.
    fn is_in_reach(&self, config: &Config) -> bool {
        let largest = largest_of(&config.rules, &self.highest.tag).cast_unsigned();
        let left = largest.saturating_sub(self.next);
        self.highest.id.saturating_sub(self.next) <= left / 2
    }
}

/// Tags that are to give ids which tables have already; and what is to be said of servers of which that is not known. That the store cannot be
/// asked is told elsewhere.
pub(super) async fn stale_tags(config: &Config, keys: &Keys) -> (Vec<Stale>, Vec<String>) {
    stale_among(schema::read_highest_ids(&giving(config)).await, keys).await
}

/// A rule that gives no keys yet is switched above all ids.
fn giving(config: &Config) -> Config {
    let gives_keys = |rule: &&Configured| !rule.is_switched || rule.rule.mode == Mode::Rewrite;
    Config {
        rules: config.rules.iter().filter(gives_keys).cloned().collect(),
        ..config.clone()
    }
}

async fn stale_among(
    (highest, unknown): (Vec<Highest>, Vec<Unknown>),
    keys: &Keys,
) -> (Vec<Stale>, Vec<String>) {
    // Behind the tables: ids that were given meanwhile would seem to be still to be given.
    let tags = keys.tags().await.unwrap_or_default();
    let listing = |tag: &Tag| tags.iter().find(|listing| listing.tag == tag.as_str());
    // Of single columns `init` tells it, when it matters.
    let servers = unknown.iter().filter(|unknown| unknown.tag.is_none());
    let unknown = servers.map(|Unknown { what, .. }| {
        format!("whether tables have ids that a tag is still to give is not known of {what}")
    });
    let stale = highest.into_iter().filter_map(|highest| {
        let listing = listing(&highest.tag)?;
        // The highest of hidden keys says nothing of their numbers.
        let is_stale = listing.hiding == Ok(None) && highest.id >= listing.next;
        is_stale.then_some(Stale {
            highest,
            next: listing.next,
            step: listing.step,
        })
    });
    (stale.collect(), unknown.collect())
}

/// Raises what is stale before anything is given, as `init` does, and leaves out what was handed back below the ids of tables that come to a tag. Fences are
/// set behind it: it goes by those that are missing.
pub(super) async fn raise_stale_tags(config: &Config, keys: &Keys) {
    let giving = giving(config);
    let taken = match giving.tags().is_empty() {
        true => Vec::new(),
        false => schema::take_all(&giving, Extent::Ids).await,
    };
    raise_stale(config, schema::highest_ids(&giving, &taken), keys).await;
    for its in schema::highest_ids_of_unfenced(&giving, &taken) {
        leave_out_rests(its, config, keys).await;
    }
}

async fn raise_stale(config: &Config, known: (Vec<Highest>, Vec<Unknown>), keys: &Keys) {
    let (stale, unknown) = stale_among(known, keys).await;
    for unknown in unknown {
        tracing::warn!("{unknown}");
    }
    for its in stale {
        if !its.is_to_be_followed(config) {
            tracing::warn!("{}", its.told(config));
            continue;
        }
        let Highest { tag, id, .. } = its.highest.clone();
        // What others had reserved beside it, and not put into rows by then.
        let id = id.saturating_add(its.step.saturating_mul(2));
        match keys.raise(&tag, id).await {
            Ok(_) => tracing::warn!(
                "{}: it goes on above them, as after keywright init. If the store was restored, stop all programs and run keywright store restored",
                its.seen()
            ),
            Err(failure) => tracing::warn!(%failure, "{}", its.told(config)),
        }
    }
}

/// A tag is above the ids of a table that comes to it, and rests that were handed back may lie among these: none of them is given any more. Where it is not
/// above them, that was told.
async fn leave_out_rests(highest: Highest, config: &Config, keys: &Keys) {
    let Highest { tag, id, table, .. } = &highest;
    let home = keys.home_of(tag);
    // An empty table has none. Of a store that gives ranges only, those among the ids are refused anyway.
    if *id == 0 || home.gives_ranges_only() {
        return;
    }
    // Its store alone: others may be away.
    let listings = home.by_itself().tags().await;
    let listing = listings.as_ref().ok().map(|all| listing_of(all, tag));
    // Where the store does not answer, or does not list it, the tag may be anywhere.
    let listing = listing.flatten();
    let is_hidden = listing.is_some_and(|its| its.hiding != Ok(None));
    let is_stale = listing.is_some_and(|its| *id >= its.next);
    let (next, step) = listing.map_or((0, 0), |its| (its.next, its.step));
    let its = Stale {
        highest: highest.clone(),
        next,
        step,
    };
    if is_hidden || is_stale || !its.is_in_reach(config) {
        return;
    }
    // By this program, whatever becomes of the store.
    keys.leave_out(tag, *id);
    let discarded = match listings {
        Ok(_) => keys.raise(tag, *id).await.map(drop),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = discarded {
        tracing::warn!(
            %failure,
            "{table} is new to tag \"{tag}\", and has ids up to {id}: ranges below that others have handed back are not discarded"
        );
    }
}

/// Has tags go on above the ids of tables that come to them by a configuration which is read while the program runs: what it has reserved may lie among
/// these ids. `before`: the configuration in force.
///
/// # Errors
/// What the tables have is not known, or a tag cannot go on above it.
pub(super) async fn go_above_new_tables(
    config: &Config,
    before: &Config,
    keys: &Keys,
) -> Result<()> {
    let (highest, unknown) = schema::read_highest_ids_of_new(config, before).await;
    if !unknown.is_empty() {
        let unknown = unknown.into_iter().map(|unknown| unknown.what);
        bail!(
            "whether tables of new rules have ids that a tag is still to give is not known of {}. A start takes such rules with a warning: before it, \
             keywright advance TAG --above N, the highest id of these tables",
            unknown.collect::<Vec<_>>().join(", ")
        );
    }
    // An empty table has none.
    for highest in highest.into_iter().filter(|highest| highest.id > 0) {
        let above = match keys.home_of(&highest.tag).gives_ranges_only() {
            // Nobody raises there: ranges among these ids are refused, as after a start.
            true => highest.id,
            false => raise_above_new(&highest, config, keys).await?,
        };
        keys.leave_out(&highest.tag, above);
    }
    Ok(())
}

/// Raises a tag above an id, also where its rows say more: what was handed back may lie below. The highest id that is left out.
async fn raise_above_new(highest: &Highest, config: &Config, keys: &Keys) -> Result<u64> {
    let Highest { tag, id, table, .. } = highest;
    let failed = |failure: Failure| {
        anyhow::anyhow!("tag \"{tag}\" cannot go on above {id}, as {table} needs it to: {failure}")
    };
    // Its store alone: others may be away.
    let listings = keys.home_of(tag).by_itself().tags().await.map_err(failed)?;
    let Some(listing) = listing_of(&listings, tag) else {
        bail!("the store does not list tag \"{tag}\"");
    };
    let its = Stale {
        highest: highest.clone(),
        next: listing.next,
        step: listing.step,
    };
    let is_stale = *id >= listing.next;
    if is_stale && !its.is_in_reach(config) {
        bail!(
            "{}: to go on above them would use up most of its ids. Use another tag, or keywright advance {tag} --above {id} --use-up",
            its.seen()
        );
    }
    // What clients bring natively until they follow the rules, and others until the fence stands: as much as a start leaves, or half of what is left.
    let left = listing.id_max.unwrap_or(u64::MAX).saturating_sub(*id);
    let above = id.saturating_add(listing.step.saturating_mul(2).min(left / 2));
    keys.raise(tag, above).await.map_err(failed)?;
    if is_stale {
        tracing::info!(
            "{}: it goes on above them, as after keywright init",
            its.seen()
        );
    }
    Ok(above)
}

/// Only Keywright's own table is known to tell names in another case apart.
fn listing_of<'l>(listings: &'l [TagListing], tag: &Tag) -> Option<&'l TagListing> {
    let mut exactly = listings.iter();
    let exactly = exactly.find(|listing| listing.tag == tag.as_str());
    let mut alike = listings.iter();
    exactly.or_else(|| alike.find(|listing| listing.tag.eq_ignore_ascii_case(tag.as_str())))
}
