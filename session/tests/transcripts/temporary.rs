//! Temporary tables: one that is there hides the rule of its name, and one that is not hides nothing.

use keywright_rewrite::KeyForm;

use super::rig::*;

const CREATE: &str = "CREATE TEMPORARY TABLE t (a INT)";
const INSERT: &str = "INSERT INTO t (a) VALUES (1)";
const QUESTION: &str = "SHOW CREATE TABLE `d`.`t`";

/// A session that knows its server's state.
fn begun() -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    r.probed("INSERT INTO t (id, a) VALUES (5, 1)", "1");
    r.answer(&ok(1, 0));
    r.output();
    r
}

/// The same, with a temporary table.
fn hidden() -> Rig {
    let mut r = begun();
    done(&mut r, CREATE);
    assert!(has(&r.query(INSERT), INSERT), "nothing is asked");
    r.answer(&ok(1, 0));
    r
}

fn done(r: &mut Rig, text: &str) {
    assert!(has(&r.query(text), text));
    r.answer(&ok(0, 0));
    r.output();
}

fn failed(r: &mut Rig, text: &str) {
    assert!(has(&r.query(text), text));
    r.answer(&err());
    r.output();
}

/// The answer of one statement of several, of which others follow.
fn ok_and_more(sequence: u8) -> Vec<u8> {
    packet(sequence, &[0, 0, 0, 2 | 8, 0, 0, 0])
}

fn ok_at_last(sequence: u8) -> Vec<u8> {
    packet(sequence, &[0, 0, 0, 2, 0, 0, 0])
}

/// What a statement becomes once the server has said that there is no temporary table, after it was asked.
fn without(r: &mut Rig, text: &str) -> String {
    let sent = r.query(text);
    assert!(has(&sent, QUESTION), "{}", String::from_utf8_lossy(&sent));
    let sent = r.answer(&err());
    assert!(has(&sent, "@@session.sql_mode"));
    String::from_utf8_lossy(&r.answer(&probe("1"))).into_owned()
}

fn assert_keyed(sent: &str) {
    assert!(
        sent.contains("LAST_INSERT_ID(100)") || sent.contains("(100,1)"),
        "{sent}"
    );
}

#[test]
fn one_that_may_never_have_been_made_is_asked_for() {
    let mut r = begun();
    failed(&mut r, "SELECT nosuch; CREATE TEMPORARY TABLE t (a INT)");
    assert_keyed(&without(&mut r, INSERT));
    r.answer(&ok(1, 100));
    assert!(has(&r.query(INSERT), "101"), "nothing is asked again");
}

#[test]
fn one_that_failed_is_asked_for() {
    let mut r = begun();
    failed(&mut r, CREATE);
    assert_keyed(&without(&mut r, INSERT));
}

#[test]
fn one_that_is_there_after_all_hides_the_rule() {
    let mut r = begun();
    failed(&mut r, "CREATE TEMPORARY TABLE t (a INT); SELECT nosuch");
    assert!(has(&r.query(INSERT), QUESTION));
    let sent = r.answer(&rows(&["t", "CREATE TEMPORARY TABLE `t` (\n  `a` INT\n)"]));
    assert!(has(&sent, "@@session.sql_mode"));
    assert!(has(&r.answer(&probe("1")), INSERT));
    r.answer(&ok(1, 0));
    assert!(has(&r.query(INSERT), INSERT), "nothing is asked again");
}

#[test]
fn a_table_that_is_no_temporary_one_hides_nothing() {
    let mut r = begun();
    failed(&mut r, CREATE);
    r.query(INSERT);
    let sent = r.answer(&rows(&["t", "CREATE TABLE `t` (\n  `a` INT\n)"]));
    assert!(has(&sent, "@@session.sql_mode"));
    assert_keyed(&String::from_utf8_lossy(&r.answer(&probe("1"))));
}

#[test]
fn one_that_was_dropped_in_the_same_text_is_asked_for() {
    let mut r = begun();
    r.query("CREATE TEMPORARY TABLE t (a INT); DROP TEMPORARY TABLE t");
    r.answer(&[ok_and_more(1), ok_at_last(2)].concat());
    assert_keyed(&without(&mut r, INSERT));
}

