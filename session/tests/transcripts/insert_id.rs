//! The client's own insert_id: whether one waits for an INSERT is what the server says, not what a text looks like.

use keywright_rewrite::KeyForm;

use super::rig::*;

const INSERT: &str = "INSERT INTO t (a) VALUES (1)";
const KEYED: &str = "LAST_INSERT_ID(100)";

/// A session that knows its server's state.
fn begun() -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("INSERT INTO t (id, a) VALUES (5, 1)", "1");
    r.answer(&ok(1, 0));
    r.output();
    r
}

#[test]
fn a_variable_that_is_named_like_it_sets_none() {
    let mut r = begun();
    r.query("SET @insert_id = LAST_INSERT_ID()");
    r.answer(&ok(0, 0));
    let sent = r.probed(INSERT, "1");
    assert!(sent.contains(KEYED), "{sent}");
}

#[test]
fn one_that_could_not_be_set_is_none() {
    let mut r = begun();
    r.query("SET insert_id = 'abc'");
    r.answer(&err());
    let sent = r.probed(INSERT, "1");
    assert!(sent.contains(KEYED), "{sent}");
}

#[test]
fn one_that_a_prepared_statement_could_not_set_is_none() {
    let mut r = begun();
    stmt_prepare(&mut r, "SET insert_id = ?", "1");
    r.answer(&prepared(7, 1));
    r.say(&execute(7, &[0, 1, 253, 0, 1, b'x']));
    r.answer(&err());
    let sent = r.probed(INSERT, "1");
    assert!(sent.contains(KEYED), "{sent}");
}

#[test]
fn one_that_waits_is_for_the_next_insert_only() {
    let mut r = begun();
    r.query("SET insert_id = 77");
    r.answer(&ok(0, 0));
    assert!(has(&r.query(INSERT), "@@session.insert_id"));
    assert!(has(&r.answer(&probe_with_insert_id("77")), INSERT));
    r.answer(&ok(1, 77));
    // Whether it is used up the server is asked: one with a key of its own, or one that fails early, leaves it.
    assert!(has(&r.query(INSERT), "@@session.insert_id"));
    let sent = r.answer(&probe("1"));
    assert!(has(&sent, "VALUES (100,1)"), "{sent:?}");
}

#[test]
fn one_that_a_procedure_set_waits_too() {
    let mut r = begun();
    r.query("CALL sets_insert_id()");
    r.answer(&ok(0, 0));
    r.query(INSERT);
    assert!(has(&r.answer(&probe_with_insert_id("77")), INSERT));
}

#[test]
fn one_that_was_used_up_on_a_table_without_a_rule_waits_no_more() {
    let mut r = begun();
    r.query("SET insert_id = 77");
    r.answer(&ok(0, 0));
    r.query("INSERT INTO t (id) VALUES (1)");
    r.answer(&probe_with_insert_id("77"));
    r.answer(&ok(1, 0));
    r.query("LOAD DATA INFILE 'f' INTO TABLE free (a)");
    r.answer(&probe_with_insert_id("77"));
    r.answer(&ok(1, 77));
    let sent = r.probed(INSERT, "1");
    assert!(sent.contains("VALUES (100,1)"), "{sent}");
}

#[test]
fn executions_ask_before_they_believe_in_one() {
    let mut r = begun();
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1");
    r.answer(&prepared(7, 2));
    r.query("SET @insert_id = LAST_INSERT_ID()");
    r.answer(&ok(0, 0));
    r.output();
    let insert = execute(7, &[0, 1, 253, 0, 1, b'x']);
    assert!(has(&r.say(&insert), "@@session.insert_id"));
    r.answer(&probe("1"));
    assert_eq!(r.requests.len(), 1, "it has a key");
}

#[test]
fn a_load_asks_before_it_believes_in_one() {
    let mut r = begun();
    r.query("SET @insert_id = LAST_INSERT_ID()");
    r.answer(&ok(0, 0));
    let sent = r.probed("LOAD DATA INFILE 'f' INTO TABLE t (a)", "1");
    assert!(sent.contains("SET last_insert_id=0"), "{sent}");
}

#[test]
fn each_of_several_statements_asks_for_itself() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    r.query("SET insert_id = 77");
    r.answer(&ok(0, 0));
    r.query("INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (2)");
    let sent = r.answer(&probe_with_insert_id("77"));
    assert!(has(&sent, "VALUES (1)") && !has(&sent, "VALUES (2)"));
    assert!(has(&r.answer(&ok(1, 77)), "@@session.insert_id"));
    assert!(has(&r.answer(&probe("1")), "VALUES (100,2)"));
}

#[test]
fn one_that_is_set_behind_an_insert_is_not_for_that_insert() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let sent = r.probed("INSERT INTO t (a) VALUES (1); SET insert_id = 7", "1");
    assert!(sent.contains(KEYED), "{sent}");
}

#[test]
fn one_that_waits_is_for_an_insert_that_was_prepared_from_a_text() {
    let mut r = begun();
    r.query("PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'");
    r.answer(&ok(0, 0));
    r.query("SET insert_id = 77");
    r.answer(&ok(0, 0));
    r.query("EXECUTE s");
    let sent = r.answer(&probe_with_insert_id("77"));
    assert!(has(&sent, "EXECUTE s"), "the client's own: {sent:?}");
    r.answer(&ok(1, 77));
    r.query("EXECUTE s");
    let sent = r.answer(&probe("1"));
    assert!(has(&sent, "VALUES (100,1)"), "{sent:?}");
}
