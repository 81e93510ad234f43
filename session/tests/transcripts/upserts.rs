//! Which key is reported of rows that may be updated instead, to a client that asks for the rows that were found (`CLIENT_FOUND_ROWS`): one that
//! is found and stays as it is counts as one that went in.

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::*;

use super::last_insert_id::ok_in_words;
use super::rig::*;

const BY_VALUES: &str = "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 1";
const BY_SELECT: &str = "INSERT INTO t (a) SELECT 1 ON DUPLICATE KEY UPDATE a = 1";

/// A session of such a client, whose server has LAST_INSERT_ID() 100, which it knows.
fn begun(is_auto_increment: bool) -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | FOUND_ROWS);
    let rule = Rule {
        is_auto_increment,
        ..r.rule_in(Mode::Rewrite)
    };
    let rules = Rules::new(vec![rule], false);
    r.s = Session::new(Arc::new(rules), r.facts());
    let sent = r.probed("INSERT INTO t (a) VALUES (1)", "1");
    assert!(sent.contains("LAST_INSERT_ID(100)"), "{sent}");
    r.answer(&ok(1, 100));
    r.output();
    r
}

/// What LAST_INSERT_ID() is made before it is asked for, if anything.
fn is_put_right(r: &mut Rig) -> bool {
    has(
        &r.query("SELECT LAST_INSERT_ID()"),
        "SET last_insert_id=101",
    )
}

/// It was inserted, found, updated; and found by an update that names its key.
#[test]
fn the_server_reports_the_key_of_the_only_row_if_that_went_in() {
    for (affected, id) in [(1, 101), (1, 0), (2, 7), (1, 7)] {
        let mut r = begun(true);
        let sent = r.query(BY_VALUES);
        assert!(has(&sent, "(101,1)"), "{sent:?}");
        r.answer(&ok(affected, id));
        assert_eq!(r.output(), ok(affected, id));
        assert_eq!(is_put_right(&mut r), id == 101, "{affected} {id}");
    }
}

/// There the server reports no key, whether the row went in or not.
#[test]
fn of_a_select_or_without_auto_increment_the_only_row_counts_as_one_that_went_in() {
    for (text, is_auto_increment) in [(BY_VALUES, false), (BY_SELECT, false), (BY_SELECT, true)] {
        for (affected, reported) in [(1, 101), (2, 0)] {
            let mut r = begun(is_auto_increment);
            r.query(text);
            r.answer(&ok(affected, 0));
            assert_eq!(r.output(), ok(affected, reported), "{text}");
            assert_eq!(is_put_right(&mut r), reported == 101, "{text} {affected}");
        }
    }
}

/// Duplicates are then the rows that were found, and of a SELECT those that were changed.
#[test]
fn several_rows_that_were_all_found_report_no_key() {
    let values = "INSERT INTO t (a) VALUES (1), (2), (3) ON DUPLICATE KEY UPDATE a = a";
    let select = "INSERT INTO t (a) SELECT a FROM u ON DUPLICATE KEY UPDATE a = VALUES(a)";
    let ignoring = "INSERT IGNORE INTO t (a) VALUES (1), (2), (3) ON DUPLICATE KEY UPDATE a = a";
    for (text, affected, words, id) in [
        (values, 3, "Records: 3  Duplicates: 3  Warnings: 0", 0),
        (select, 6, "Records: 3  Duplicates: 3  Warnings: 0", 0),
        // One of them was changed.
        (values, 4, "Records: 3  Duplicates: 3  Warnings: 0", 0),
        (values, 3, "Records: 3  Duplicates: 2  Warnings: 0", 101),
        (select, 5, "Records: 3  Duplicates: 2  Warnings: 0", 101),
        (values, 3, "", 101),
        // There they are rows that were left out.
        (ignoring, 3, "Records: 3  Duplicates: 3  Warnings: 0", 101),
    ] {
        let mut r = begun(true);
        r.query(text);
        r.answer(&ok_in_words(affected, 0, words));
        assert_eq!(
            r.output(),
            ok_in_words(affected, id, words),
            "{text} {words}"
        );
        assert_eq!(is_put_right(&mut r), id == 101, "{text} {words}");
    }
}
