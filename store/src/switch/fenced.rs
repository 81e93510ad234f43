//! Whose fence a table has, by what was recorded of it: pure.
//!
//! Behind a fence the counter of a table is gone. So its fence says that keys are above its ids only where that was seen to: by the switch, or when the
//! fence was set later. A table that comes with a fence, renamed out of another rule's pattern or restored from a dump, has a fence of which nothing
//! was recorded.

use super::space::KeySpace;
use super::state::{InForce, RuleName};

/// A table that has its fence by a rule, and keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedTable {
    /// Which server.
    pub server: String,
    /// The table's schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The rule.
    pub rule: RuleName,
    /// Where its keys come from: they are above all other ids that it had when that was recorded.
    pub keys: KeySpace,
}

/// What a table's fence says of its ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Keys are above all of them that are no such keys.
    Known,
    /// Nothing: the table has brought it.
    Brought,
    /// This other rule gives it these other keys, by the files of other programs or of those before.
    Others(RuleName, KeySpace),
}

/// What the fence of a table says that is to have keys by this rule. `recorded`: what the store has of that table. `rules`: what is in force.
pub fn origin(table: &FencedTable, recorded: Option<&FencedTable>, rules: &[InForce]) -> Origin {
    let Some(recorded) = recorded else {
        return Origin::Brought;
    };
    if recorded.keys == table.keys {
        return Origin::Known;
    }
    // Its keys are others now, and it was not there when they came into force.
    if recorded.rule == table.rule {
        return Origin::Brought;
    }
    match keys_in_force(recorded, rules) {
        Some(keys) if *keys != table.keys => Origin::Others(recorded.rule.clone(), keys.clone()),
        Some(_) | None => Origin::Brought,
    }
}

/// The keys that the rule gives on the table's server by which it has its fence; `None`: that rule is not in force there any more.
pub fn keys_in_force<'a>(recorded: &FencedTable, rules: &'a [InForce]) -> Option<&'a KeySpace> {
    let is_in_force =
        |rule: &&InForce| rule.rule == recorded.rule && rule.servers.contains(&recorded.server);
    rules.iter().find(is_in_force)?.keys.as_ref()
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;

    use super::{FencedTable, InForce, KeySpace, Origin, RuleName, keys_in_force, origin};

    fn space(tag: &str) -> KeySpace {
        KeySpace::Tag(Tag::parse(tag).unwrap())
    }

    fn rule(tables: &str) -> RuleName {
        RuleName {
            tables: tables.to_owned(),
            column: "id".to_owned(),
        }
    }

    fn fenced((tables, tag): (&str, &str)) -> FencedTable {
        FencedTable {
            server: "here".to_owned(),
            schema: "shop".to_owned(),
            table: "orders".to_owned(),
            rule: rule(tables),
            keys: space(tag),
        }
    }

    fn in_force((tables, tag, server): (&str, &str, &str)) -> InForce {
        InForce {
            rule: rule(tables),
            keys: (!tag.is_empty()).then(|| space(tag)),
            next: None,
            above: None,
            servers: vec![server.to_owned()],
        }
    }

    #[test]
    fn a_fence_is_of_the_rule_in_force_by_which_it_was_recorded() {
        for (rule, is_its) in [
            (("shop.o*", "two", "here"), true),
            // Another tag by now.
            (("shop.o*", "three", "here"), true),
            (("shop.o*", "", "here"), false),
            (("shop.o*", "two", "there"), false),
            (("shop.*", "two", "here"), false),
        ] {
            let rules = [in_force(rule)];
            let found = keys_in_force(&fenced(("shop.o*", "two")), &rules);
            let its = is_its.then(|| space(rule.1));
            assert_eq!(found, its.as_ref(), "{rule:?}");
        }
    }

    #[test]
    fn a_fence_says_of_ids_what_was_recorded_with_it() {
        let others = |tag: &str| Origin::Others(rule("shop.o*"), space(tag));
        for (recorded, of_other, expected) in [
            (None, ("shop.o*", "two", "here"), Origin::Brought),
            (
                Some(("shop.*", "one")),
                ("shop.o*", "two", "here"),
                Origin::Known,
            ),
            // It was not there when its rule went over to another tag.
            (
                Some(("shop.*", "old")),
                ("shop.o*", "two", "here"),
                Origin::Brought,
            ),
            // The rules are in another order by the file that this is read by.
            (
                Some(("shop.o*", "two")),
                ("shop.o*", "two", "here"),
                others("two"),
            ),
            (
                Some(("shop.o*", "two")),
                ("shop.o*", "three", "here"),
                others("three"),
            ),
            // Rules with the same keys may be in any order.
            (
                Some(("shop.o*", "one")),
                ("shop.o*", "one", "here"),
                Origin::Known,
            ),
            (
                Some(("shop.o*", "one")),
                ("shop.o*", "two", "here"),
                Origin::Known,
            ),
            (
                Some(("shop.o*", "two")),
                ("shop.o*", "one", "here"),
                Origin::Brought,
            ),
            // The other rule gives it none.
            (
                Some(("shop.o*", "two")),
                ("shop.o*", "", "here"),
                Origin::Brought,
            ),
            (
                Some(("shop.o*", "two")),
                ("shop.o*", "two", "there"),
                Origin::Brought,
            ),
            (
                Some(("shop.o*", "two")),
                ("shop.or*", "two", "here"),
                Origin::Brought,
            ),
        ] {
            let recorded = recorded.map(fenced);
            let rules = [in_force(("shop.*", "one", "here")), in_force(of_other)];
            let found = origin(&fenced(("shop.*", "one")), recorded.as_ref(), &rules);
            assert_eq!(found, expected, "{recorded:?} {of_other:?}");
        }
    }
}
