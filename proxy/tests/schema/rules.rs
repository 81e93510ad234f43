//! The rules as sessions follow them.

use keywright_proxy::config::Config;
use keywright_proxy::schema::{Snapshot, TableFacts, facts, listed, rules};
use keywright_session::{KeyColumnState, ListedTables, Rules, TableTraits, ViewKey};

use crate::build::{
    MYSQL, column, config, context, counted, plain, snapshot, trigger, view, with_rules,
};

/// Of the first rule: whether it is watched, repeatable, signed.
fn flags(snapshot: &Snapshot, config: &Config) -> (bool, bool, bool) {
    let rules = rules(snapshot, config);
    let rule = &rules.rules()[0];
    let known = facts(snapshot, config).by_rule[0];
    let TableTraits {
        watched,
        repeatable,
        is_steady,
        is_signed,
        is_auto_increment,
    } = known;
    assert_eq!(
        (
            rule.watched,
            rule.repeatable,
            rule.is_steady,
            rule.is_signed,
            rule.is_auto_increment
        ),
        (watched, repeatable, is_steady, is_signed, is_auto_increment)
    );
    (watched, repeatable, is_signed)
}

#[test]
fn rules_have_what_their_tables_have_in_common() {
    let config = config("segment:orders", "");
    let of = |change: &dyn Fn(&mut Snapshot)| {
        let mut snapshot = snapshot(MYSQL, vec![counted("orders", "bigint", 1)]);
        change(&mut snapshot);
        flags(&snapshot, &config)
    };
    let with_trigger =
        |table: &str, sees| of(&|snapshot| context(snapshot).triggers.push(trigger(table, sees)));
    let with_view = |name: &str, definition: &str| {
        of(&|snapshot| {
            let view = view(name, &["id"], definition);
            context(snapshot).functions.insert("count_up".to_owned());
            context(snapshot).views.push(view);
        })
    };
    assert_eq!(of(&|_| {}), (false, true, true));
    assert_eq!(with_trigger("orders", true), (true, false, true));
    assert_eq!(with_trigger("orders", false), (false, false, true));
    let elsewhere = of(&|snapshot| {
        let mut trigger = trigger("orders", true);
        trigger.schema = "log".to_owned();
        context(snapshot).triggers.push(trigger);
    });
    assert_eq!(elsewhere, (false, true, true));
    let unlike = |kind: &str, engine: &str| {
        of(&|snapshot| {
            let mut table = plain("unlike", kind);
            table.engine = engine.to_owned();
            snapshot.tables.push(table);
        })
    };
    assert_eq!(unlike("bigint", "MyISAM"), (false, false, true));
    assert_eq!(unlike("bigint unsigned", "InnoDB"), (false, true, false));
    let over = "select `shop`.`orders`.`id` AS `id` from `shop`.`orders`";
    assert_eq!(with_view("over", over), (false, true, true));
    // The table behind it may be of any kind.
    let other = "select `log`.`t`.`id` AS `id` from `log`.`t`";
    assert_eq!(with_view("other", other), (false, false, false));
    let calls = "select `shop`.`count_up`(`shop`.`orders`.`id`) AS `id` from `shop`.`orders`";
    assert_eq!(with_view("calls", calls), (false, false, true));
    assert_eq!(with_view("unseen", ""), (false, false, false));
}

/// Triggers and engines do not matter to what a query leaves behind.
#[test]
fn queries_are_steady_unless_a_view_may_call_a_function() {
    let config = config("segment:orders", "");
    let is_steady = |definition: Option<&str>| {
        let mut table = counted("orders", "bigint", 1);
        table.engine = "MyISAM".to_owned();
        let mut snapshot = snapshot(MYSQL, vec![table]);
        let context = context(&mut snapshot);
        context.triggers.push(trigger("orders", true));
        context.functions.insert("count_up".to_owned());
        let view = definition.map(|definition| view("seen", &["id"], definition));
        context.views.extend(view);
        rules(&snapshot, &config).rules()[0].is_steady
    };
    assert!(is_steady(None));
    assert!(is_steady(Some(
        "select `log`.`t`.`id` AS `id` from `log`.`t`"
    )));
    assert!(!is_steady(Some("select `shop`.`count_up`(1) AS `id`")));
    assert!(!is_steady(Some("")));
}

