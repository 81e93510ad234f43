//! The highest ids that tables have.

use keywright_proxy::config::Config;
use keywright_proxy::schema::{Count, NativeIds};
use keywright_proxy::schema::{
    Highest, Snapshot, Table, Taken, Unknown, counting, highest_ids, highest_ids_of_new,
    highest_ids_of_unfenced,
};

use crate::build::{MARIADB, MYSQL, config, counted, plain, snapshot, with_rules};

fn with_largest(table: Table, largest: u64) -> Table {
    Table {
        largest: Some(largest),
        ..table
    }
}

fn taken(config: &Config, snapshots: Vec<anyhow::Result<Snapshot>>) -> Vec<Taken<'_>> {
    let snapshots = snapshots.into_iter();
    snapshots
        .map(|snapshot| Taken {
            listener: &config.listeners[0],
            snapshot,
        })
        .collect()
}

fn told(config: &Config, snapshots: Vec<anyhow::Result<Snapshot>>) -> (Vec<String>, Vec<String>) {
    lines(highest_ids(config, &taken(config, snapshots)))
}

fn lines((highest, unknown): (Vec<Highest>, Vec<Unknown>)) -> (Vec<String>, Vec<String>) {
    let highest = highest
        .iter()
        .map(|highest| format!("{}: {}, {highest}", highest.tag, highest.id));
    let unknown = unknown.into_iter().map(|unknown| unknown.what);
    (highest.collect(), unknown.collect())
}

#[test]
fn the_highest_is_of_rows_or_of_a_counter_and_says_which() {
    let config = with_rules(&[("shop.*", "segment:orders", ""), ("log.*", "uuid_v7", "")]);
    let fence = u64::MAX;
    for (table, expected) in [
        (
            with_largest(counted("t", "bigint", 42), 41),
            "orders: 41, the highest id in `shop`.`t`",
        ),
        (
            with_largest(counted("t", "bigint", 30), 41),
            "orders: 41, the highest id in `shop`.`t`",
        ),
        (
            with_largest(counted("t", "bigint", 100), 41),
            "orders: 99, the last id before the AUTO_INCREMENT of `shop`.`t`",
        ),
        // The fence is no counter.
        (
            with_largest(counted("t", "bigint", fence), 41),
            "orders: 41, the highest id in `shop`.`t`",
        ),
        (
            with_largest(plain("t", "bigint"), 7),
            "orders: 7, the highest id in `shop`.`t`",
        ),
        (
            with_largest(counted("t", "bigint", 1), 0),
            "orders: 0, the highest id in `shop`.`t`",
        ),
    ] {
        let (highest, unknown) = told(&config, vec![Ok(snapshot(MYSQL, vec![table]))]);
        assert_eq!(highest, [expected]);
        assert_eq!(unknown, [""; 0]);
    }
}

#[test]
fn the_highest_is_of_all_servers_and_what_is_not_known_is_told() {
    let config = config("segment:orders", "");
    let tables = vec![
        with_largest(plain("low", "bigint"), 5),
        plain("loose", "bigint"),
    ];
    let one = snapshot(MYSQL, tables);
    let other = snapshot(MARIADB, vec![with_largest(plain("high", "bigint"), 9)]);
    let away = anyhow::anyhow!("it is away").context("connecting");
    let (highest, unknown) = told(&config, vec![Ok(one), Ok(other), Err(away)]);
    assert_eq!(highest, ["orders: 9, the highest id in `shop`.`high`"]);
    assert_eq!(
        unknown,
        [
            "`shop`.`loose`: no index begins with `id`",
            "127.0.0.1:1: connecting: it is away",
        ]
    );
}

