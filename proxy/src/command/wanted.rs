//! What a configuration wants of the switch, beside what is in force: what is to be switched, and what together.

use std::collections::BTreeSet;
use std::path::Path;

use keywright_proxy::config::Configured;
use keywright_proxy::switch::rule_name;
use keywright_session::Mode;
use keywright_store::switch::{Change, KeySpace, RuleName, Standing, WantedKeys};

/// What a configuration wants for a rule.
pub(super) fn wanted(configured: &Configured) -> Option<WantedKeys> {
    let keys = match configured.rule.mode {
        Mode::Rewrite => Some(KeySpace::of(&configured.spec)?),
        Mode::Observe => None,
    };
    configured.is_switched.then(|| WantedKeys {
        rule: rule_name(configured),
        keys,
    })
}

/// What is in force for a rule.
pub(super) fn in_force(standing: &Standing, rule: &RuleName) -> Option<KeySpace> {
    let known = standing.rules.iter().find(|known| known.rule == *rule);
    known.and_then(|known| known.keys.clone())
}

/// Longest name of a place, characters.
const PLACE_CHARS_MAX: usize = 255;

/// Where a configuration is, for the store.
pub(super) fn place_of(file: &Path) -> String {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let place = format!("{} {}", keywright_store::host(), file.display());
    place.chars().take(PLACE_CHARS_MAX).collect()
}

/// The name of the machine that a place is on.
pub(super) fn host_of(place: &str) -> Option<&str> {
    place.split_once(' ').map(|(host, _)| host)
}

/// Whether a program of this place is to switch a rule's tables to what its configuration wants, where something else is in force (`from`).
/// `all`: what the configurations of all places wanted when that was in force last.
pub(super) fn is_news(
    (place, wanted): (&str, &WantedKeys),
    from: Option<&KeySpace>,
    all: &[(String, WantedKeys)],
) -> bool {
    let of_rule = || all.iter().filter(|(_, its)| its.rule == wanted.rule);
    let last = of_rule().find(|(at, _)| at == place).map(|(_, last)| last);
    let was_switched = from.is_some() || of_rule().any(|(_, its)| its.keys.is_some());
    has_changed(wanted, last, was_switched)
}

/// What the configuration wanted before (`last`; nothing: it is new here) says whether it has changed, or others have switched meanwhile;
/// `was_switched`: ever.
fn has_changed(wanted: &WantedKeys, last: Option<&WantedKeys>, was_switched: bool) -> bool {
    match last {
        Some(last) => last != wanted,
        // Whoever comes new to others' tables takes none of them back, or over again.
        None => !was_switched,
    }
}

/// Where keys come from, for people.
pub(super) fn named(keys: Option<&KeySpace>) -> String {
    match keys {
        Some(keys) => format!("\"{keys}\""),
        None => "native auto-increment".to_owned(),
    }
}

/// The same keys once more for a rule in force, where a server behind a listener is none of those on which they are: whatever this
/// program's configuration says, it serves by what is in force.
pub(super) fn repeated(
    rule: &RuleName,
    keys: Option<KeySpace>,
    on_unknown_servers: &BTreeSet<RuleName>,
) -> Option<Change> {
    if !on_unknown_servers.contains(rule) {
        return None;
    }
    Some(Change {
        rule: rule.clone(),
        from: keys.clone(),
        to: keys,
    })
}

/// Says so, once for each rule for as long as it is so: `told` are those of which it was said.
pub(super) fn tell_repeated(on_unknown_servers: BTreeSet<RuleName>, told: &mut BTreeSet<RuleName>) {
    for rule in on_unknown_servers.difference(told) {
        tracing::warn!(
            rule = rule.tables,
            "a server behind a listener is none of those on which the keys were brought into force, or a table has ids of its own: the \
             switch is repeated"
        );
    }
    *told = on_unknown_servers;
}

