//! What store and servers are asked before a configuration gives keys.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use keywright_core::Tag;
use keywright_proxy::config::Config;
use keywright_proxy::schema::{self, Finding, Severity};
use keywright_proxy::switch::rule_name;
use keywright_store::Keys;
use keywright_store::switch::{RuleName, Standing, Switchboard};
use tokio::task::JoinSet;

use crate::command::left_over;

/// Where keys come from when the program begins.
pub(super) struct FirstStanding {
    pub(super) standing: Option<Standing>,
    /// The store did not say so: it is what was kept with ranges.
    pub(super) is_kept: bool,
}

impl FirstStanding {
    /// As the store says, or else what was kept. A program that takes over from another needs the store.
    pub(super) async fn read(config: &Config, keys: &Keys, takes_over: bool) -> Result<Self> {
        let standing = standing(config, keys).await;
        if takes_over && config.follows_the_switch() && standing.is_none() {
            bail!("the store does not say where keys come from now");
        }
        let kept = match standing.is_none() && config.follows_the_switch() {
            true => keys.start_on_kept_ranges(),
            false => {
                keys.drop_kept_ranges();
                None
            }
        };
        Ok(Self {
            is_kept: kept.is_some(),
            standing: standing.or(kept),
        })
    }
}

/// What the store says of rules that are switched; nothing if there are none, or it does not answer.
pub(super) async fn standing(config: &Config, keys: &Keys) -> Option<Standing> {
    if !config.follows_the_switch() {
        return None;
    }
    match Switchboard::new(keys).standing().await {
        Ok(standing) => Some(standing),
        Err(failure) => {
            tracing::warn!(
                %failure,
                "where keys of tables that were switched come from is not known yet: inserts on these tables wait"
            );
            None
        }
    }
}

/// Servers that are fed know how far ids came, so that a store that has gone back is known for one before a key of it is given. One that does
/// not answer is told of when it is fed.
pub(super) async fn ask_fed_servers(config: &Config, keys: &Keys) {
    let mut asking = JoinSet::new();
    for feed in config.feeds.clone() {
        let keys = keys.clone();
        asking.spawn(async move { keys.learn_handed(&feed).await });
    }
    while asking.join_next().await.is_some() {}
}

/// A store that gives ranges only does not know what tables have, nor does one that holds some tags: ranges that lie among their ids are refused
/// then.
pub(super) async fn see_what_tables_have(config: &Config, keys: &Keys) {
    let concerns =
        |tag: &Tag| keys.gives_ranges_only() || config.store.further_store_of(tag).is_some();
    let mut tags = config.rules.iter().filter_map(|rule| rule.spec.tag());
    if !tags.any(concerns) {
        return;
    }
    let (highest, unknown) = schema::read_highest_ids(config).await;
    for found in highest.into_iter().filter(|found| concerns(&found.tag)) {
        keys.note_taken(&found.tag, found.id);
    }
    for unknown in unknown {
        tracing::warn!(
            "whether tables have ids that a tag is still to give is not known of {}",
            unknown.what
        );
    }
}

/// Rules of whose tables nothing says that they were native, or switched: they may have had keys without the fence.
pub(super) async fn rules_that_may_have_keys(config: &Config, keys: &Keys) -> BTreeSet<RuleName> {
    if !config.rules.iter().any(|rule| rule.is_switched) {
        return BTreeSet::new();
    }
    // Where the store does not say, none is sure.
    let all_wanted = Switchboard::new(keys)
        .all_wanted()
        .await
        .unwrap_or_default();
    let is_told = |rule: &RuleName| all_wanted.iter().any(|(_, wanted)| wanted.rule == *rule);
    let rules = config.rules.iter().filter(|rule| rule.is_switched);
    rules.map(rule_name).filter(|rule| !is_told(rule)).collect()
}

/// Rules of this program's servers that it does not have. Nobody waits for that.
pub(super) fn look_for_rules_left_out(config: &Arc<Config>, file: &Path, keys: &Keys) {
    let (config, keys, file) = (Arc::clone(config), keys.clone(), file.to_owned());
    tokio::spawn(async move {
        for Finding {
            severity, message, ..
        } in left_over::rules((config.as_ref(), file.as_path()), &keys).await
        {
            match severity {
                Severity::Error | Severity::LeftOut | Severity::Warning => {
                    tracing::warn!("{message}");
                }
                Severity::Note => tracing::info!("{message}"),
            }
        }
    });
}
