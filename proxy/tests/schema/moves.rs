//! Tables that a reload would move from one rule to another.

use std::collections::BTreeSet;

use anyhow::anyhow;
use keywright_core::Tag;
use keywright_proxy::config::Config;
use keywright_proxy::in_force::{KeySpaces, Moves, Source};
use keywright_proxy::schema::{FenceRecord, Severity, Snapshot, Taken, diagnose, left_fences};
use keywright_store::switch::{KeySpace, RuleName};

use crate::build::{MARIADB, MYSQL, counted, snapshot, with_rules};

const FENCE: u64 = u64::MAX;
const OBSERVE: &str = "mode = \"observe\"";
const ODD: &str = "offset = 1\nincrement = 2";

/// Rules in force, by their tables, with the tags of their keys.
type Known<'a> = &'a [(&'a str, &'a str)];

/// Tables, key, what else the rule says.
type Rules<'a> = &'a [(&'a str, &'a str, &'a str)];

fn name(tables: &str) -> RuleName {
    RuleName {
        tables: tables.to_owned(),
        column: "id".to_owned(),
    }
}

/// These rules have keys of these tags.
fn known(in_force: &[(&str, &str)]) -> KeySpaces {
    let rules = in_force.iter();
    rules
        .map(|(tables, tag)| {
            let source = Source {
                keys: Some(KeySpace::Tag(Tag::parse(tag).unwrap())),
                servers: BTreeSet::from(["here".to_owned()]),
            };
            (name(tables), source)
        })
        .collect()
}

/// What keeps a reload from being put in force on one server.
fn refusal(
    (before, after): (Rules<'_>, Rules<'_>),
    in_force: &[(&str, &str)],
    held: &[&str],
    snapshot: anyhow::Result<Snapshot>,
) -> Option<String> {
    let (before, after): (Config, Config) = (with_rules(before), with_rules(after));
    let known = known(in_force);
    let held = held.iter().map(|tables| name(tables)).collect();
    let moves = Moves::between(&before, &after, &[&known], held);
    moves.refusal(&[Taken {
        listener: &after.listeners[0],
        snapshot,
    }])
}

const ORDERS: (&str, &str, &str) = ("shop.orders", "segment:y", "");
const ORDERS_OBSERVE: (&str, &str, &str) = ("shop.orders", "segment:y", OBSERVE);
const ORDERS_STRIDE: (&str, &str, &str) = ("shop.orders", "stride:s", ODD);
const ORDERS_ALIKE: (&str, &str, &str) = ("shop.orders", "segment:z", "");
const ALL: (&str, &str, &str) = ("shop.*", "segment:z", "");
const ALL_OBSERVE: (&str, &str, &str) = ("shop.*", "segment:z", OBSERVE);

/// `shop.orders`, with an AUTO_INCREMENT.
fn orders(counter: u64) -> anyhow::Result<Snapshot> {
    Ok(snapshot(MYSQL, vec![counted("orders", "bigint", counter)]))
}

#[test]
fn a_table_that_goes_to_other_keys_keeps_a_reload_back() {
    let both = [("shop.orders", "y"), ("shop.*", "z")];
    let [orders_only, all_only] = [[both[0]], [both[1]]];
    let narrow_first: Rules<'_> = &[ORDERS, ALL];
    let wide_first: Rules<'_> = &[ALL, ORDERS];
    let first_of_both = "`shop`.`orders` would go from rule shop.orders.id (\"segment:y\") to rule shop.*.id (\"segment:z\") past the switch: \
                         set mode = \"observe\" first in shop.orders.id and in shop.*.id";
    let to_native = "would go from rule shop.*.id (\"segment:z\") to rule shop.orders.id (native auto-increment) past the switch: \
                     set mode = \"observe\" first in shop.*.id, with";
    let from_native = "would go from rule shop.orders.id (native auto-increment) to rule shop.*.id (\"segment:z\") past the switch and without a fence: \
                       set mode = \"observe\" first in shop.*.id, with";
    let to_stride =
        "would go from rule shop.*.id (\"segment:z\") to rule shop.orders.id (\"stride:s\")";
    let from_stride =
        "would go from rule shop.orders.id (\"stride:s\") to rule shop.*.id (\"segment:z\")";
    let cases: [(Rules<'_>, Rules<'_>, Known<'_>, u64, &str); 7] = [
        (narrow_first, wide_first, &both, FENCE, first_of_both),
        (&[ALL], narrow_first, &all_only, FENCE, to_native),
        // Whatever the file says that is to be done next.
        (&[ALL], &[ORDERS, ALL_OBSERVE], &all_only, FENCE, to_native),
        (&[ORDERS_OBSERVE, ALL], &[ALL], &all_only, 701, from_native),
        (
            narrow_first,
            wide_first,
            &orders_only,
            FENCE,
            "past the switch",
        ),
        (&[ALL], &[ORDERS_STRIDE, ALL], &all_only, FENCE, to_stride),
        (&[ORDERS_STRIDE, ALL], &[ALL], &all_only, FENCE, from_stride),
    ];
    for (before, after, in_force, counter, expected) in cases {
        let said = refusal((before, after), in_force, &[], orders(counter));
        let said = said.unwrap_or_default();
        assert!(said.contains(expected), "{before:?} {after:?}: {said}");
    }
}

#[test]
fn what_moves_no_table_to_other_keys_is_put_in_force() {
    let both = [("shop.orders", "y"), ("shop.*", "z")];
    let alike = [("shop.orders", "z"), ("shop.*", "z")];
    let all = [("shop.*", "z")];
    let cases: [(Rules<'_>, Rules<'_>, Known<'_>, u64); 9] = [
        // The mode is the switch's business.
        (&[ORDERS, ALL], &[ORDERS_OBSERVE, ALL_OBSERVE], &both, FENCE),
        (&[ORDERS_OBSERVE, ALL], &[ORDERS, ALL], &all, 701),
        // Native is native.
        (&[ORDERS, ALL], &[ALL, ORDERS], &[], 701),
        (&[ORDERS_OBSERVE, ALL], &[ALL], &[], 701),
        (&[], &[ALL], &[], 701),
        (&[ALL_OBSERVE], &[ORDERS, ALL_OBSERVE], &[], 701),
        // The same keys are the same.
        (&[ORDERS_ALIKE, ALL], &[ALL, ORDERS_ALIKE], &alike, FENCE),
        // Another program has switched the rule, and the table is one of it.
        (&[], &[ALL], &all, FENCE),
        // The way back of a rule that has come before one in force: the fence is still that one's.
        (&[ORDERS_OBSERVE, ALL], &[ALL], &all, FENCE),
    ];
    for (before, after, in_force, counter) in cases {
        let said = refusal((before, after), in_force, &[], orders(counter));
        assert_eq!(said, None, "{before:?} {after:?}");
    }
}

/// Who has it in force sets its fence, or a start takes it above its ids.
#[test]
fn a_table_without_fence_does_not_come_with_a_new_rule_in_force() {
    let in_force = [("shop.*", "z")];
    let said = refusal((&[], &[ALL]), &in_force, &[], orders(701)).unwrap_or_default();
    let expected = "`shop`.`orders` would get keys by rule shop.*.id (\"segment:z\"), which is in force and new to this program";
    assert!(said.starts_with(expected), "{said}");
    let open: Rules<'_> = &[("shop.*", "segment:z", "fence = false")];
    assert_eq!(refusal((&[], open), &in_force, &[], orders(701)), None);
}

#[test]
fn a_table_does_not_move_while_one_of_its_rules_is_switched() {
    let narrow_first: Rules<'_> = &[ORDERS_OBSERVE, ALL];
    let wide_first: Rules<'_> = &[ALL, ORDERS_OBSERVE];
    let rules = (narrow_first, wide_first);
    let said = refusal(rules, &[], &["shop.*"], orders(701)).unwrap_or_default();
    assert!(
        said.contains("send SIGHUP again when that is over"),
        "{said}"
    );
    assert_eq!(refusal(rules, &[], &["shop.other"], orders(701)), None);
}

#[test]
fn what_is_not_known_keeps_a_reload_back_only_where_a_table_may_move() {
    let away = || Err(anyhow!("it is away"));
    let all = [("shop.*", "z")];
    let said = refusal((&[ALL], &[ORDERS, ALL]), &all, &[], away()).unwrap_or_default();
    assert!(
        said.ends_with("is not known of 127.0.0.1:1: it is away"),
        "{said}"
    );
    let elsewhere = ("log.*", "segment:y", "");
    for after in [
        &[elsewhere, ALL][..],
        // What stands behind a rule takes nothing from it.
        &[ALL, ORDERS],
    ] {
        assert_eq!(refusal((&[ALL], after), &all, &[], away()), None);
    }
    assert_eq!(refusal((&[], &[ALL]), &all, &[], away()), None);
}

/// A program that was silent goes by what it knows, until it follows.
#[test]
fn a_table_does_not_move_while_anybody_goes_by_what_was_in_force() {
    let (before, after) = (with_rules(&[ALL]), with_rules(&[ORDERS, ALL]));
    let (was, is) = (known(&[("shop.*", "z")]), KeySpaces::new());
    for (known, is_refused) in [
        (&[&was, &is][..], true),
        (&[&is, &was], true),
        (&[&is], false),
    ] {
        let moves = Moves::between(&before, &after, known, BTreeSet::new());
        let said = moves.refusal(&[Taken {
            listener: &after.listeners[0],
            snapshot: orders(FENCE),
        }]);
        assert_eq!(said.is_some(), is_refused, "{said:?}");
    }
}

/// Who lifts it has native ids among the keys of programs with another order of the rules.
#[test]
fn a_fence_that_may_be_of_a_rule_behind_is_an_error() {
    let snapshot = orders(FENCE).unwrap();
    for (rules, severity, says) in [
        (
            &[ORDERS_OBSERVE, ALL][..],
            Severity::Error,
            "goes by rule shop.orders.id, which gives no keys; rule shop.*.id behind it does",
        ),
        (
            &[ORDERS_OBSERVE, ALL_OBSERVE],
            Severity::Warning,
            "has a fence, and its rule gives no keys",
        ),
    ] {
        let found = left_fences(&snapshot, &with_rules(rules), |_, _| true, |_| None);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].severity, severity, "{found:?}");
        assert!(found[0].message.contains(says), "{found:?}");
    }
}

/// Another file writes the rule another way. Whoever lifted the fence would do it under programs that give the table keys.
#[test]
fn a_fence_of_a_rule_in_force_is_not_to_be_lifted() {
    let snapshot = orders(FENCE).unwrap();
    let set_by = || {
        let keys = KeySpace::Tag(Tag::parse("y").unwrap());
        FenceRecord::SetBy(name("Shop.Ord*"), keys)
    };
    // No program lifts it, whatever the rule here is.
    let found = left_fences(
        &snapshot,
        &with_rules(&[ORDERS_OBSERVE]),
        |_, is_kept| is_kept,
        |_| Some(set_by()),
    );
    let [found] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(found.severity, Severity::Warning);
    let says = "`shop`.`orders` has its fence by rule Shop.Ord*.id (\"segment:y\"), which is in force: write the rule as it is there";
    assert!(found.message.contains(says), "{found:?}");
    assert!(!found.message.contains("release"), "{found:?}");
}

/// On MariaDB it has the counter that its fence would be, and no switch was ever near it.
#[test]
fn a_full_column_has_no_fence_that_could_be_lifted() {
    for (largest, is_full) in [(2_147_483_647, true), (7, false)] {
        let mut table = counted("orders", "int", 2_147_483_648);
        table.largest = Some(largest);
        let found = left_fences(
            &snapshot(MARIADB, vec![table]),
            &with_rules(&[ORDERS_OBSERVE]),
            // Programs would lift a fence.
            |_, is_kept| is_kept || !is_full,
            |_| None,
        );
        assert_eq!(found.len(), 1, "{found:?}");
        let message = &found[0].message;
        assert_eq!(message.contains("is full"), is_full, "{message}");
        assert_eq!(message.contains("lift the fence"), !is_full, "{message}");
    }
}

/// Nobody lifts it, and whoever did so at the end of the column would have the server make ids of rows that were deleted.
#[test]
fn what_looks_like_a_fence_that_was_lifted_may_be_the_end_of_a_column() {
    for (largest, says, says_not) in [
        (
            7,
            "then make the column larger. If the table has a fence again",
            "is full",
        ),
        (2_147_483_647, "is full", "lift"),
    ] {
        let mut table = counted("orders", "int", 2_147_483_648);
        table.largest = Some(largest);
        let found = left_fences(
            &snapshot(MARIADB, vec![table]),
            &with_rules(&[ORDERS_OBSERVE]),
            |_, is_kept| is_kept,
            |_| Some(FenceRecord::Lifted),
        );
        assert_eq!(found.len(), 1, "{found:?}");
        let message = &found[0].message;
        assert!(message.contains(says), "{message}");
        assert!(!message.contains(says_not), "{message}");
    }
}

#[test]
fn tables_for_which_the_order_of_rules_in_force_counts_are_named() {
    let snapshot = orders(FENCE).unwrap();
    for (rules, is_in_force, is_told) in [
        (&[ORDERS, ALL][..], true, true),
        (&[ORDERS, ALL], false, false),
        (&[ORDERS_ALIKE, ALL], true, false),
        (&[("log.*", "segment:y", ""), ALL], true, false),
    ] {
        let mut config = with_rules(rules);
        for rule in &mut config.rules {
            rule.servers = is_in_force.then(BTreeSet::new);
        }
        let found = diagnose(&snapshot, &config);
        let told = found.iter().any(|its| {
            let says = its
                .message
                .starts_with("several rules in force are for these");
            says && its.severity == Severity::Note && its.message.ends_with(": shop.orders")
        });
        assert_eq!(told, is_told, "{rules:?} {found:?}");
    }
}
