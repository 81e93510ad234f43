//! Each finding about tables out of a snapshot that has what it is about, and none out of one that has not.

use keywright_proxy::config::Config;
use keywright_proxy::schema::{ColumnType, ListedView, Reference, diagnose, unfenced};

use crate::build::{MARIADB, MYSQL, config, context, counted, plain, snapshot, surroundings, view};
use crate::told::{NONE, told, told_of};

/// Keys that the switch has nothing to do with.
const STRIDE: &str = "stride:orders";
const STRIDE_OF_1: &str = "offset = 1\nincrement = 1";

#[test]
fn nothing_is_said_of_what_is_right() {
    for key in ["segment:orders", "uuid_v7:bytes16"] {
        let mut snapshot = snapshot(MYSQL, vec![plain("orders", "bigint")]);
        if key != "segment:orders" {
            snapshot.tables[0].columns[0].kind.name = "binary(16)".to_owned();
        }
        assert_eq!(told(&snapshot, &config(key, "")), NONE);
    }
    // Nor of a server that was not asked for more than tables.
    let config = config("segment:orders", "");
    let bare = told_of(&config, |snapshot| {
        (snapshot.context, snapshot.surroundings) = (None, None);
    });
    assert_eq!(bare, NONE);
}

#[test]
fn the_fence_is_missing_and_why() {
    let behind = "inserts that no program sees take keys of the server's own";
    let fence = |more: &str| config(STRIDE, &format!("{STRIDE_OF_1}\n{more}"));
    let of = |config: &Config, engine: &str, refused: Option<&str>| {
        let mut table = counted("orders", "bigint", 7);
        table.engine = engine.to_owned();
        table.fence_refused = refused.map(str::to_owned);
        let snapshot = snapshot(MYSQL, vec![table]);
        (told(&snapshot, config), unfenced(&snapshot, config))
    };
    let switched = config("segment:orders", "");
    let (told, missing) = of(&switched, "InnoDB", None);
    assert_eq!(
        told,
        [format!("W `shop`.`orders` has no fence yet: {behind}")]
    );
    assert_eq!(missing, 1);
    let alter = "ALTER TABLE `shop`.`orders` AUTO_INCREMENT = 18446744073709551615";
    let has_none = format!("W `shop`.`orders` has no fence; {alter}: {behind}");
    let wanted_so = format!(
        "W `shop`.`orders` has no fence, as its rule says (fence = false): {behind}, which may come a second time"
    );
    for (more, said, expected) in [
        ("fence = true", &has_none, 1),
        ("fence = false", &wanted_so, 0),
    ] {
        let (told, missing) = of(&fence(more), "InnoDB", None);
        assert_eq!(told, [said.as_str()], "{more}");
        assert_eq!(missing, expected, "{more}");
    }
    let switched = config("segment:orders", "fence = false");
    assert_eq!(of(&switched, "InnoDB", None), (vec![wanted_so], 0));
    let (told, missing) = of(&fence("fence = true"), "InnoDB", Some("it is late"));
    let refused = format!("W the fence of `shop`.`orders` cannot be applied: it is late: {behind}");
    assert_eq!(told, [refused]);
    assert_eq!(missing, 1);
    let (told, missing) = of(&fence("fence = true"), "MyISAM", None);
    assert_eq!(
        told,
        [
            "E `shop`.`orders` is MyISAM, and the fence needs InnoDB: ALTER TABLE `shop`.`orders` ENGINE = InnoDB, or write fence = false in \
          the table's rule, and ids of the server's own go on to come beside the keys"
        ]
    );
    assert_eq!(missing, 1);
    let observes = config("segment:orders", "mode = \"observe\"");
    let (told, missing) = of(&observes, "MyISAM", None);
    assert_eq!(
        told,
        [
            "W `shop`.`orders` is MyISAM, and the fence needs InnoDB. While its rule observes, that does no harm. Before it is to give keys: \
             ALTER TABLE `shop`.`orders` ENGINE = InnoDB, or write fence = false in the table's rule"
        ]
    );
    assert_eq!(missing, 0);
    let (told, missing) = of(&fence("fence = false"), "MyISAM", None);
    let engine = format!("W `shop`.`orders` is MyISAM, and the fence needs InnoDB: {behind}");
    assert_eq!(told, [engine]);
    assert_eq!(missing, 0);
    let (told, missing) = of(
        &config(STRIDE, "offset = 1\nincrement = 1\nmode = \"observe\""),
        "InnoDB",
        None,
    );
    assert_eq!(told, NONE);
    assert_eq!(missing, 0);
}

