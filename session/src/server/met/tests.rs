//! Which tables are asked about, and what is known of them.

use std::slice::from_ref;
use std::sync::Arc;

use super::{ListedTables, MET_MAX, MetTable, MetTables, Standing};

fn table(name: &str) -> MetTable {
    MetTable {
        server: Arc::from(b"s".as_slice()),
        schema: "d".to_owned(),
        name: name.to_owned(),
        column: "id".to_owned(),
    }
}

fn learn(met: &MetTables, name: &str, is_shown: bool) -> bool {
    met.learn(&table(name), is_shown, None)
}

/// A schema refresh has found these tables.
fn listed(names: &[&str]) -> ListedTables {
    ListedTables::new(b"s", false, names.iter().map(|name| ("d", *name, "id")))
}

#[test]
fn what_has_no_answer_is_not_shown() {
    let met = MetTables::default();
    let before = met.answers();
    assert_eq!(met.meet(&table("t")), Standing::Unanswered);
    assert_eq!(met.to_ask(false), [table("t")]);
    assert_eq!(met.meet(&table("t")), Standing::Unanswered);
    assert_eq!(met.answers(), before);
    assert!(!learn(&met, "t", true));
    assert_eq!(met.meet(&table("t")), Standing::Shown);
    assert_ne!(met.answers(), before, "who waits is told");
}

#[test]
fn what_was_not_shown_is_asked_about_again() {
    let met = MetTables::default();
    met.meet(&table("t"));
    met.meet(&table("u"));
    assert_eq!(met.to_ask(false), [table("t"), table("u")]);
    assert!(learn(&met, "t", false), "that is new");
    assert!(!learn(&met, "u", true));
    assert_eq!(met.meet(&table("t")), Standing::Unshown);
    assert_eq!(met.to_ask(false), []);
    assert_eq!(met.to_ask(true), [table("t"), table("u")]);
    assert!(!learn(&met, "t", false), "it is known");
    assert!(!learn(&met, "t", true));
    assert_eq!(met.meet(&table("t")), Standing::Shown);
}

/// Connections that are older than the table meet it for ever, and the server may be away meanwhile.
#[test]
fn what_was_shown_stays_so_until_there_is_another_answer() {
    let met = MetTables::default();
    met.meet(&table("t"));
    learn(&met, "t", true);
    for _ in 0..3 {
        // Nobody meets it.
        assert_eq!(met.to_ask(true), [table("t")]);
    }
    assert_eq!(met.meet(&table("t")), Standing::Shown);
    assert_eq!(met.to_ask(true), [table("t")]);
    assert!(learn(&met, "t", false));
    assert_eq!(met.meet(&table("t")), Standing::Unshown);
}

#[test]
fn what_a_schema_refresh_has_read_is_not_asked_about_without_need() {
    let met = MetTables::default();
    for name in ["listed", "gone", "young", "denied", "waits"] {
        met.meet(&table(name));
        if name != "waits" {
            learn(&met, name, name != "denied");
        }
    }
    met.to_ask(true);
    met.meet(&table("young"));
    met.meet(&table("waits"));
    met.settle(&listed(&["listed"]));
    assert_eq!(
        met.to_ask(true),
        [table("waits"), table("denied"), table("young")]
    );
}

#[test]
fn what_brought_no_answer_is_asked_about_again_when_it_is_met() {
    let met = MetTables::default();
    met.meet(&table("t"));
    let asked = met.to_ask(false);
    assert_eq!(asked, [table("t")]);
    met.end_question(&asked);
    assert_eq!(met.to_ask(false), [], "nobody waits for it");
    met.meet(&table("t"));
    assert_eq!(met.to_ask(false), asked);
    assert_eq!(met.to_ask(true), [table("t")]);
    met.end_question(&asked);
    assert_eq!(met.to_ask(true), [], "nobody has met it since");
    met.meet(&table("t"));
    assert_eq!(met.to_ask(false), [table("t")]);
}

/// Whoever waits meets it again with each answer about any table.
#[test]
fn nobody_asks_twice_at_once() {
    let met = MetTables::default();
    met.meet(&table("silent"));
    let asked = met.to_ask(false);
    assert_eq!(asked, [table("silent")]);
    for _ in 0..3 {
        met.meet(&table("silent"));
        assert_eq!(met.to_ask(false), []);
    }
    met.meet(&table("t"));
    assert_eq!(met.to_ask(false), [table("t")]);
    met.end_question(&asked);
    met.meet(&table("silent"));
    assert_eq!(met.to_ask(false), asked);
}

