//! INSERT … SELECT: tried with more keys until they are enough.

use keywright_rewrite::KeyForm;
use keywright_session::{Limits, OnAmbiguousId};

use super::last_insert_id::ok_in_words;
use super::rig::*;

const SELECT: &str = "INSERT INTO t (a) SELECT a FROM u";

/// What the server says when a row had no key.
pub(super) fn too_few() -> Vec<u8> {
    let mut payload = vec![0xFF, 0x9A, 0x06];
    payload
        .extend(b"#22003BIGINT UNSIGNED value is out of range in 'rownum() * 7046029254386353131'");
    packet(1, &payload)
}

fn said(text: &str) -> (Rig, String) {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let sent = r.probed(text, "1");
    (r, sent)
}

#[test]
fn too_few_keys_are_tried_again_with_more() {
    let (mut r, sent) = said(SELECT);
    assert!(sent.contains("ROWNUM()<=64 THEN 99+ROWNUM()"), "{sent}");
    let sent = r.answer(&too_few());
    let sent = String::from_utf8_lossy(&sent);
    assert!(sent.contains("ROWNUM()<=512 THEN 163+ROWNUM()"), "{sent}");
    assert!(
        r.output().is_empty(),
        "the client hears of the last try only"
    );
    assert_eq!(r.answer(&ok(200, 99)), b"");
    assert_eq!(r.output(), ok(200, 164), "the first key of the last try");
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "SET last_insert_id=164"));
}

/// As servers send it after `SET character_set_results = utf16`, and utf16le: cut off at the first byte of 0.
pub(super) fn cut_off(text: &str) -> Vec<u8> {
    packet(1, &[&b"\xFF\x9A\x06#22003"[..], text.as_bytes()].concat())
}

#[test]
fn an_error_that_the_server_cuts_off_is_refused_by_the_name_of_the_variable() {
    for text in ["", "B"] {
        let (mut r, _) = said(SELECT);
        assert!(r.answer(&cut_off(text)).is_empty());
        let told = r.output();
        assert!(has(&told, "character_set_results"), "{told:?}");
        assert_eq!(told.get(3..7), Some(&[1, 0xFF, 0xD3, 4][..]), "1235");
        assert_eq!(r.requests.len(), 1);
        assert!(has(&r.query("SELECT 1"), "SELECT 1"));
    }
}

#[test]
fn the_spacing_of_keys_is_kept() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.probed(SELECT, "3");
    assert!(sent.contains("THEN 97+ROWNUM()*3"), "{sent}");
    assert_eq!(r.requests[0].count, 63 * 3 + 1);
}

#[test]
fn more_rows_than_the_limit_are_refused() {
    let mut r = rig_with(
        KeyForm::Integer,
        DEPRECATE_EOF,
        Limits {
            select_rows_max: 100,
            ..Limits::default()
        },
    );
    r.probed(SELECT, "1");
    assert!(has(&r.answer(&too_few()), "ROWNUM()<=100"));
    assert_eq!(r.answer(&too_few()), b"");
    let output = r.output();
    assert!(has(&output, "more than 100 rows") && has(&output, "select_rows_max"));
    assert!(has(&r.query("SELECT 1"), "SELECT 1"), "the session goes on");
}

#[test]
fn no_try_asks_for_more_keys_than_can_be_had_at_once() {
    // As of a tick of the layout sonyflake.
    let mut r = rig_of_few_keys(256, true);
    r.probed(SELECT, "1");
    assert!(has(&r.answer(&too_few()), "ROWNUM()<=256"));
    assert_eq!(r.answer(&too_few()), b"");
    let output = r.output();
    assert!(has(&output, "more than 256 rows") && has(&output, "at once"));
    // Each row takes as many as its distance to the next.
    let mut r = rig_of_few_keys(256, true);
    let sent = r.probed(SELECT, "5");
    assert!(sent.contains("ROWNUM()<=52"), "{sent}");
    assert_eq!(r.requests[0].count, 256);
    assert_eq!(r.answer(&too_few()), b"");
    assert!(has(&r.output(), "more than 52 rows"));
    // What fails may leave something behind: all rows have keys, or none.
    let mut r = rig_of_few_keys(256, false);
    r.probed("INSERT INTO t (a) SELECT a FROM u LIMIT 60", "5");
    assert_eq!(r.requests[0].count, 59 * 5 + 1);
}

#[test]
fn no_row_has_no_id() {
    let (mut r, _) = said(SELECT);
    r.answer(&ok(0, 0));
    assert_eq!(r.output(), ok(0, 0));
    assert!(!has(&r.query("SELECT LAST_INSERT_ID()"), "last_insert_id="));
}

/// The packet says how many rows there were, and how many of them were updated.
#[test]
fn rows_that_are_all_updated_have_no_id() {
    let text = "INSERT INTO t (a) SELECT a FROM u ON DUPLICATE KEY UPDATE a = VALUES(a)";
    let ignoring = "INSERT IGNORE INTO t (a) SELECT a FROM u ON DUPLICATE KEY UPDATE a = VALUES(a)";
    for (text, affected, words, id) in [
        (text, 8, "Records: 4  Duplicates: 4  Warnings: 0", 0),
        (text, 2, "Records: 1  Duplicates: 1  Warnings: 0", 0),
        // One of them was changed.
        (text, 2, "Records: 4  Duplicates: 1  Warnings: 0", 0),
        (text, 5, "Records: 4  Duplicates: 1  Warnings: 0", 100),
        (text, 4, "Records: 4  Duplicates: 0  Warnings: 0", 100),
        (text, 8, "", 100),
        // Duplicates are what was left out.
        (ignoring, 8, "Records: 4  Duplicates: 4  Warnings: 0", 100),
    ] {
        let (mut r, sent) = said(text);
        assert!(sent.contains("ROWNUM()<=64"), "{sent}");
        r.answer(&ok_in_words(affected, 0, words));
        assert_eq!(r.output(), ok_in_words(affected, id, words), "{words}");
        let sent = r.query("SELECT LAST_INSERT_ID()");
        let is_set = has(&sent, "SET last_insert_id=100");
        assert_eq!(is_set, id != 0, "{words}: {sent:?}");
    }
}

