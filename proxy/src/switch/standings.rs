//! What the store says of keys, whatever rules a program has.

use std::collections::BTreeSet;

use keywright_store::switch::{KeySpace, Phase, Standing};

/// Keys that are not to be given now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyStandings {
    /// An attempt is about them.
    pub(crate) held: BTreeSet<KeySpace>,
    /// Tables went over to them, and left them: native ids go on where they ended.
    pub(crate) left: BTreeSet<KeySpace>,
}

impl KeyStandings {
    pub(crate) fn of(standing: &Standing) -> Self {
        let in_force = |space: &KeySpace| {
            let mut rules = standing.rules.iter();
            rules.any(|rule| rule.keys.as_ref() == Some(space))
        };
        let mut generations = standing.generations.iter();
        let left = generations
            .by_ref()
            .filter(|(space, generation)| *generation > 0 && !in_force(space))
            .map(|(space, _)| space.clone());
        let left = left.collect();
        let rules = standing.rules.iter();
        let changing = rules.filter(|rule| standing.phase != Phase::None && rule.next.is_some());
        let spaces = changing.flat_map(|rule| [rule.keys.clone(), rule.next.clone().flatten()]);
        let held: BTreeSet<KeySpace> = spaces.flatten().collect();
        Self { held, left }
    }
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;
    use keywright_store::switch::{InForce, KeySpace, Phase, RuleName, Standing};

    use super::KeyStandings;

    fn tag(name: &str) -> KeySpace {
        KeySpace::Tag(Tag::parse(name).unwrap())
    }

    fn rule(tables: &str, keys: Option<KeySpace>, next: Option<Option<KeySpace>>) -> InForce {
        InForce {
            rule: RuleName {
                tables: tables.to_owned(),
                column: "id".to_owned(),
            },
            keys,
            next,
            above: None,
            servers: Vec::new(),
        }
    }

    #[test]
    fn keys_that_tables_have_left_or_are_about_to_are_not_given() {
        let mut standing = Standing {
            attempt: 3,
            phase: Phase::Holding,
            leader: None,
            age_ms: 0,
            rules: vec![
                rule("a.a", Some(tag("a")), None),
                rule("a.b", Some(tag("b")), Some(None)),
                rule("a.c", None, Some(Some(tag("c")))),
                rule("a.d", None, None),
            ],
            key_space_ids: Vec::new(),
            generations: vec![
                (tag("a"), 1),
                (tag("b"), 1),
                (tag("c"), 0),
                (tag("d"), 2),
                (tag("e"), 0),
                (KeySpace::Snowflake, 0),
            ],
            peers: Vec::new(),
        };
        let standings = KeyStandings::of(&standing);
        assert_eq!(standings.held, [tag("b"), tag("c")].into());
        assert_eq!(standings.left, [tag("d")].into());
        standing.phase = Phase::None;
        assert!(KeyStandings::of(&standing).held.is_empty());
    }
}
