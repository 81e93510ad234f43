//! The order that tags are made with.

use anyhow::{Result, bail};
use keywright_core::Tag;
use keywright_proxy::config::Config;
use keywright_store::TagOrder;

/// Tags that are to be ordered.
pub(super) struct OrderedTags<'a> {
    pub(super) monotonic: &'a [Tag],
    pub(super) strict: &'a [Tag],
}

impl OrderedTags<'_> {
    pub(super) fn all(&self) -> impl Iterator<Item = &Tag> {
        self.monotonic.iter().chain(self.strict)
    }

    pub(super) fn of(&self, tag: &Tag) -> TagOrder {
        match (self.monotonic.contains(tag), self.strict.contains(tag)) {
            (_, true) => TagOrder::Strict,
            (true, false) => TagOrder::Monotonic,
            (false, false) => TagOrder::Distinct,
        }
    }
}

/// That each of these tags is named, and by nobody who cannot keep an order, and is to have one order.
pub(super) fn check_ordered(config: &Config, ordered: &OrderedTags<'_>) -> Result<()> {
    let (named, unordered) = (config.tags(), config.unordered_tags());
    for tag in ordered.all() {
        if ordered.monotonic.contains(tag) && ordered.strict.contains(tag) {
            bail!("tag \"{tag}\" is to be monotonic and strict: it can be one of both");
        }
        if !named.contains(tag) {
            bail!("tag \"{tag}\" is named by no key of a [[listener]]");
        }
        if config.store.hidden_tags().of(tag).is_some() {
            bail!("tag \"{tag}\" cannot be ordered: it hides how many keys there are");
        }
        if unordered.contains(tag) {
            bail!("tag \"{tag}\" cannot be ordered: a rule or a [[feed]] is for it");
        }
    }
    Ok(())
}