/// Of a view, or of a table that came since, nobody knows.
#[test]
fn sessions_know_which_key_columns_are_auto_increment() {
    let config = config("segment:orders", "");
    let over = |table: &str| {
        let definition = format!("select `shop`.`{table}`.`id` AS `id` from `shop`.`{table}`");
        view(&format!("over_{table}"), &["id"], &definition)
    };
    let known = |tables| {
        let mut snapshot = snapshot(MYSQL, tables);
        context(&mut snapshot).views.push(over("orders"));
        let rules = rules(&snapshot, &config);
        ["orders", "notes", "new", "over_orders"].map(|name| {
            let (_, rule) = rules.find(b"shop", name.as_bytes()).unwrap();
            rule.is_auto_increment
        })
    };
    let counted = |name: &str| counted(name, "bigint", 1);
    assert_eq!(
        known(vec![counted("notes"), counted("orders")]),
        [true, true, false, false]
    );
    assert_eq!(
        known(vec![plain("notes", "bigint"), counted("orders")]),
        [true, false, false, false]
    );
    assert_eq!(known(vec![]), [false; 4]);
}

/// Of a view, or of a table that came since, the session asks the server.
#[test]
fn sessions_know_which_key_columns_are_not_null() {
    let config = config("uuid_v7", "");
    let table = |name: &str, is_not_null| {
        let mut table = plain(name, "char(36)");
        table.columns[0].kind.length = 36;
        table.columns[0].is_not_null = is_not_null;
        table
    };
    let mut snapshot = snapshot(MYSQL, vec![table("notes", false), table("orders", true)]);
    let other = "select `log`.`t`.`id` AS `id` from `log`.`t`";
    context(&mut snapshot)
        .views
        .push(view("seen", &["id"], other));
    let rules = rules(&snapshot, &config);
    for (name, known) in [
        ("orders", Some(true)),
        ("notes", Some(false)),
        ("seen", None),
        ("new", None),
    ] {
        assert_eq!(rules.is_not_null(b"shop", name.as_bytes()), known, "{name}");
    }
}

/// One table under a pattern does not change what holds for the others.
#[test]
fn each_table_has_its_own_traits() {
    let config = config("segment:orders", "");
    let mut old = plain("old", "bigint");
    old.engine = "MyISAM".to_owned();
    let tables = vec![
        plain("orders", "bigint"),
        plain("seen", "bigint"),
        plain("copied", "bigint"),
        plain("unsigned", "bigint unsigned"),
        old,
    ];
    let mut snapshot = snapshot(MYSQL, tables);
    let over = "select `shop`.`orders`.`id` AS `id` from `shop`.`orders`";
    context(&mut snapshot)
        .views
        .push(view("over", &["id"], over));
    context(&mut snapshot)
        .triggers
        .push(trigger("copied", false));
    let flags = |rules: &Rules, table: &str| {
        let (index, rule) = rules.find(b"shop", table.as_bytes()).unwrap();
        assert!(rules.may_match(None, table.as_bytes()));
        assert_eq!(rules.configured(index), 0);
        (rule.watched, rule.repeatable, rule.is_signed)
    };
    let known = rules(&snapshot, &config);
    assert_eq!(flags(&known, "orders"), (false, true, true));
    assert_eq!(flags(&known, "unsigned"), (false, true, false));
    assert_eq!(flags(&known, "old"), (false, false, true));
    assert_eq!(flags(&known, "copied"), (false, false, true));
    // Of those it is not known which table that is.
    assert_eq!(flags(&known, "later"), (false, false, false));
    assert_eq!(flags(&known, "over"), (false, false, false));
    // What another table's trigger inserts may start one that sees it.
    context(&mut snapshot).triggers.push(trigger("seen", true));
    let known = rules(&snapshot, &config);
    assert_eq!(flags(&known, "orders"), (false, true, true));
    assert_eq!(flags(&known, "seen"), (true, false, true));
    assert_eq!(flags(&known, "copied"), (true, false, true));
    assert_eq!(flags(&known, "later"), (true, false, false));
    // A table that no rule is for says nothing of those that have one.
    context(&mut snapshot)
        .triggers
        .retain(|trigger| trigger.table != "seen");
    let mut elsewhere = trigger("seen", true);
    elsewhere.schema = "log".to_owned();
    context(&mut snapshot).triggers.push(elsewhere);
    let known = rules(&snapshot, &config);
    assert_eq!(flags(&known, "copied"), (false, false, true));
}