#[test]
fn one_that_may_have_another_name_is_asked_for() {
    for text in ["ALTER TABLE t RENAME TO u", "RENAME TABLE t TO u"] {
        let mut r = hidden();
        done(&mut r, text);
        // What was defined may be the rule's table.
        let asked = without(&mut r, INSERT);
        assert!(asked.contains("SELECT `id` FROM `t`"), "{asked}");
        assert_keyed(&String::from_utf8_lossy(&r.answer(&err())));
    }
    for text in [
        "CALL p()",
        "SELECT drops_it()",
        "UPDATE u SET a = drops_it()",
        // Their triggers may.
        "UPDATE u SET a = 1",
        "INSERT INTO u (a) VALUES (1)",
        "DELETE FROM u WHERE a = 1",
        "WITH x AS (SELECT 1) DELETE FROM u WHERE a = 1",
        // Of functions behind views; EXPLAIN calls them too, on MariaDB.
        "SELECT a FROM v",
        "TABLE v",
        "EXPLAIN SELECT a FROM v",
        "DO (SELECT a FROM v)",
        "SHOW TABLES WHERE (SELECT a FROM v)",
        "CREATE TEMPORARY TABLE u SELECT a FROM v",
        "INSERT INTO t (a) SELECT a FROM v",
    ] {
        let mut r = hidden();
        done(&mut r, text);
        assert_keyed(&without(&mut r, INSERT));
    }
    let mut r = hidden();
    stmt_prepare(&mut r, "SELECT a FROM v", "1");
    r.answer(&prepared(7, 0));
    r.say(&execute(7, &[]));
    r.answer(&ok(0, 0));
    r.output();
    assert_keyed(&without(&mut r, INSERT));
    // No table is read.
    for text in ["SELECT 1", "SELECT 'x FROM v'", "SET @a = 1", "COMMIT"] {
        let mut r = hidden();
        done(&mut r, text);
        assert!(has(&r.query(INSERT), INSERT), "{text}");
    }
}

/// A trigger of the rule's own table may drop the one that hides another, unless it was seen to have none; a function may all the same.
#[test]
fn one_is_asked_for_behind_rows_with_keys() {
    for (text, has_triggers, is_asked) in [
        ("INSERT INTO t (a) VALUES (1)", true, true),
        ("REPLACE INTO t (a) VALUES (1), (2)", true, true),
        ("INSERT INTO t (a) VALUES (1) RETURNING id", true, true),
        ("INSERT INTO t (a) SELECT 1", true, true),
        ("INSERT INTO t (a) VALUES (1)", false, false),
        ("INSERT INTO t (a) VALUES (drops_it())", false, true),
    ] {
        let mut r = rig_of_rule(|rule| rule.repeatable = !has_triggers);
        r.probed("INSERT INTO t (id, a) VALUES (5, 1)", "1");
        r.answer(&ok(1, 0));
        done(&mut r, "CREATE TEMPORARY TABLE o.t (a INT)");
        let sent = r.probed(text, "1");
        assert!(sent.contains("100"), "{sent}");
        r.answer(&ok(1, 100));
        r.output();
        const OTHER: &str = "INSERT INTO o.t (a) VALUES (1)";
        let sent = r.query(OTHER);
        assert_eq!(!has(&sent, OTHER), is_asked, "{text}");
        if is_asked {
            assert!(has(&sent, "SHOW CREATE TABLE `o`.`t`"), "{text}");
            assert!(has(&r.answer(&err()), "@@session.sql_mode"));
            assert!(has(&r.answer(&probe("1")), "INTO o.t (`id`,a)"), "{text}");
        }
    }
}

#[test]
fn one_that_may_have_been_dropped_is_asked_for() {
    let mut r = hidden();
    failed(&mut r, "DROP TABLE t, nosuch");
    assert_keyed(&without(&mut r, INSERT));
    let mut r = hidden();
    failed(&mut r, "SELECT nosuch; DROP TABLE t");
    assert_keyed(&without(&mut r, INSERT));
}

#[test]
fn one_that_was_dropped_hides_nothing() {
    let mut r = hidden();
    done(&mut r, "DROP TEMPORARY TABLE t");
    let sent = r.query(INSERT);
    assert_keyed(&String::from_utf8_lossy(&sent));
}

#[test]
fn one_that_is_dropped_before_the_insert_of_the_same_text_hides_nothing() {
    let mut r = hidden();
    let sent = r.query(&format!("DROP TEMPORARY TABLE t; {INSERT}"));
    assert!(!has(&sent, "INSERT"), "one by one");
    assert_keyed(&String::from_utf8_lossy(&r.answer(&ok(0, 0))));
}

#[test]
fn tables_without_a_rule_are_not_asked_for() {
    let mut r = begun();
    failed(&mut r, "CREATE TEMPORARY TABLE u (a INT)");
    assert_keyed(&String::from_utf8_lossy(&r.query(INSERT)));
}

#[test]
fn a_load_asks_too() {
    let mut r = begun();
    failed(&mut r, CREATE);
    let sent = without(&mut r, "LOAD DATA INFILE 'f' INTO TABLE t (a)");
    assert!(sent.contains("last_insert_id"), "{sent}");
}