#[test]
fn another_error_is_the_clients() {
    let (mut r, _) = said(SELECT);
    assert_eq!(r.answer(&err()), b"", "nothing is tried again");
    assert_eq!(r.output(), err());
    assert!(!has(&r.query("SELECT LAST_INSERT_ID()"), "last_insert_id="));
}

#[test]
fn a_number_of_the_clients_that_is_out_of_range_is_the_clients() {
    let (mut r, _) = said(SELECT);
    let mut payload = vec![0xFF, 0x9A, 0x06];
    payload.extend(b"#22003BIGINT value is out of range in '`d`.`u`.`a` * 9223372036854775807'");
    let error = packet(1, &payload);
    assert_eq!(r.answer(&error), b"", "nothing is tried again");
    assert_eq!(r.output(), error);
    // A key of the client's that looks like the proxy's number.
    let (mut r, _) = said(SELECT);
    let mut payload = vec![0xFF, 0x26, 0x04];
    payload.extend(b"#23000Duplicate entry '7046029254386353131' for key 'a'");
    let error = packet(1, &payload);
    assert_eq!(r.answer(&error), b"", "nothing is tried again");
    assert_eq!(r.output(), error);
}

#[test]
fn keys_that_run_out_between_tries_are_an_error() {
    let (mut r, _) = said(SELECT);
    r.fail_keys = true;
    assert_eq!(r.answer(&too_few()), b"");
    assert!(has(&r.output(), "down"));
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn one_row_takes_one_key() {
    let (mut r, sent) = said("INSERT IGNORE INTO t (a) SELECT 1 FROM dual");
    assert!(sent.contains("SELECT 1,100 FROM dual"), "{sent}");
    assert_eq!(r.requests[0].count, 1);
    r.answer(&ok(1, 100));
    assert_eq!(r.output(), ok(1, 100));
}

#[test]
fn a_known_number_of_rows_is_reserved_at_once() {
    let (mut r, sent) = said("INSERT INTO t (a) SELECT a FROM u LIMIT 7");
    assert!(sent.contains("ROWNUM()<=7"), "{sent}");
    assert_eq!(r.requests[0].count, 7);
    r.answer(&ok(3, 102));
    assert_eq!(r.output(), ok(3, 100));
}

#[test]
fn what_must_not_be_carried_out_twice_is_refused() {
    let (mut r, sent) = said("INSERT INTO t (a) SELECT f(a) FROM u");
    assert_eq!(sent, "");
    assert!(has(&r.output(), "must not be carried out twice"));
    let sent = r.query("INSERT INTO t (a) SELECT f(a) FROM u LIMIT 9");
    assert!(has(&sent, "ROWNUM()<=9"));
}

#[test]
fn the_last_of_several_statements_leaves_the_next_command_alone() {
    let (mut r, sent) = said("SET @a = 1; INSERT INTO t (a) SELECT a FROM u");
    assert!(has(sent.as_bytes(), "SET @a"));
    let mut sent = r.answer(&ok(0, 0));
    if has(&sent, "@@session.sql_mode") {
        sent = r.answer(&probe("1"));
    }
    assert!(has(&sent, "ROWNUM()<=64"));
    assert!(has(&r.answer(&too_few()), "ROWNUM()<=512"));
    r.answer(&ok(100, 0));
    assert!(has(&r.query("SELECT 'next'"), "SELECT 'next'"));
}

#[test]
fn execute_of_one_prepared_out_of_a_text_is_refused_by_name() {
    let (mut r, _) = said("PREPARE p FROM 'INSERT INTO t (a) SELECT a FROM u'");
    r.answer(&ok(0, 0));
    r.output();
    let sent = r.query("EXECUTE p");
    if has(&sent, "sql_mode") {
        assert_eq!(r.answer(&probe("1")), b"");
    }
    assert!(has(&r.output(), "INSERT … SELECT in PREPARE from a text"));
}

#[test]
fn rows_that_may_not_go_in_are_refused_where_the_rule_says_so_but_for_a_single_one() {
    for (text, is_refused) in [
        ("INSERT IGNORE INTO t (a) SELECT a FROM u", true),
        ("INSERT IGNORE INTO t (a) SELECT 1", false),
        (
            "INSERT INTO t (a) SELECT a FROM u LIMIT 1 ON DUPLICATE KEY UPDATE a = 1",
            false,
        ),
        ("INSERT INTO t (a) SELECT a FROM u", false),
    ] {
        let mut r = rig_of_rule(|rule| rule.on_ambiguous_id = OnAmbiguousId::Refuse);
        let sent = r.probed(text, "1");
        assert_eq!(sent.is_empty(), is_refused, "{text}: {sent}");
    }
}
