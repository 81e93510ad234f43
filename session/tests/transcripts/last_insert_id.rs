//! What LAST_INSERT_ID() shows after statements that give it a value of their own.

use keywright_rewrite::KeyForm;

use super::rig::*;

/// A session whose server has LAST_INSERT_ID() 100, which it knows.
fn begun() -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.probed("INSERT INTO t (a) VALUES (1)", "1");
    assert!(sent.contains("LAST_INSERT_ID(100)"), "{sent}");
    r.answer(&ok(1, 100));
    r
}

/// An INSERT that fails leaves what was shown before it: asked of the server where that is not known.
fn fails_after(r: &mut Rig) {
    let sent = r.query("INSERT INTO t (a) VALUES (2)");
    assert!(!has(&sent, "LAST_INSERT_ID("), "{sent:?}");
    r.answer(&err());
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "SELECT LAST_INSERT_ID()"), "{sent:?}");
}

#[test]
fn the_row_that_an_update_names_is_shown_on() {
    let mut r = begun();
    r.query("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)");
    r.answer(&ok(2, 7));
    fails_after(&mut r);
}

#[test]
fn so_is_a_number_out_of_a_statement_that_failed() {
    let mut r = begun();
    r.query("INSERT INTO t (a) VALUES (LAST_INSERT_ID(7))");
    r.answer(&err());
    fails_after(&mut r);
}

#[test]
fn an_update_that_names_nothing_leaves_what_is_known() {
    let mut r = begun();
    r.query("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2");
    r.answer(&ok(2, 7));
    let sent = r.query("INSERT INTO t (a) VALUES (2)");
    assert!(has(&sent, "LAST_INSERT_ID(102)"), "{sent:?}");
    r.answer(&err());
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "last_insert_id=100"), "{sent:?}");
}

#[test]
fn so_is_a_number_out_of_a_select_whose_rows_do_not_go_in() {
    let mut r = begun();
    r.query("INSERT IGNORE INTO t (a) SELECT LAST_INSERT_ID(7) FROM dual");
    r.answer(&ok(0, 7));
    fails_after(&mut r);
}

/// The server reports the number that a value has set, since the key came out of the statement.
#[test]
fn a_row_that_goes_in_is_known_beside_a_number_of_its_own() {
    for text in [
        "INSERT IGNORE INTO t (a) SELECT LAST_INSERT_ID(7) FROM dual",
        "INSERT IGNORE INTO t (a) VALUES (LAST_INSERT_ID(7))",
    ] {
        let mut r = begun();
        r.query(text);
        r.output();
        r.answer(&ok(1, 7));
        assert_eq!(r.output(), ok(1, 101), "{text}");
    }
    // An UPDATE in its place counts as one row, too, where clients ask for the rows that were found.
    let mut r = begun();
    r.query("INSERT INTO t (a) VALUES (LAST_INSERT_ID(7)) ON DUPLICATE KEY UPDATE a = 1");
    r.output();
    r.answer(&ok(1, 7));
    assert_eq!(r.output(), ok(1, 7));
}
