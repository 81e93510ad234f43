//! `SELECT NEXT VALUE FOR` a table: keys before the INSERT.

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::{
    KeyColumnState, KeyRequest, Mode, OnExplicit, Rules, SchemaChanges, Session,
};

use super::rig::*;

const NEXT: &str = "SELECT NEXT VALUE FOR t";

/// Keys that nobody counts on from the first.
fn of(count: u64) -> KeyRequest {
    KeyRequest {
        rule: 0,
        count,
        contiguous: false,
    }
}

#[test]
fn the_servers_answer_is_the_key() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.probed(NEXT, "5");
    assert!(
        sent.ends_with("\x03SELECT 100 AS `NEXT VALUE FOR t`"),
        "{sent}"
    );
    assert_eq!(r.requests, [of(1)]);
    let answer = rows(&["100"]);
    assert!(r.answer(&answer).is_empty());
    assert_eq!(r.output(), answer);
    // What auto_increment_increment says of rows does not matter here.
    let sent = r.query("SELECT NEXT 3 VALUES FOR d.t AS id");
    assert!(has(
        &sent,
        "SELECT 101 AS `id` UNION ALL SELECT 102 UNION ALL SELECT 103"
    ));
    assert_eq!(r.requests.last(), Some(&of(3)));
}

#[test]
fn the_insert_that_brings_it_goes_out_as_it_is() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed(NEXT, "1");
    r.answer(&rows(&["100"]));
    r.output();
    let text = "INSERT INTO t (id, a) VALUES (100, 1)";
    assert!(has(&r.query(text), text));
}

#[test]
fn keys_that_are_no_numbers_are_asked_for_too() {
    let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
    let sent = r.probed(NEXT, "1");
    assert!(
        sent.ends_with("SELECT 'k0' AS `NEXT VALUE FOR t`"),
        "{sent}"
    );
}

#[test]
fn without_a_key_there_is_an_error() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.fail_keys = true;
    assert_eq!(r.probed(NEXT, "1"), "");
    assert!(has(&r.output(), "down"));
    r.fail_keys = false;
    assert!(has(&r.query(NEXT), "SELECT 101 AS"));
}

#[test]
fn too_many_are_refused() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    assert_eq!(r.probed("SELECT NEXT 1001 VALUES FOR t", "1"), "");
    assert!(has(&r.output(), "more than 1000 keys"));
    assert!(r.requests.is_empty());
    assert!(has(
        &r.query("SELECT NEXT 1000 VALUES FOR t"),
        "SELECT 1099"
    ));
}

#[test]
fn sequences_of_the_servers_are_its_own() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    for text in [
        "SELECT NEXT VALUE FOR other",
        "SELECT NEXT VALUE FOR t + 1",
        "SELECT NEXT VALUE FOR t FROM t",
    ] {
        assert!(r.probed(text, "1").ends_with(text), "{text}");
        r.answer(&rows(&["1"]));
        assert_eq!(r.output(), rows(&["1"]));
    }
    // It is no table with the rule's column, which is asked for.
    let mut r = rig_of_table(KeyColumnState::Missing);
    assert!(r.probed(NEXT, "1").contains("SELECT `id` FROM"));
    let no_column = packet(1, b"\xFF\x1E\x04#42S22Unknown column 'id'");
    assert!(has(&r.answer(&no_column), NEXT));
    assert!(r.requests.is_empty());
}

#[test]
fn tables_that_are_not_there_have_no_keys() {
    let mut r = rig_of_table(KeyColumnState::NoTable);
    assert!(r.probed(NEXT, "1").contains("SELECT `id` FROM"));
    let no_table = packet(1, b"\xFF\x7A\x04#42S02Table 'd.t' doesn't exist");
    assert!(has(&r.answer(&no_table), NEXT));
    assert!(r.requests.is_empty());
    // One that came since has.
    r.answer(&err());
    r.output();
    assert!(has(&r.query(NEXT), "SELECT `id` FROM"));
    assert!(has(&r.answer(&described(&["id"])), "SELECT 100 AS"));
}

