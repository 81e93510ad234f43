//! What is to be said of all rules together, and of rules in front of a store.

use keywright_core::{Layout, Tag};
use keywright_session::Mode;
use keywright_store::{KeySpec, StoreSettings};

use crate::config::configured::Configured;

/// What of rules depends on the store: whether their tables are switched, and have the fence if that was not said (`fences`).
pub(super) fn settle(
    rules: &mut [Configured],
    fences: &[Option<bool>],
    store: &StoreSettings,
    problems: &mut Vec<String>,
) {
    for (rule, fence) in rules.iter_mut().zip(fences) {
        rule.rule.keys_max = store.keys_max(&rule.spec);
        rule.rule.several_rows = rule.several_rows(store.hidden_tags());
        rule.is_switched = store.followed(&rule.spec).is_some();
        let gives_keys = rule.rule.mode == Mode::Rewrite;
        rule.fence = fence.unwrap_or(rule.is_switched || gives_keys);
        rule.needs_fence = rule.fence && gives_keys;
        if rule.fence && !gives_keys && !rule.is_switched {
            problems.push(format!(
                "rule for {}: fence = true while the rule only observes would leave nobody who gives keys",
                rule.name()
            ));
        }
    }
}

/// Tags whose rules take part in switches in part only: when tables leave a tag, others must not issue of it by what they know.
pub(super) fn unlike_rules(rules: &[Configured]) -> Vec<String> {
    let switched = rules.iter().filter(|rule| rule.is_switched);
    let mut tags: Vec<&Tag> = switched.filter_map(|rule| rule.spec.tag()).collect();
    tags.sort_unstable();
    tags.dedup();
    let is_unlike = |tag: &&&Tag| {
        let mut others = rules.iter().filter(|rule| rule.spec.tag() == Some(**tag));
        others.any(|rule| !rule.is_switched)
    };
    let unlike = tags.iter().filter(is_unlike);
    unlike
        .map(|tag| {
            format!("tag \"{tag}\" is for key segment:{tag} or for key stride:{tag}, not for both")
        })
        .collect()
}

/// Rules for which no key of the layout, or none from some day on, would be small enough.
pub(super) fn too_many_bits(rules: &[Configured], layout: &Layout) -> Vec<String> {
    let bits = layout.id_bits();
    rules
        .iter()
        .filter(|rule| rule.spec == KeySpec::Snowflake && bits > rule.rule.bits_max)
        .map(|rule| {
            format!(
                "rule for {}: ids of layout \"{layout}\" have {bits} bits, and bits_max is {}",
                rule.name(),
                rule.rule.bits_max
            )
        })
        .collect()
}