#[test]
fn partitions_lose_the_fence_on_mariadb() {
    let config = config("segment:orders", "");
    let of = |server: &str, kind: &str| {
        let mut table = counted("orders", kind, 7);
        table.is_partitioned = true;
        told(&snapshot(server, vec![table]), &config).join("\n")
    };
    let lost = "E `shop`.`orders` is partitioned, and MariaDB loses the fence of a partitioned table whose key is BIGINT UNSIGNED: \
                ALTER TABLE `shop`.`orders` MODIFY `id` BIGINT NOT NULL AUTO_INCREMENT, or write fence = false";
    let removed = "MariaDB removes the fence";
    for (server, kind, is_lost, is_removed) in [
        (MARIADB, "bigint unsigned", true, false),
        (MARIADB, "bigint", false, true),
        (MARIADB, "int unsigned", false, true),
        (MYSQL, "bigint unsigned", false, false),
    ] {
        let told = of(server, kind);
        assert_eq!(told.contains(lost), is_lost, "{server} {kind}: {told}");
        assert_eq!(
            told.contains(removed),
            is_removed,
            "{server} {kind}: {told}"
        );
    }
}

#[test]
fn of_many_tables_with_the_same_finding_some_are_named_and_all_counted() {
    let config = config("segment:orders", "");
    let of = |tables: usize| {
        let names = (1..=tables).map(|number| format!("orders_{number}"));
        let tables = names.map(|name| counted(&name, "bigint", 7));
        let mut tables: Vec<_> = tables.collect();
        tables.push(plain("narrow", "int"));
        diagnose(&snapshot(MYSQL, tables), &config)
    };
    let behind = "inserts that no program sees take keys of the server's own";
    assert_eq!(of(3).len(), 4);
    let told = of(40);
    let messages: Vec<&str> = told.iter().map(|of| of.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].starts_with("shop.narrow.id is int"));
    assert_eq!(
        messages[1],
        format!(
            "`shop`.`orders_1` has no fence yet: {behind}. The same of `shop`.`orders_2`, `shop`.`orders_3`, `shop`.`orders_4` and 36 more"
        )
    );
    assert_eq!(told[1].tables.len(), 40);
}

#[test]
fn a_fence_stands_where_each_server_keeps_it() {
    let config = config("segment:orders", "");
    let of = |version: &str, kind: &str, counter: u64| {
        let snapshot = snapshot(version, vec![counted("orders", kind, counter)]);
        (unfenced(&snapshot, &config), told(&snapshot, &config))
    };
    assert_eq!(of(MYSQL, "bigint", u64::MAX), (0, Vec::new()));
    assert_eq!(of(MARIADB, "bigint", u64::MAX).0, 1);
    let (missing, told) = of(MARIADB, "bigint", 1 << 63);
    assert_eq!(missing, 0);
    assert_eq!(
        told,
        [
            "N where an INSERT IGNORE reaches these past the programs, the server leaves the row out, with warning 167 and no error: shop.orders"
        ]
    );
    assert_eq!(of(MARIADB, "bigint unsigned", u64::MAX), (0, Vec::new()));
}

#[test]
fn columns_without_room_are_left_out() {
    for (more, until) in [
        (
            "",
            "until then inserts that need a larger key fail there (1264), or get none (1235)",
        ),
        ("mode = \"observe\"", "until then it cannot be switched on"),
    ] {
        let config = config("segment:orders", more);
        let told = told_of(&config, |snapshot| {
            snapshot.tables[0].columns[0].kind.name = "int".to_owned();
        });
        let lack =
            "is int, which has no room for keys of 63 bits: make it bigint, or lower bits_max";
        assert_eq!(told, [format!("L shop.orders.id {lack}; {until}")]);
    }
    let refers = |column: &str, kind: &str| {
        let config = config("segment:orders", "");
        told_of(&config, |snapshot| {
            surroundings(snapshot).references.push(Reference {
                to: ["SHOP", "Orders", column].map(str::to_owned),
                from: ["shop", "lines", "order_id"].map(str::to_owned),
                kind: ColumnType {
                    name: kind.to_owned(),
                    length: 0,
                },
            });
        })
    };
    assert_eq!(
        refers("id", "int unsigned"),
        [
            "L shop.lines.order_id, which refers to shop.orders.id, is int unsigned, which has no room for keys of 63 bits: make it \
          bigint, or lower bits_max"
        ]
    );
    assert_eq!(refers("id", "bigint"), NONE);
    assert_eq!(refers("a", "int"), NONE);
}

#[test]
fn tables_and_views_without_the_column_are_named_once_for_a_rule() {
    let config = config("segment:orders", "");
    let told = told_of(&config, |snapshot| {
        for name in ["log", "notes", "keywright_segment"] {
            let mut table = plain(name, "bigint");
            table.columns.remove(0);
            snapshot.tables.push(table);
        }
        let elsewhere = "select `log`.`t`.`a` AS `a` from `log`.`t`";
        context(snapshot).views = vec![view("report", &["a"], elsewhere)];
    });
    assert_eq!(
        told,
        [
            "W no column \"id\", so that \"shop.*\" is not for them: shop.log, shop.notes, shop.report"
        ]
    );
}

