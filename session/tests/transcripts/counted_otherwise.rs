//! Statements in which the server counts other parameters than were read in them: values would go to others than their own.

use keywright_rewrite::KeyForm;

use super::rig::*;

const TOLD: &str = "a statement whose parameters the server counts otherwise";

/// What has the server forget a statement.
fn close(id: u8) -> Vec<u8> {
    packet(0, &[COM_STMT_CLOSE, id, 0, 0, 0])
}

/// The client does not hear of the statement, so it is not to stay either.
#[test]
fn one_is_closed_and_refused() {
    for (text, parameters) in [
        // In sql_mode ORACLE `:1` is a parameter.
        ("INSERT INTO t (a, b) VALUES (?, :2)", 3),
        ("INSERT INTO t (a, b) VALUES (:1, :2)", 3),
        ("INSERT INTO t (a) VALUES (?)", 1),
        ("INSERT INTO t (a) VALUES (?)", 0),
        ("INSERT INTO t (a) SELECT ? FROM u", 5),
        ("SELECT NEXT VALUE FOR t", 2),
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        stmt_prepare(&mut r, text, "1");
        assert_eq!(r.answer(&prepared(7, parameters)), close(7), "{text}");
        let told = r.output();
        assert!(has(&told, TOLD), "{text}: {told:?}");
        assert!(has(&r.query("SELECT 1"), "SELECT 1"), "{text}");
        assert!(r.requests.is_empty(), "{text}");
    }
}

#[test]
fn so_is_another_text_of_it() {
    let mut r = with_bound_key("");
    assert!(has(&r.say(&execute(7, &[1, 1, 6, 0])), "LAST_INSERT_ID(?)"));
    assert_eq!(r.answer(&prepared(8, 2)), close(8));
    assert!(has(&r.output(), TOLD));
    assert!(r.requests.is_empty());
    // The client's own is there.
    let own = execute(7, &[&[0, 1, 8, 0][..], &5_u64.to_le_bytes()].concat());
    assert_eq!(r.say(&own), packet(0, &own));
}

#[test]
fn so_is_the_clients_own_text() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1");
    r.answer(&prepared(7, 2));
    r.query("SET insert_id = 77");
    r.answer(&ok(0, 0));
    r.output();
    r.say(&execute(7, &[0, 1, 253, 0, 1, b'x']));
    let sent = r.answer(&probe_with_insert_id("77"));
    assert!(has(&sent, "\x16INSERT INTO t (a) VALUES (?)"), "{sent:?}");
    assert_eq!(r.answer(&prepared(8, 2)), close(8));
    assert!(has(&r.output(), TOLD));
    assert!(r.requests.is_empty());
}
