//! Tags that a configuration names: whoever makes one anew must know how far it was given.

use std::collections::BTreeMap;

use keywright_core::{Cause, Tag};
use keywright_store::{Failure, FeedSettings};

use crate::config::Config;

/// Tags that rules, feeds and key ports name, each with who does. A program does not begin without them, so where the store has not got one
/// it has lost it, and from 1 on its ids would come again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagsInUse(BTreeMap<Tag, String>);

impl TagsInUse {
    /// Of configurations together: as one is written, and as it is in force.
    #[must_use]
    pub fn of(configs: &[&Config]) -> Self {
        let rules = configs.iter().flat_map(|config| &config.rules);
        let of_rules = rules.filter_map(|rule| {
            let tag = rule.spec.tag()?;
            Some((tag.clone(), format!("the rule for {}", rule.name())))
        });
        let feeds = configs.iter().flat_map(|config| &config.feeds);
        let of_feeds = feeds.flat_map(|feed: &FeedSettings| {
            let by = format!("the [[feed]] of {}", feed.address());
            feed.tags().iter().map(move |tag| (tag.clone(), by.clone()))
        });
        let ports = configs.iter().flat_map(|config| &config.ports);
        let of_ports = ports.flat_map(|port| {
            let by = format!("the listener {}", port.bind);
            port.tags().map(move |tag| (tag.clone(), by.clone()))
        });
        Self(of_ports.chain(of_feeds).chain(of_rules).collect())
    }

    /// That nobody names the tag.
    ///
    /// # Errors
    /// [`Cause::TagInUse`], which says who.
    pub fn check(&self, tag: &Tag) -> Result<(), Failure> {
        match self.0.get(tag) {
            None => Ok(()),
            Some(by) => Err(Failure::new(
                Cause::TagInUse,
                format!("tag \"{tag}\" is that of {by}"),
            )),
        }
    }
}