/// Whether the switch does not follow a rule, and which rule a table had before, decide it.
#[test]
fn a_reload_looks_at_tables_that_come_to_a_tag_only() {
    const ODD: &str = "offset = 1\nincrement = 2";
    const EVEN: &str = "offset = 2\nincrement = 2";
    const OBSERVE: &str = "offset = 1\nincrement = 2\nmode = \"observe\"";
    let orders = ("shop.orders", "stride:t", ODD);
    let bills = ("shop.bills", "stride:t", ODD);
    let all = ("shop.*", "stride:t", ODD);
    let (bills_9, orders_40) = (
        "t: 9, the highest id in `shop`.`bills`",
        "t: 40, the highest id in `shop`.`orders`",
    );
    for (before, now, expected) in [
        (&[orders][..], &[orders][..], None),
        (&[orders], &[orders, bills], Some(bills_9)),
        (&[], &[all], Some(orders_40)),
        (
            &[("shop.orders", "stride:t", OBSERVE)],
            &[orders],
            Some(orders_40),
        ),
        (
            &[orders],
            &[("shop.orders", "stride:t", OBSERVE), bills],
            Some(bills_9),
        ),
        (
            &[orders],
            &[("shop.orders", "stride:t", EVEN)],
            Some(orders_40),
        ),
        // The wider rule has had the other tables.
        (&[all], &[orders, bills], None),
        (&[("shop.bills", "uuid_v7", ""), all], &[all], Some(bills_9)),
        // The switch takes them over above their ids.
        (&[orders], &[("shop.*", "segment:u", "")], None),
    ] {
        let (before, now) = (with_rules(before), with_rules(now));
        let tables = vec![
            with_largest(counted("orders", "bigint", 41), 40),
            with_largest(counted("bills", "bigint", 10), 9),
        ];
        let taken = taken(&now, vec![Ok(snapshot(MYSQL, tables))]);
        let (highest, unknown) = lines(highest_ids_of_new(&now, &before, &taken));
        assert_eq!(highest, Vec::from_iter(expected));
        assert_eq!(unknown, [""; 0]);
    }
    let tables = vec![plain("loose", "bigint"), plain("names", "varchar(36)")];
    let away = Err(anyhow::anyhow!("it is away"));
    let (before, now) = (with_rules(&[]), with_rules(&[all]));
    let taken = taken(&now, vec![Ok(snapshot(MYSQL, tables)), away]);
    let (highest, unknown) = lines(highest_ids_of_new(&now, &before, &taken));
    assert_eq!(highest, [""; 0]);
    assert_eq!(
        unknown,
        [
            "`shop`.`loose`: no index begins with `id`",
            "127.0.0.1:1: it is away",
        ]
    );
}

/// Nothing else says then which tables had keys of a tag before.
#[test]
fn a_start_looks_at_tables_that_lack_the_fence_of_a_tag_only() {
    const ODD: &str = "offset = 1\nincrement = 2";
    let bills_9 = Some("t: 9, the highest id in `shop`.`bills`");
    let without = format!("{ODD}\nfence = false");
    let observing = format!("{ODD}\nmode = \"observe\"");
    for (rule, expected) in [
        (("shop.*", "stride:t", ODD), bills_9),
        (("shop.bills", "stride:t", ODD), bills_9),
        (("shop.orders", "stride:t", ODD), None),
        // Its tables are never told apart.
        (("shop.*", "stride:t", without.as_str()), None),
        (("shop.*", "stride:t", observing.as_str()), None),
        // The switch takes them over above their ids.
        (("shop.*", "segment:u", ""), None),
    ] {
        let config = with_rules(&[rule]);
        let tables = vec![
            with_largest(counted("orders", "bigint", u64::MAX), 40),
            with_largest(counted("bills", "bigint", 10), 9),
            with_largest(plain("apps", "bigint"), 70),
        ];
        let taken = taken(&config, vec![Ok(snapshot(MYSQL, tables))]);
        let highest = highest_ids_of_unfenced(&config, &taken);
        let (highest, _) = lines((highest, Vec::new()));
        assert_eq!(highest, Vec::from_iter(expected), "{rule:?}");
    }
}

#[test]
fn native_ids_are_counted_where_rules_observe() {
    let tables = vec![
        counted("t", "bigint", 42),
        counted("fenced", "bigint", u64::MAX),
        plain("u", "int"),
    ];
    let mut snapshot = snapshot(MYSQL, tables);
    let accounts = (0..12_u64).map(|number| (format!("a{number}@h"), number));
    snapshot.native = Some(NativeIds {
        server: "one".to_owned(),
        at: "now".to_owned(),
        own_host: "h".to_owned(),
        accounts: accounts.collect(),
    });
    let counted = counting(&snapshot, &config("segment:orders", "mode = \"observe\""));
    let expected = Count {
        rule: 0,
        table: "shop.t".to_owned(),
        next: 42,
    };
    assert_eq!(counted.counts, [expected]);
    assert_eq!(
        (counted.accounts.len(), counted.accounts[0].as_str()),
        (11, "a0@h (0)")
    );
    assert_eq!(counted.accounts[10], "and 2 more");
    let none = counting(&snapshot, &config("segment:orders", ""));
    assert_eq!(none, Default::default());
}
