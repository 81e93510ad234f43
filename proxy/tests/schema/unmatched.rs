//! Rules that have no table on any server: why, and which table was probably meant.

use std::collections::BTreeSet;

use keywright_proxy::schema::unmatched;

use crate::build::{MARIADB, MYSQL, plain, snapshot, with_rules};

#[test]
fn rules_without_a_table_on_any_server_are_told() {
    let config = with_rules(&[
        ("shop.orders", "segment:orders", ""),
        ("shop.lines", "segment:lines", ""),
        ("log.*", "uuid_v7", ""),
    ]);
    let one = snapshot(MYSQL, vec![plain("orders", "bigint")]);
    let other = snapshot(MARIADB, vec![plain("lines", "bigint")]);
    assert_eq!(unmatched(&config, &[&one]).len(), 2);
    assert_eq!(
        unmatched(&config, &[&one, &other]),
        [
            "no table matches \"log.*\" with a column \"id\" on any listener's server: are pattern and column right, and may the admin \
          account see the table?"
        ]
    );
    let hint = |table: &str| {
        let wrong = with_rules(&[(table, "uuid_v7", "")]);
        let said = unmatched(&wrong, &[&one]).concat();
        said.split_once("see the table?").unwrap().1.to_owned()
    };
    assert_eq!(
        [hint("`shop`.`orders`"), hint("shop.%"), hint("log.*")],
        [
            " Names in a rule stand without backticks: \"shop.orders\"",
            " In a rule * stands for any characters, not %: \"shop.*\"",
            ""
        ]
    );
}

#[test]
fn a_table_or_column_that_was_probably_meant_is_named() {
    let hint = |table: &str, column: &str| {
        let mut wrong = with_rules(&[(table, "uuid_v7", ""), ("shop.taken", "uuid_v7", "")]);
        column.clone_into(&mut wrong.rules[0].rule.column);
        let mut one = snapshot(MYSQL, vec![plain("taken", "bigint")]);
        let pattern = table.split_once('.').unwrap();
        match pattern == ("shop", "orders") {
            true => one.tables.push(plain("orders", "bigint")),
            false => one.others.push(("shop".to_owned(), "orders".to_owned())),
        }
        let other = snapshot(MYSQL, Vec::new());
        let said = unmatched(&wrong, &[&other, &one]).concat();
        said.split_once("see the table?").unwrap().1.to_owned()
    };
    for (table, column, meant) in [
        ("shop.order", "id", "\"shop.orders\""),
        ("Shop.Orders", "id", "\"shop.orders\""),
        ("shpo.ordres", "id", "\"shop.orders\""),
        ("warehouse.orders", "id", "\"shop.orders\""),
        ("shpo.*", "id", "\"shop.*\""),
        // With "shop" in place of "sho*" it would match as little.
        ("sho*.order?s", "id", "\"shop.orders\""),
        ("shop.orders", "idd", "column = \"id\""),
    ] {
        let hint = hint(table, column);
        assert_eq!(hint, format!(" Did you mean {meant}?"), "{table}");
    }
    for (table, column) in [
        // Another rule has it.
        ("shop.takne", "id"),
        ("shop.invoices", "id"),
        ("shop.inv*", "id"),
        ("shop.orders", "nr"),
    ] {
        assert_eq!(hint(table, column), "", "{table}");
    }
}

#[test]
fn a_rule_behind_one_that_takes_its_tables_is_told() {
    let mut config = with_rules(&[
        ("shop.*", "segment:orders", ""),
        ("shop.orders", "uuid_v7", ""),
    ]);
    let one = snapshot(MYSQL, vec![plain("orders", "bigint")]);
    assert_eq!(
        unmatched(&config, &[&one]),
        [
            "no table is left for rule shop.orders.id: the rule shop.*.id stands before it and takes all of them. Put the narrower \
          one first, or take one out"
        ]
    );
    config.rules[0].servers = Some(BTreeSet::new());
    let said = unmatched(&config, &[&one]).concat();
    let first = "As shop.*.id is in force, set mode = \"observe\" in it before you change that";
    assert!(said.ends_with(first), "{said}");
}