/// Those changes that must go together with one of them, since they share keys that are left or come: each has its turn.
pub(super) fn one_of_groups(changes: Vec<Change>, turn: usize) -> Vec<Change> {
    let mut groups: Vec<Vec<Change>> = Vec::new();
    for change in changes {
        let shares = |other: &Change| {
            let of_other = [&other.from, &other.to];
            let mut own = [&change.from, &change.to].into_iter();
            own.any(|keys| keys.is_some() && of_other.contains(&keys))
        };
        let (mut with, without): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|group| group.iter().any(shares));
        groups = without;
        let mut joined: Vec<Change> = with.drain(..).flatten().collect();
        joined.push(change);
        groups.push(joined);
    }
    let count = groups.len().max(1);
    groups.into_iter().nth(turn % count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;
    use keywright_store::switch::{Change, KeySpace, RuleName, WantedKeys};

    use super::{has_changed, is_news, one_of_groups};

    fn wanted(tag: Option<&str>) -> WantedKeys {
        WantedKeys {
            rule: RuleName {
                tables: "shop.t".to_owned(),
                column: "id".to_owned(),
            },
            keys: tag.map(|tag| KeySpace::Tag(Tag::parse(tag).unwrap())),
        }
    }

    #[test]
    fn rules_that_share_keys_go_together() {
        let space = |tag: &str| KeySpace::Tag(Tag::parse(tag).unwrap());
        let change = |table: &str, from: Option<&str>, to: &str| Change {
            rule: RuleName {
                tables: table.to_owned(),
                column: "id".to_owned(),
            },
            from: from.map(space),
            to: Some(space(to)),
        };
        let changes = vec![
            change("1", None, "a"),
            change("2", None, "b"),
            change("3", Some("c"), "a"),
            change("4", Some("d"), "e"),
            change("5", Some("e"), "d"),
        ];
        let mut seen = Vec::new();
        for turn in 0..4 {
            let group = one_of_groups(changes.clone(), turn);
            let tables: Vec<String> = group.into_iter().map(|its| its.rule.tables).collect();
            seen.push(tables.join(" "));
        }
        assert_eq!(seen[0], seen[3]);
        seen.truncate(3);
        seen.sort();
        assert_eq!(seen, ["1 3", "2", "4 5"]);
        assert!(one_of_groups(Vec::new(), 7).is_empty());
    }

    #[test]
    fn only_what_is_new_in_a_configuration_is_switched() {
        let (native, a, b) = (wanted(None), wanted(Some("a")), wanted(Some("b")));
        for (wanted, last, was_switched, is_new) in [
            // It starts again with its old file, and another program has switched.
            (&a, Some(&a), true, false),
            (&native, Some(&native), true, false),
            // Its file has changed.
            (&a, Some(&native), false, true),
            (&b, Some(&a), true, true),
            (&native, Some(&a), true, true),
            // It is new here.
            (&a, None, false, true),
            (&a, None, true, false),
            (&native, None, true, false),
        ] {
            let found = has_changed(wanted, last, was_switched);
            assert_eq!(found, is_new, "{wanted:?} {last:?}");
        }
    }

    #[test]
    fn a_new_file_takes_no_table_that_was_ever_switched() {
        let (native, a, b) = (wanted(None), wanted(Some("a")), wanted(Some("b")));
        let mut other = wanted(Some("a"));
        other.rule.tables = "shop.other".to_owned();
        let at = |place: &str, wanted: &WantedKeys| (place.to_owned(), wanted.clone());
        for (all, from, is_new) in [
            (vec![], None, true),
            (vec![at("here", &other)], None, true),
            (vec![], Some(&b), false),
            // Others have had keys, and gave them back.
            (vec![at("there", &b)], None, false),
            (vec![at("there", &native)], None, true),
            (vec![at("there", &b), at("here", &native)], None, true),
            (vec![at("here", &a)], Some(&b), false),
        ] {
            let from = from.and_then(|from: &WantedKeys| from.keys.as_ref());
            let found = is_news(("here", &a), from, &all);
            assert_eq!(found, is_new, "{all:?} {from:?}");
        }
    }
}