/// Which is so where `admin` lacks SELECT.
#[test]
fn tables_whose_columns_are_not_seen_are_errors() {
    let config = config("segment:orders", "");
    let told = told_of(&config, |snapshot| {
        let mut table = plain("hidden", "bigint");
        table.columns.clear();
        snapshot.tables.push(table);
    });
    assert_eq!(
        told,
        [
            "E a rule matches shop.hidden, and the listener's admin url sees no column of it: grant SELECT on its schema, or keys are issued \
          that it has"
        ]
    );
}

#[test]
fn views_through_which_rows_get_no_key_are_told() {
    let over = "select `shop`.`orders`.`a` AS `a` from `shop`.`orders`";
    let elsewhere = "select `log`.`t`.`id` AS `id` from `log`.`t`";
    let of = |more: &str, name: &str, column: &str, definition: &str| {
        told_of(&config("segment:orders", more), |snapshot| {
            context(snapshot).views = vec![view(name, &[column], definition)];
        })
    };
    let through = "an INSERT through shop.v, a view that does not show the key, gets no key and";
    assert_eq!(of("", "v", "a", over), [format!("W {through} is refused")]);
    assert_eq!(
        of("on_unsupported = \"pass\"", "v", "a", over),
        [format!("W {through} is passed on without one")]
    );
    assert_eq!(
        of("", "v", "id", elsewhere),
        [
            "W shop.v matches a rule and is a view, of no table with one: what it shows as id gets keys, and has no fence"
        ]
    );
    let unseen = of("", "v", "a", "");
    assert_eq!(
        unseen[0],
        "W shop.v and 0 more views may not be seen, which takes SHOW VIEW: an INSERT through one gets no key from the program, and \
         INSERT … SELECT and LOAD DATA are not tried twice"
    );
}

#[test]
fn views_that_call_functions_are_told() {
    let of = |more: &str, definitions: &[&str]| {
        told_of(&config("segment:orders", more), |snapshot| {
            let context = context(snapshot);
            context.functions.insert("count_up".to_owned());
            let views = ["v", "w"].iter().zip(definitions);
            // No rule matches them.
            let views = views.map(|(name, definition)| ListedView {
                schema: "log".to_owned(),
                ..view(name, &["a"], definition)
            });
            context.views = views.collect();
        })
    };
    let calls = "select `log`.`count_up`(1) AS `a` from `log`.`t`";
    let plain = "select `log`.`t`.`a` AS `a` from `log`.`t`";
    let refused = "W views call stored functions, or others whose effect stays, so that INSERT … SELECT without a LIMIT of 64 at most, and LOAD DATA \
                   of a file of the server's, are refused on all tables with a rule";
    assert_eq!(of("", &[calls, plain]), [format!("{refused}: log.v")]);
    assert_eq!(
        of("", &[calls, "select nextval(`log`.`s`) AS `a`"]),
        [format!("{refused}: log.v, log.w")]
    );
    assert_eq!(of("", &[plain]), NONE);
    assert_eq!(of("on_unsupported = \"pass\"", &[calls]), NONE);
}

#[test]
fn settings_that_do_not_go_with_the_rules_are_told() {
    let strides = |increment: u64| config(STRIDE, &format!("offset = 1\nincrement = {increment}"));
    let of = |config: &Config, increment: u64| {
        told_of(config, |snapshot| {
            context(snapshot).settings.increment = increment
        })
    };
    let spaced = "W auto_increment_increment is 4: keys of one statement are spaced by it";
    let apart = "by which drivers compute the keys of several rows from the first";
    let left = "where no table counts natively any more, SET GLOBAL auto_increment_increment = 1, auto_increment_offset = 1, and in the server's \
                configuration";
    assert_eq!(
        of(&config("segment:orders", ""), 4),
        [format!("{spaced}; {left}")]
    );
    assert_eq!(of(&strides(4), 4), [spaced]);
    assert_eq!(
        of(&strides(4), 1),
        [format!(
            "W keys of shop.*.id are 4 apart, and auto_increment_increment is 1, {apart}: make it 4"
        )]
    );
    assert_eq!(
        of(
            &config("snowflake", "[snowflake]\nlayout = \"sonyflake\""),
            1
        ),
        [format!(
            "W keys of shop.*.id are 65536 apart, and auto_increment_increment is 1, {apart}: no value of it is right, so let clients \
             ask for them otherwise"
        )]
    );
    let told = told_of(&config("segment:orders", ""), |snapshot| {
        context(snapshot).settings.connect_timeout_s = 8;
    });
    assert_eq!(
        told,
        [
            "W connect_timeout is 8000 ms, and answer_ms_max 8000: after max_connect_errors clients that say nothing the server blocks the \
          program's address (1129). Make answer_ms_max smaller"
        ]
    );
    // A refresh does not ask for what only people need to know.
    let config = config("segment:orders", "");
    let refreshed = told_of(&config, |snapshot| {
        context(snapshot).settings.connect_timeout_s = 8;
        snapshot.surroundings = None;
    });
    assert_eq!(refreshed, NONE);
}