#[test]
fn what_was_prepared_for_it_is_refused_when_it_is_gone() {
    let mut r = hidden();
    assert!(stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1").contains("VALUES (?)"));
    r.answer(&prepared(7, 1));
    let insert = execute(7, &[0, 1, 253, 0, 1, b'x']);
    assert_eq!(r.say(&insert), packet(0, &insert), "it is still there");
    r.answer(&ok(1, 0));
    r.output();
    done(&mut r, "DROP TEMPORARY TABLE t");
    assert_eq!(r.say(&insert), b"", "it would go into the other one");
    assert!(has(&r.output(), "temporary table"));
    // As when it is not known whether it is gone.
    let mut r = hidden();
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1");
    r.answer(&prepared(7, 1));
    done(&mut r, "CALL p()");
    assert!(has(&r.say(&insert), QUESTION));
    r.answer(&rows(&["t", "CREATE TEMPORARY TABLE `t` ("]));
    assert_eq!(r.answer(&probe("1")), packet(0, &insert));
}

#[test]
fn what_was_prepared_for_it_out_of_a_text_gets_keys_when_it_is_gone() {
    let mut r = hidden();
    done(&mut r, "PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'");
    done(&mut r, "EXECUTE s");
    done(&mut r, "DROP TEMPORARY TABLE t");
    // Whether it was one nobody knew behind the EXECUTE.
    let asked = r.probed("EXECUTE s", "1");
    assert!(asked.contains("SELECT `id` FROM `t`"), "{asked}");
    assert_keyed(&String::from_utf8_lossy(&r.answer(&err())));
}

#[test]
fn a_load_that_is_prepared_for_it_is_refused() {
    let mut r = hidden();
    assert_eq!(
        stmt_prepare(&mut r, "LOAD DATA INFILE 'f' INTO TABLE t (a)", "1"),
        ""
    );
    assert!(has(&r.output(), "LOAD DATA in a prepared statement"));
    assert!(
        r.query("PREPARE s FROM 'LOAD DATA INFILE ''f'' INTO TABLE t (a)'")
            .is_empty()
    );
    assert!(has(&r.output(), "LOAD DATA in a prepared statement"));
}

#[test]
fn what_is_carried_out_at_once_goes_into_it() {
    let mut r = hidden();
    done(&mut r, "EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (1)'");
}

/// What goes to the server once it has told its state and what the table is.
fn asked(r: &mut Rig, text: &str, is_temporary: bool) -> String {
    assert!(has(&r.query(text), "@@session.sql_mode"));
    let sent = r.answer(&probe("1"));
    assert!(has(&sent, QUESTION), "{}", String::from_utf8_lossy(&sent));
    let sent = match is_temporary {
        true => r.answer(&rows(&["t", "CREATE TEMPORARY TABLE `t` ("])),
        false => r.answer(&rows(&["t", "CREATE TABLE `t` ("])),
    };
    String::from_utf8_lossy(&sent).into_owned()
}

#[test]
fn one_that_was_made_out_of_sight_hides_the_rule() {
    for text in ["CALL p()", "EXECUTE nosuch", "BEGIN NOT ATOMIC DO 1; END"] {
        let mut r = begun();
        done(&mut r, text);
        assert_eq!(asked(&mut r, INSERT, true).get(5..), Some(INSERT), "{text}");
        r.answer(&ok(1, 0));
        assert!(has(&r.query(INSERT), INSERT), "nothing is asked again");
        r.answer(&ok(1, 0));
        done(&mut r, "DROP TEMPORARY TABLE t");
        assert!(
            has(&r.query(INSERT), QUESTION),
            "one may have been made since"
        );
        assert_keyed(&String::from_utf8_lossy(&r.answer(&err())));
    }
    // As when what made it failed.
    let mut r = begun();
    failed(&mut r, "CALL p()");
    assert_eq!(asked(&mut r, INSERT, true).get(5..), Some(INSERT));
}

#[test]
fn one_that_was_not_made_out_of_sight_is_asked_for_once() {
    let mut r = begun();
    done(&mut r, "CALL p()");
    assert!(asked(&mut r, INSERT, false).contains("100"));
    r.answer(&ok(1, 0));
    assert!(has(&r.query(INSERT), "101"));
    r.answer(&ok(1, 0));
    done(&mut r, "CALL p()");
    assert!(asked(&mut r, INSERT, false).contains("102"));
}

#[test]
fn nobody_asks_after_what_makes_none() {
    for text in [
        "SET sql_mode = ''",
        "USE d",
        "SELECT 1",
        "CREATE TEMPORARY TABLE u (a INT)",
        "UPDATE u SET a = f(1)",
        "COMMIT",
    ] {
        let mut r = begun();
        done(&mut r, text);
        assert_keyed(&r.probed(INSERT, "1"));
    }
}

#[test]
fn what_was_prepared_before_one_was_made_out_of_sight_goes_into_it() {
    let mut r = begun();
    assert!(stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1").contains("LAST_INSERT_ID"));
    r.answer(&prepared(7, 2));
    let insert = execute(7, &[0, 1, 253, 0, 1, b'x']);
    done(&mut r, "CALL p()");
    assert!(has(&r.say(&insert), "@@session.sql_mode"));
    assert!(has(&r.answer(&probe("1")), QUESTION));
    let sent = r.answer(&rows(&["t", "CREATE TEMPORARY TABLE `t` ("]));
    assert!(
        has(&sent, "INSERT INTO t (a) VALUES (?)"),
        "the client's own text"
    );
}

#[test]
fn a_load_goes_into_one_that_was_made_out_of_sight() {
    const LOAD: &str = "LOAD DATA INFILE 'f' INTO TABLE t (a)";
    let mut r = begun();
    done(&mut r, "CALL p()");
    assert_eq!(asked(&mut r, LOAD, true).get(5..), Some(LOAD));
}
