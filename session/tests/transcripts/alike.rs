//! INSERTs that begin alike.

use keywright_rewrite::KeyForm;

use crate::rig::*;

const BEGINNING: &str = "INSERT INTO t (a, b) VALUES ";

#[test]
fn each_gets_its_own_keys_and_keeps_its_own_values() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed(&format!("{BEGINNING}(1, 'one')"), "1");
    r.answer(&ok(1, 100));
    for (rows, written) in [
        ("(2, 'two')", "(LAST_INSERT_ID(101),2, 'two')"),
        (
            "(3, 'three'), (4, ')')",
            "(102,3, 'three'), (LAST_INSERT_ID(102)+1,4, ')')",
        ),
        ("(6)", "VALUES (6)"),
    ] {
        let sent = r.query(&format!("{BEGINNING}{rows}"));
        assert!(has(&sent, written), "{}", String::from_utf8_lossy(&sent));
        r.answer(&ok(1, 0));
    }
}

#[test]
fn what_they_mean_is_asked_anew() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed(&format!("{BEGINNING}(1, 2)"), "1");
    r.answer(&ok(1, 100));
    // A temporary table that hides the rule's, in the same modes.
    r.query("CREATE TEMPORARY TABLE t (id INT, a INT, b INT)");
    r.answer(&ok(0, 0));
    let sent = r.query(&format!("{BEGINNING}(3, 4)"));
    assert!(
        has(&sent, "INSERT INTO t (a, b) VALUES (3, 4)"),
        "{}",
        String::from_utf8_lossy(&sent)
    );
    r.answer(&ok(1, 0));
    r.query("DROP TABLE t");
    r.answer(&ok(0, 0));
    let sent = r.query(&format!("{BEGINNING}(5, 6)"));
    assert!(has(&sent, "5, 6)"), "{}", String::from_utf8_lossy(&sent));
    assert!(has(&sent, "`id`"), "{}", String::from_utf8_lossy(&sent));
}

#[test]
fn bytes_beyond_ascii_behind_the_same_beginning_are_read_anew() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.query(&format!("{BEGINNING}(1, 'one')"));
    // A character may end with a backslash there.
    let sent = r.answer(&rows(&["", "gbk", "d", "1", "0", SERVER]));
    assert!(has(&sent, "LAST_INSERT_ID(100)"), "all of it is ASCII");
    r.answer(&ok(1, 100));
    r.output();
    let text = [b"\x03", BEGINNING.as_bytes(), b"(2, '\xBF\\')"].concat();
    assert_eq!(r.say(&text), b"");
    assert!(has(&r.output(), "character set whose characters"));
}

#[test]
fn rows_of_another_kind_do_not_begin_alike() {
    let mut r = rig_of_mysql(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("INSERT INTO t(a) VALUES(1)", "1");
    r.answer(&ok(1, 100));
    for (text, written) in [
        (
            "INSERT INTO t(a) VALUES ROW(2)",
            "VALUES ROW(LAST_INSERT_ID(101),2)",
        ),
        (
            "INSERT INTO t(a) VALUES(3)",
            "VALUES(LAST_INSERT_ID(102),3)",
        ),
        ("INSERT INTO t(a) (SELECT 4)", "(SELECT 4,103)"),
        ("INSERT INTO t(a) (SELECT 5)", "(SELECT 5,104)"),
    ] {
        let mut sent = r.query(text);
        if has(&sent, "SET last_insert_id") {
            sent = r.answer(&ok(0, 0));
        }
        assert!(has(&sent, written), "{}", String::from_utf8_lossy(&sent));
        r.answer(&ok(1, 0));
    }
}

/// Nothing that was said is forgotten with the memory that a connection gives back when it rests.
#[test]
fn a_session_that_has_given_memory_back_goes_on_as_before() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let insert = "INSERT INTO t (a) VALUES (1)";
    let first = r.probed(insert, "1");
    r.answer(&ok(1, 100));
    r.output();
    r.s.release();
    let second = String::from_utf8_lossy(&r.query(insert)).into_owned();
    assert_eq!(second.replace("101", "100"), first);
    r.s.release();
    r.answer(&ok(1, 101));
    assert_eq!(r.output(), ok(1, 101));
    r.s.release();
    let shown = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&shown, "SELECT LAST_INSERT_ID()"), "{shown:?}");
}