#[test]
fn after_a_change_of_tables_it_is_asked_whether_the_column_is_still_there() {
    let no_column = packet(1, b"\xFF\x1E\x04#42S22Unknown column 'id'");
    let no_table = packet(1, b"\xFF\x7A\x04#42S02Table 'd.t' doesn't exist");
    for gone in [no_column, no_table] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let schema = Arc::new(SchemaChanges::default());
        let rules = Rules::new(vec![r.rule_in(Mode::Rewrite)], false);
        let rules = rules.with_schema(Arc::clone(&schema));
        r.s = Session::new(Arc::new(rules), r.facts());
        stmt_prepare(&mut r, NEXT, "1");
        r.answer(&prepared(7, 1));
        assert!(!r.say(&execute(7, &[])).is_empty());
        r.answer(&rows(&["100"]));
        r.output();
        // Another connection of the program drops the table, or its column.
        schema.note_defined();
        assert!(has(&r.say(&execute(7, &[])), "SELECT `id` FROM `d`.`t`"));
        assert!(r.answer(&gone).is_empty());
        assert!(has(&r.output(), "prepare it again"));
        assert!(has(&r.query(NEXT), "SELECT `id` FROM"));
        assert!(has(&r.answer(&gone), NEXT));
        r.answer(&err());
        r.output();
        assert_eq!(r.requests, [of(1)]);
        // It is there again.
        assert!(has(&r.query(NEXT), "SELECT `id` FROM"));
        assert!(has(&r.answer(&described(&["id"])), "SELECT 101 AS"));
    }
}

#[test]
fn a_rule_that_observes_changes_nothing() {
    let mut r = rig_of_rule(|rule| rule.mode = Mode::Observe);
    assert!(r.probed(NEXT, "1").ends_with(NEXT));
    assert!(r.requests.is_empty());
}

#[test]
fn a_rule_that_refuses_keys_of_the_applications_own_gives_them_too() {
    let mut r = rig_of_rule(|rule| rule.on_explicit = OnExplicit::Refuse);
    assert!(r.probed(NEXT, "1").contains("SELECT 100 AS"));
}

#[test]
fn among_several_statements_it_gets_its_key() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let sent = r.probed("SELECT 1; SELECT NEXT VALUE FOR t", "1");
    assert!(sent.ends_with("SELECT 1"), "{sent}");
    let sent = r.answer(&rows(&["1"]));
    assert!(has(&sent, "SELECT 100 AS"), "{sent:?}");
    r.answer(&rows(&["100"]));
    assert!(has(&r.output(), "100"));
}

#[test]
fn prepared_it_has_no_parameters_and_new_keys_each_time() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = stmt_prepare(&mut r, "SELECT NEXT 2 VALUES FOR t AS id", "1");
    assert!(sent.contains(" AS `id` UNION ALL SELECT CAST(?"), "{sent}");
    r.answer(&prepared(7, 2));
    let told = r.output();
    assert_eq!(told.get(5..9), Some(&[7, 0, 0, 0][..]), "its number");
    assert_eq!(told.get(11..13), Some(&[0, 0][..]), "its parameters");
    for first in [100_u8, 102] {
        let sent = r.say(&execute(7, &[]));
        // NULL bits, types, values.
        let values = [
            &[0, 1, 8, 128, 8, 128][..],
            &[first, 0, 0, 0, 0, 0, 0, 0, first + 1, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        assert!(sent.ends_with(&values), "{sent:?}");
        assert_eq!(r.requests.last(), Some(&of(2)));
        r.answer(&rows(&["100"]));
        r.output();
    }
}

#[test]
fn prepared_it_goes_by_the_table_that_it_named() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, NEXT, "1");
    r.answer(&prepared(7, 1));
    r.output();
    r.query("USE elsewhere");
    r.answer(&ok(0, 0));
    r.output();
    assert!(!r.say(&execute(7, &[])).is_empty());
    assert_eq!(r.requests, [of(1)]);
}

#[test]
fn what_is_sent_as_long_data_for_it_reaches_nobody() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, NEXT, "1");
    r.answer(&prepared(7, 1));
    r.output();
    let data = [&[COM_STMT_SEND_LONG_DATA, 7, 0, 0, 0, 0, 0][..], b"666"].concat();
    assert_eq!(r.say(&data), b"");
    assert!(!r.say(&execute(7, &[])).is_empty());
    assert_eq!(r.requests, [of(1)]);
}

#[test]
fn an_execution_that_makes_no_sense_is_refused() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, NEXT, "1");
    r.answer(&prepared(7, 1));
    r.output();
    assert_eq!(r.say(&[COM_STMT_EXECUTE, 7, 0, 0, 0, 0]), b"");
    assert!(has(&r.output(), "Malformed communication packet"));
}
