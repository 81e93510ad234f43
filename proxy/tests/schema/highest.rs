//! The highest ids that tables have.

use keywright_proxy::config::Config;
use keywright_proxy::schema::{Count, NativeIds};
use keywright_proxy::schema::{Snapshot, Table, Taken, counting, highest_ids};

use crate::build::{MARIADB, MYSQL, config, counted, plain, snapshot, with_rules};

fn with_largest(table: Table, largest: u64) -> Table {
    Table {
        largest: Some(largest),
        ..table
    }
}

fn told(config: &Config, snapshots: Vec<anyhow::Result<Snapshot>>) -> (Vec<String>, Vec<String>) {
    let taken: Vec<Taken<'_>> = snapshots
        .into_iter()
        .map(|snapshot| Taken {
            listener: &config.listeners[0],
            snapshot,
        })
        .collect();
    let (highest, unknown) = highest_ids(config, &taken);
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
