//! MariaDB's bulk execution.

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::{Mode, Rules, SchemaChanges, Session};

use super::rig::*;

/// COM_STMT_BULK_EXECUTE of a statement, with types.
fn bulk(id: u32, types: &[u8], rows: &[u8]) -> Vec<u8> {
    let mut payload = vec![COM_STMT_BULK_EXECUTE];
    payload.extend(id.to_le_bytes());
    payload.extend([128, 0]);
    payload.extend(types);
    payload.extend(rows);
    payload
}

/// A client with this prepared as statement 7.
fn client(form: KeyForm, text: &str, parameters: u16) -> Rig {
    let mut r = rig(form, DEPRECATE_EOF | BULK);
    stmt_prepare(&mut r, text, "1");
    r.answer(&prepared(7, parameters));
    r.output();
    r
}

fn key(number: u64) -> Vec<u8> {
    [[0].as_slice(), &number.to_le_bytes()].concat()
}

#[test]
fn each_row_gets_its_key_as_a_parameter() {
    let mut r = client(KeyForm::Integer, "INSERT INTO t (a) VALUES (?)", 2);
    let rows = b"\x00\x01x\x01\x00\x01y";
    // The text that it was prepared as would make each key LAST_INSERT_ID().
    let sent = r.say(&bulk(7, b"\xfd\x00", rows));
    assert!(has(&sent, "(`id`,a) VALUES (?,?)"), "{sent:?}");
    let sent = r.answer(&prepared(8, 2));
    let rows = [
        key(100),
        b"\x00\x01x".to_vec(),
        key(101),
        b"\x01".to_vec(),
        key(102),
        b"\x00\x01y".to_vec(),
    ];
    assert_eq!(
        sent,
        packet(0, &bulk(8, b"\x08\x80\xfd\x00", &rows.concat()))
    );
    assert_eq!(r.requests[0].count, 3);
    // The server reports the last row's.
    r.answer(&ok(3, 102));
    assert_eq!(r.output(), ok(3, 100));
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "SET last_insert_id=100"), "{sent:?}");
}

#[test]
fn bound_keys_are_given_where_they_are_asked_for() {
    let mut r = client(KeyForm::Integer, "INSERT INTO t (id, a) VALUES (?, ?)", 2);
    let types = b"\x03\x00\xfd\x00";
    // NULL, -5, 0, DEFAULT.
    let rows = b"\x01\x01\x00\xfb\xff\xff\xff\x01\x00\x00\x00\x00\x00\x01\x02\x00\x01x";
    let sent = r.say(&bulk(7, types, rows));
    let rows = [
        key(100),
        b"\x01".to_vec(),
        key(-5_i64 as u64),
        b"\x01".to_vec(),
        key(101),
        b"\x01".to_vec(),
        key(102),
        b"\x00\x01x".to_vec(),
    ];
    // As BIGINT, since an INT has no room.
    assert_eq!(
        sent,
        packet(0, &bulk(7, b"\x08\x00\xfd\x00", &rows.concat()))
    );
    r.answer(&ok(4, 102));
    assert_eq!(r.output(), ok(4, 100));
}

#[test]
fn rows_without_a_key_to_fill_are_sent_as_they_are() {
    let mut r = client(KeyForm::Integer, "INSERT INTO t (id, a) VALUES (?, ?)", 2);
    let payload = bulk(7, b"\x03\x00\xfd\x00", b"\x00\x05\x00\x00\x00\x01");
    assert_eq!(r.say(&payload), packet(0, &payload));
    assert!(r.requests.is_empty());
    r.answer(&ok(1, 5));
    assert_eq!(r.output(), ok(1, 5));
}

#[test]
fn text_keys_are_strings() {
    let mut r = client(KeyForm::Text, "INSERT INTO t (id, a) VALUES (?, 1)", 1);
    let sent = r.say(&bulk(7, b"\xfd\x00", b"\x01\x00\x03own\x02"));
    let expected = bulk(7, b"\xfd\x00", b"\x00\x02k0\x00\x03own\x00\x02k1");
    assert_eq!(sent, packet(0, &expected));
}

#[test]
fn rows_that_end_too_early_end_the_connection() {
    for rows in [b"\x00".as_slice(), b"\x00\x05x", b"\x04", b"\x00\x01x\x00"] {
        let mut r = client(KeyForm::Integer, "INSERT INTO t (a) VALUES (?)", 2);
        assert!(r.say(&bulk(7, b"\xfd\x00", rows)).is_empty());
        assert!(r.closed, "{rows:?}");
    }
    // Rows without parameters would take no bytes.
    let mut r = client(KeyForm::Integer, "INSERT INTO t (a) VALUES (1)", 1);
    r.say(&bulk(7, b"", b"\x00"));
    assert!(r.closed);
}

#[test]
fn the_last_prepared_is_what_the_client_prepared_last() {
    let mut r = client(KeyForm::Integer, "INSERT INTO t (a) VALUES (?)", 2);
    // Of a statement that no rule is for, the server's own last would be a text of ours.
    r.say(&[b"\x16".as_slice(), b"SELECT ?"].concat());
    r.answer(&prepared(9, 1));
    r.say(&bulk(7, b"\xfd\x00", b"\x01"));
    r.answer(&prepared(10, 2));
    r.answer(&ok(1, 100));
    let sent = r.say(&execute(u32::MAX, b"\x01\x01\x03\x00"));
    assert_eq!(sent, packet(0, &execute(9, b"\x01\x01\x03\x00")));
    r.answer(&ok(0, 0));
    // After a PREPARE that failed there is none.
    r.say(&[b"\x16".as_slice(), b"SELEC"].concat());
    r.answer(&err());
    let sent = r.say(&bulk(u32::MAX, b"\xfd\x00", b"\x01"));
    // Nothing is known of it: it might ask for LAST_INSERT_ID().
    assert!(has(&sent, "SET last_insert_id=100"));
    let sent = r.answer(&ok(0, 0));
    assert_eq!(sent, packet(0, &bulk(0, b"\xfd\x00", b"\x01")));
}

/// Another connection has changed it, perhaps so that it has no such column any more.
#[test]
fn a_table_that_was_changed_is_asked_about_before_rows_get_keys() {
    let no_such_column = packet(1, b"\xff\x1e\x04#42S22Unknown column 'id'");
    for (answer, gets_keys) in [(described(&["id"]), true), (no_such_column, false)] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | BULK);
        let schema = Arc::new(SchemaChanges::default());
        let rules = Rules::new(vec![r.rule_in(Mode::Rewrite)], false);
        let rules = rules.with_schema(Arc::clone(&schema));
        r.s = Session::new(Arc::new(rules), r.facts());
        stmt_prepare(&mut r, "INSERT INTO t (id, a) VALUES (?, ?)", "1");
        r.answer(&prepared(7, 2));
        r.output();
        schema.note_defined();
        let asked = r.say(&bulk(7, b"\x03\x00\xfd\x00", b"\x01\x01"));
        assert!(has(&asked, "SELECT `id` FROM"), "{asked:?}");
        let sent = r.answer(&answer);
        assert_eq!(r.requests.len(), usize::from(gets_keys), "{sent:?}");
        assert_eq!(has(&r.output(), "for a table that has changed"), !gets_keys);
    }
}
