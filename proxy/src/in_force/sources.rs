//! Where keys come from, as the store says it, and what follows of that.

use std::collections::{BTreeMap, BTreeSet};

use keywright_session::Mode;
use keywright_store::Keys;
use keywright_store::switch::{KeySpace, Phase, RuleName, Standing};

use crate::config::{Config, Configured};
use crate::switch::rule_name;

/// Where the keys of each rule come from that was ever switched; `None`: native auto-increment.
pub type KeySpaces = BTreeMap<RuleName, Source>;

/// Where the keys of a rule come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// `None`: native auto-increment.
    pub keys: Option<KeySpace>,
    /// The servers on which that is so.
    pub servers: BTreeSet<String>,
}

/// A configuration as it is in force. A rule that is switched gives keys only if the store says so (`known`), and those that the
/// store names; as long as the store has not answered it gives none.
#[must_use]
pub fn effective(config: &Config, known: Option<&KeySpaces>) -> Config {
    let rule = |configured: &Configured| {
        let mut rule = configured.clone();
        if !configured.is_switched {
            return rule;
        }
        let source = known.and_then(|known| known.get(&rule_name(configured)));
        match source.and_then(|source| Some((source.keys.as_ref()?, &source.servers))) {
            Some((keys, servers)) => {
                rule.rule.mode = Mode::Rewrite;
                rule.spec = keys.spec();
                rule.rule.keys_max = config.store.keys_max(&rule.spec);
                rule.rule.several_rows = rule.several_rows(config.store.hidden_tags());
                rule.servers = Some(servers.clone());
                rule.needs_fence = rule.fence;
            }
            None => rule.rule.mode = Mode::Observe,
        }
        rule
    };
    Config {
        rules: config.rules.iter().map(rule).collect(),
        ..config.clone()
    }
}

/// The same of a configuration that a program is told to go by while it runs. Where that observes, tables may have their keys still, as they
/// have by the one before, and are to leave them: that needs no fence.
#[must_use]
pub fn effective_on_reload(config: &Config, known: Option<&KeySpaces>) -> Config {
    let mut effective = effective(config, known);
    for (rule, wanted) in effective.rules.iter_mut().zip(&config.rules) {
        rule.needs_fence = wanted.needs_fence;
    }
    effective
}

/// Before anybody takes keys by new rules: what was reserved of keys before they came into force is dropped. Those that are left are not
/// followed: what was reserved of it is below where others go on, and nothing more can be reserved.
pub(super) fn follow_generations(keys: &Keys, standing: &Standing) {
    follow_generations_but(keys, standing, &BTreeSet::new());
}

/// The same, and these are not followed.
pub(super) fn follow_generations_but(keys: &Keys, standing: &Standing, but: &BTreeSet<KeySpace>) {
    let in_force: BTreeSet<&KeySpace> = standing
        .rules
        .iter()
        .filter_map(|rule| rule.keys.as_ref())
        .collect();
    let followed = standing.generations.iter();
    let followed = followed.filter(|(space, _)| in_force.contains(space) && !but.contains(space));
    for (space, generation) in followed {
        keys.follow(space, *generation);
    }
    for (tag, id) in &standing.key_space_ids {
        keys.meet(tag, id);
    }
}

/// What is in force, as the store says it.
#[must_use]
pub fn key_spaces_of(standing: &Standing) -> KeySpaces {
    let rules = standing.rules.iter();
    rules
        .map(|rule| {
            let source = Source {
                keys: rule.keys.clone(),
                servers: rule.servers.iter().cloned().collect(),
            };
            (rule.rule.clone(), source)
        })
        .collect()
}

/// The rules that leave their keys as soon as what the store says is followed, and these keys. Those whose tags are closed have left them: what can
/// be had of these in the next generation their tables may have natively.
pub(super) fn leaving(
    known: Option<&KeySpaces>,
    standing: &Standing,
) -> BTreeMap<RuleName, KeySpace> {
    let now = key_spaces_of(standing);
    let closed = match standing.phase {
        Phase::Closed => held_by(standing),
        Phase::None | Phase::Holding | Phase::Ending => BTreeSet::new(),
    };
    let stays = |rule: &RuleName, keys: &KeySpace| {
        let keys_now = now.get(rule).and_then(|now| now.keys.as_ref());
        keys_now == Some(keys) && !closed.contains(rule)
    };
    let known = known.into_iter().flatten();
    known
        .filter_map(|(rule, source)| Some((rule, source.keys.as_ref()?)))
        .filter(|(rule, keys)| !stays(rule, keys))
        .map(|(rule, keys)| (rule.clone(), keys.clone()))
        .collect()
}

/// The rules that an attempt is about.
pub(super) fn held_by(standing: &Standing) -> BTreeSet<RuleName> {
    if standing.phase == Phase::None {
        return BTreeSet::new();
    }
    let rules = standing.rules.iter().filter(|rule| rule.next.is_some());
    rules.map(|rule| rule.rule.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use keywright_core::Tag;
    use keywright_store::switch::KeySpace;

    use super::{KeySpaces, Source, effective, effective_on_reload};
    use crate::config::Config;
    use crate::switch::rule_name;

    fn config(mode: &str) -> Config {
        let text = format!(
            "[store]\nurl = \"mysql://root@127.0.0.1:1/s\"\n\
             [[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:3\"\nadmin = \"mysql://root@127.0.0.1:3\"\n\
             [[rule]]\ntable = \"a.b\"\ncolumn = \"id\"\nkey = \"segment:a\"\nmode = \"{mode}\"\n"
        );
        Config::parse(&text).unwrap()
    }

    /// The rule's tables have keys, or none.
    fn known(config: &Config, has_keys: bool) -> KeySpaces {
        let source = Source {
            keys: has_keys.then(|| KeySpace::Tag(Tag::parse("a").unwrap())),
            servers: BTreeSet::new(),
        };
        let rules = config.rules.iter();
        rules
            .map(|rule| (rule_name(rule), source.clone()))
            .collect()
    }

    #[test]
    fn the_way_back_and_who_observes_need_no_fence() {
        for (mode, has_keys, at_start, on_reload) in [
            ("observe", false, false, false),
            // One that starts may leave the tables their keys, and give some.
            ("observe", true, true, false),
            ("rewrite", false, true, true),
            ("rewrite", true, true, true),
        ] {
            let config = config(mode);
            let known = known(&config, has_keys);
            let needs = |config: Config| config.rules.iter().any(|rule| rule.needs_fence);
            let found = (
                needs(effective(&config, Some(&known))),
                needs(effective_on_reload(&config, Some(&known))),
            );
            assert_eq!(found, (at_start, on_reload), "{mode} {has_keys}");
        }
    }
}
