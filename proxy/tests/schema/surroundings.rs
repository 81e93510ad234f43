//! Each finding about what is around tables: what is in the way of a switch, programs, accounts.

use keywright_proxy::schema::{Accounts, Denied, Filter, Program, Snapshot, Source, Unshown};

use crate::build::{config, counted, program, surroundings, switch, with_rules};
use crate::told::{NONE, told_of};

#[test]
fn what_is_in_the_way_of_a_switch_is_told() {
    let config = config("segment:orders", "");
    let of = |change: &dyn Fn(&mut Snapshot)| told_of(&config, |snapshot| change(snapshot));
    let no_switch = "W no table can be switched over to keys, or back:";
    let source = |is_running: bool, only: &[&str]| Source {
        server_id: Some(2),
        at: "h:3306".to_owned(),
        is_running,
        filter: Filter {
            only: only.iter().map(ToString::to_string).collect(),
            ..Filter::default()
        },
    };
    let replicates = |source: Source, replica: u64| {
        of(&|snapshot| {
            let replication = &mut switch(snapshot).replication;
            replication.sources = Some(vec![source.clone()]);
            replication.replicas.insert(replica);
        })
    };
    let starts = |told: Vec<String>, what: &str| {
        let is_it = told.len() == 1 && told[0].starts_with(&format!("{no_switch} {what}"));
        assert!(is_it, "{what}: {told:?}");
    };
    starts(
        of(&|snapshot| switch(snapshot).replication.read_only = true),
        "the server is read_only",
    );
    starts(
        replicates(source(true, &[]), 3),
        "the server is a replica of h:3306, and not read_only: ",
    );
    starts(
        replicates(source(true, &["shop"]), 2),
        "the server and h:3306 are replicas of each other: ",
    );
    assert_eq!(replicates(source(true, &["log"]), 2), NONE);
    assert_eq!(replicates(source(false, &[]), 2), NONE);
    starts(
        of(&|snapshot| switch(snapshot).replication.galera_nodes = Some(3)),
        "the server is one of 3 nodes of a Galera cluster: ",
    );
    starts(
        of(&|snapshot| switch(snapshot).replication.group_primaries = Some(2)),
        "the server is one of 2 primaries of a replication group: ",
    );
    starts(
        of(&|snapshot| switch(snapshot).replication.prepared = Some(1)),
        "1 XA transaction(s) are prepared",
    );
    let alone = of(&|snapshot| {
        switch(snapshot).replication.galera_nodes = Some(1);
        switch(snapshot).replication.group_primaries = Some(1);
    });
    assert_eq!(alone, NONE);
    let standby = of(&|snapshot| {
        switch(snapshot).replication.read_only = true;
        switch(snapshot).replication.sources = Some(vec![source(true, &[])]);
    });
    starts(standby, "the server is read_only");
}

#[test]
fn what_the_account_may_not_do_or_see_is_told() {
    let config = config("segment:orders", "");
    let told = told_of(&config, |snapshot| {
        let switch = switch(snapshot);
        let privileges = switch.privileges.as_mut().unwrap();
        privileges.denied.push(Denied {
            privilege: "ALTER",
            table: "`shop`.`orders`".to_owned(),
            message: "it says no".to_owned(),
        });
        privileges.unshown.push(Unshown {
            what: "events",
            privilege: "EVENT",
            schema: "`shop`".to_owned(),
        });
        (switch.has_uuid, switch.server_id) = (false, Some(1));
        (switch.replication.sources, switch.replication.prepared) = (None, None);
    });
    assert_eq!(
        told,
        [
            "W no table can be switched over to keys, or back: the listener's admin account lacks ALTER on `shop`.`orders` (GRANT ALTER ON \
             `shop`.* TO it): it says no",
            "N the listener's admin account may not see all events of `shop`, which takes EVENT: one that inserts fails at the fence",
            "N server_id is 1, as by default: servers of one id, host name, port and data directory are taken for one, so give each an id \
             of its own",
            "N the listener's admin account may not see whether rows come from another server, which takes REPLICATION CLIENT (MariaDB: \
             SLAVE MONITOR)",
            "N the listener's admin account may not see whether XA transactions are prepared, which takes XA_RECOVER_ADMIN on MySQL",
        ]
    );
}

#[test]
fn programs_that_insert_are_told() {
    for (more, then) in [
        ("", "fails at the fence"),
        ("fence = false", "takes a key of the server's own"),
    ] {
        let config = with_rules(&[("shop.orders", "segment:orders", more)]);
        let told = told_of(&config, |snapshot| {
            surroundings(snapshot).programs = vec![
                program(
                    "procedure",
                    "fill",
                    Some("INSERT INTO orders (a) VALUES (1)"),
                ),
                program("trigger", "log", Some("INSERT INTO log (a) VALUES (1)")),
                program("function", "hidden", None),
                program(
                    "event",
                    "nightly",
                    Some("INSERT INTO shop.orders (a) SELECT a FROM log"),
                ),
            ];
        });
        let inserts = |what: &str| {
            format!(
                "W {what} inserts into shop.orders: keywright does not see that, and what brings no key {then}"
            )
        };
        let unread = "W 1 routine(s) cannot be read with the privileges of the listener's admin url: whether they insert into tables \
                      with rules is not known";
        assert_eq!(
            told,
            [
                inserts("procedure shop.fill").as_str(),
                &inserts("event shop.nightly"),
                unread
            ]
        );
    }
}

#[test]
fn triggers_that_see_the_key_are_told() {
    let config = config("segment:orders", "");
    let told = told_of(&config, |snapshot| {
        // It has the fence.
        snapshot.tables = vec![counted("orders", "bigint", u64::MAX)];
        let before = |name: &str, table: &str, body: &str| Program {
            before_insert: Some(table.to_owned()),
            ..program("trigger", name, Some(body))
        };
        surroundings(snapshot).programs = vec![
            before("path", "orders", "SET NEW.a = CONCAT('/', NEW.ID)"),
            before("other", "orders", "SET NEW.a = 1"),
            before("elsewhere", "log", "SET NEW.a = NEW.id"),
            program("trigger", "after", Some("SET @a = NEW.id")),
        ];
    });
    assert_eq!(
        told,
        [
            "W trigger shop.path names NEW.id before a row goes into shop.orders: it sees the key there, and 0 where the server makes it"
        ]
    );
}

#[test]
fn accounts_that_may_not_come_from_here_are_told() {
    let config = config("segment:orders", "");
    let known = |count: usize| {
        told_of(&config, |snapshot| {
            let accounts = (0..count).map(|number| (format!("a{number}"), "h".to_owned()));
            snapshot.accounts = Some(Accounts::Known {
                seen_as: "proxy".to_owned(),
                elsewhere: accounts.collect(),
            });
        })
    };
    assert_eq!(known(0), NONE);
    let starts = "W to the server, whoever comes through the program comes from \"proxy\"; these accounts may not come from there:";
    assert_eq!(known(2), [format!("{starts} a0@h, a1@h")]);
    assert!(
        known(13)[0].ends_with(" a9@h, and 3 more"),
        "{:?}",
        known(13)
    );
    let hidden = told_of(&config, |snapshot| {
        snapshot.accounts = Some(Accounts::Hidden)
    });
    assert!(
        hidden[0].starts_with("W mysql.user cannot be read"),
        "{hidden:?}"
    );
}