/// A refresh asks about all, which may take long.
#[test]
fn a_refresh_takes_nothing_from_statements_that_wait() {
    let met = MetTables::default();
    met.meet(&table("t"));
    met.meet(&table("u"));
    learn(&met, "u", false);
    assert_eq!(
        met.to_ask(true),
        [table("t"), table("u")],
        "what is waited for comes first"
    );
    assert_eq!(met.to_ask(false), [table("t")]);
}

#[test]
fn what_was_not_shown_stays_though_nobody_meets_it() {
    let met = MetTables::default();
    met.meet(&table("t"));
    learn(&met, "t", false);
    assert_eq!(met.to_ask(true), [table("t")]);
    met.settle(&listed(&["u"]));
    assert_eq!(met.to_ask(true), [table("t")]);
    assert_eq!(met.meet(&table("t")), Standing::Unshown);
}

/// It is noted when all servers have had their time, and a later question may have its answer by then.
#[test]
fn a_denial_that_comes_late_is_older_than_what_is_known() {
    let met = MetTables::default();
    met.meet(&table("t"));
    let began_at = met.answers();
    assert!(!learn(&met, "t", true));
    assert!(!met.learn(&table("t"), false, Some(began_at)));
    assert_eq!(met.meet(&table("t")), Standing::Shown);
    let began_at = met.answers();
    learn(&met, "u", true);
    assert!(met.learn(&table("t"), false, Some(began_at)));
    assert_eq!(met.meet(&table("t")), Standing::Unshown);
}

#[test]
fn what_was_never_met_is_not_learnt_and_who_waits_is_told() {
    let met = MetTables::default();
    let before = met.answers();
    assert!(!learn(&met, "t", false));
    assert_ne!(met.answers(), before);
    assert_eq!(met.meet(&table("t")), Standing::Unanswered);
}

#[test]
fn no_more_of_a_server_are_remembered_than_so_many() {
    let met = MetTables::default();
    for number in 0..=MET_MAX {
        met.meet(&table(&number.to_string()));
    }
    // Others may read meanwhile: nothing is written.
    let reading = met.servers.read();
    assert_eq!(met.meet(&table("one more")), Standing::Unanswered);
    drop(reading);
    assert_eq!(met.to_ask(true).len(), MET_MAX);
    let elsewhere = MetTable {
        server: Arc::from(b"other".as_slice()),
        ..table("t")
    };
    met.to_ask(false);
    met.meet(&elsewhere);
    assert_eq!(met.to_ask(false), [elsewhere]);
}

#[test]
fn what_has_its_answer_makes_room_and_nothing_gets_keys_unasked() {
    let met = MetTables::default();
    let all: Vec<MetTable> = (0..MET_MAX)
        .map(|number| table(&number.to_string()))
        .collect();
    for one in &all {
        met.meet(one);
        met.learn(one, false, None);
    }
    let other = table("one more");
    // Clients fill all of them in vain, and keep nobody from another.
    assert_eq!(met.meet(&other), Standing::Unanswered);
    assert_eq!(met.to_ask(false), from_ref(&other));
    met.learn(&other, true, None);
    assert_eq!(met.meet(&other), Standing::Shown);
    for number in 0..MET_MAX {
        met.meet(&table(&format!("later {number}")));
    }
    // They have taken its place.
    assert_eq!(met.meet(&other), Standing::Unanswered);
    assert!(!met.has(&other), "nobody has answered about the others");
}

#[test]
fn what_nobody_fills_makes_room_first_and_then_what_gets_no_keys() {
    let met = MetTables::default();
    let all: Vec<MetTable> = (0..MET_MAX)
        .map(|number| table(&number.to_string()))
        .collect();
    for (number, one) in all.iter().enumerate() {
        met.meet(one);
        met.learn(one, number == 0, None);
    }
    met.to_ask(true);
    for (number, one) in all.iter().enumerate() {
        if number != 5 {
            met.meet(one);
        }
    }
    for (name, gone) in [("first", 5), ("second", 1), ("third", 2)] {
        assert!(met.has(&all[gone]));
        met.meet(&table(name));
        assert!(met.has(&table(name)) && !met.has(&all[gone]), "{name}");
        assert!(met.has(&all[0]), "it gets keys");
    }
}
