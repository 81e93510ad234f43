//! Tags that hide how many keys there are: what of a configuration does not go with them.

use keywright_store::{FeedSettings, KeySpec, StoreSettings};

use crate::config::configured::Configured;
use crate::config::ranges_only;

/// What is wrong; and rules have keys of no more bits than their tag's. `fences`: what rules say of theirs.
pub(super) fn settle(
    rules: &mut [Configured],
    fences: &[Option<bool>],
    feeds: &[FeedSettings],
    store: &StoreSettings,
) -> Vec<String> {
    let hidden = store.hidden_tags();
    let mut problems = Vec::new();
    if hidden.tags().next().is_some() && !store.has_own_tags() {
        problems.push(match store.gives_ranges_only() {
            true => ranges_only::problem("[[hidden_tag]]"),
            false => "[[hidden_tag]] needs a store with dialect = \"keywright\"".to_owned(),
        });
    }
    for (rule, fence) in rules.iter_mut().zip(fences) {
        let mut wrong = |what: String| problems.push(format!("rule for {}: {what}", rule.name()));
        let Some((tag, hiding)) = rule.spec.tag().and_then(|tag| Some((tag, hidden.of(tag)?)))
        else {
            if rule.allows_apart {
                wrong("on_several_rows is for a tag with a [[hidden_tag]] section".to_owned());
            }
            continue;
        };
        if matches!(rule.spec, KeySpec::Stride(_)) {
            wrong(format!(
                "tag \"{tag}\" hides how many keys there are, so it has no stride"
            ));
        }
        // Ids of the server's own would be among the keys that are still to come.
        if *fence == Some(false) {
            wrong(format!(
                "keys of tag \"{tag}\" may be any, so fence = false is not for them"
            ));
        }
        let bits = u32::from(hiding.bits().get());
        if rule.rule.bits_max < bits {
            wrong(format!(
                "keys of tag \"{tag}\" have hide_bits = {bits}, and bits_max is {}",
                rule.rule.bits_max
            ));
        }
        rule.rule.bits_max = bits;
    }
    for feed in feeds {
        for tag in feed.tags().iter().filter(|tag| hidden.of(tag).is_some()) {
            problems.push(format!(
                "[[feed]] of {}: tag \"{tag}\" hides how many keys there are, and fed databases have no key for that",
                feed.address()
            ));
        }
    }
    problems
}