#[test]
fn each_rule_has_its_own_facts() {
    let config = with_rules(&[
        ("shop.one", "segment:one", ""),
        ("shop.other", "segment:other", ""),
        ("shop.none", "segment:none", ""),
    ]);
    let tables = vec![counted("one", "bigint unsigned", 1), plain("other", "int")];
    let mut snapshot = snapshot(MYSQL, tables);
    context(&mut snapshot).triggers.push(trigger("other", true));
    let by_rule = facts(&snapshot, &config).by_rule;
    let as_flags = |of: &TableTraits| (of.watched, of.repeatable, of.is_signed);
    let flags: Vec<(bool, bool, bool)> = by_rule.iter().map(as_flags).collect();
    let expected = [
        (false, true, false),
        (true, false, true),
        // It has no table yet: of what type its column will be is not known.
        (false, true, false),
    ];
    assert_eq!(flags, expected);
}

#[test]
fn tables_and_views_are_in_the_snapshot() {
    let config = config("segment:orders", "");
    let mut keyless = plain("keyless", "int");
    keyless.columns.remove(0);
    let own = plain("keywright_segment", "bigint");
    let mut versioned = plain("versioned", "bigint");
    versioned.is_base = false;
    let tables = vec![
        plain("fits", "bigint"),
        keyless,
        own,
        plain("narrow", "int"),
        versioned,
    ];
    let mut snapshot = snapshot(MYSQL, tables);
    let over = "select `shop`.`fits`.`a` AS `a`,`shop`.`fits`.`id` AS `nr` from `shop`.`fits`";
    let other = "select `log`.`t`.`id` AS `id` from `log`.`t`";
    let bare = "select `log`.`t`.`a` AS `a` from `log`.`t`";
    context(&mut snapshot).views = vec![
        view("over", &["a", "nr"], over),
        view("other", &["id"], other),
        view("bare", &["a"], bare),
    ];
    let facts = facts(&snapshot, &config);
    let found: Vec<(&str, KeyColumnState)> = facts
        .tables
        .iter()
        .map(|table| (table.name.as_str(), table.key_column))
        .collect();
    assert_eq!(
        found,
        [
            ("keyless", KeyColumnState::Missing),
            ("fits", KeyColumnState::Present),
            ("narrow", KeyColumnState::TooNarrow),
            ("other", KeyColumnState::Present),
            ("bare", KeyColumnState::Missing),
        ]
    );
    let views: Vec<(&str, &ViewKey)> = facts
        .views
        .iter()
        .map(|view| (view.name.as_str(), &view.key))
        .collect();
    assert_eq!(views, [("over", &ViewKey::Column("nr".to_owned()))]);
    // Older connections learn of those that may get keys.
    context(&mut snapshot).identity = "uuid=u".to_owned();
    let with_key = ["fits", "narrow", "other"].map(|name| ("shop", name, "id"));
    assert_eq!(
        listed(&snapshot, &config),
        ListedTables::new(b"uuid=u", false, with_key.into_iter())
    );
    let rules = rules(&snapshot, &config);
    assert_eq!(
        rules.key_column_state(b"shop", b"narrow"),
        KeyColumnState::TooNarrow
    );
    assert_eq!(
        rules.key_column_state(b"shop", b"keywright_segment"),
        KeyColumnState::NoTable
    );
    let (_, through) = rules.find(b"shop", b"over").unwrap();
    assert_eq!(through.column, "nr");
}

#[test]
fn names_are_compared_as_the_server_compares_them() {
    let config = config("segment:orders", "");
    let mut table = plain("Orders", "bigint");
    table.schema = "Shop".to_owned();
    table.columns.push(column("ID", "int"));
    for lower_case in [false, true] {
        let mut snapshot = snapshot(MYSQL, vec![table.clone()]);
        snapshot.server.lower_case = lower_case;
        let facts = facts(&snapshot, &config);
        assert_eq!(facts.tables.len(), usize::from(lower_case));
        assert_eq!(facts.lower_case, lower_case);
    }
}

/// A snapshot of tables alone says nothing to sessions.
#[test]
fn of_what_was_not_asked_nothing_is_known() {
    let config = config("segment:orders", "");
    let mut snapshot = snapshot(MYSQL, vec![plain("orders", "bigint")]);
    snapshot.context = None;
    assert_eq!(facts(&snapshot, &config), TableFacts::default());
    assert_eq!(listed(&snapshot, &config), ListedTables::default());
    let rules = rules(&snapshot, &config);
    let rule = &rules.rules()[0];
    assert!(!rule.watched && !rule.repeatable && !rule.is_steady && !rule.is_signed);
    assert!(!rule.is_auto_increment);
    assert_eq!(
        rules.key_column_state(b"shop", b"elsewhere"),
        KeyColumnState::Present
    );
}
