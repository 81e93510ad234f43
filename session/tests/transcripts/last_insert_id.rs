//! What LAST_INSERT_ID() shows after statements that give it a value of their own.

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::*;

use super::rig::*;

const ROW: &str = "INSERT INTO t (id, a) VALUES (NULL, 1)";

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
fn so_is_a_number_that_a_name_in_quotes_sets() {
    for text in ["SELECT `last_insert_id`(77)", "DO `LAST_INSERT_ID` (77)"] {
        let mut r = begun();
        assert!(has(&r.query(text), text));
        r.answer(&ok(0, 0));
        fails_after(&mut r);
    }
}

/// Its rows may be numbered by the server.
#[test]
fn so_is_the_first_key_of_a_table_that_is_made_with_rows() {
    for text in [
        "CREATE TEMPORARY TABLE z (k BIGINT AUTO_INCREMENT PRIMARY KEY) SELECT a FROM u",
        "CREATE TABLE z (k BIGINT AUTO_INCREMENT PRIMARY KEY) AS (SELECT a FROM u)",
        "CREATE TABLE z (k BIGINT AUTO_INCREMENT PRIMARY KEY) VALUES ROW(1)",
    ] {
        let mut r = begun();
        assert!(has(&r.query(text), text));
        r.answer(&ok(1, 0));
        let sent = r.probed("INSERT INTO t (a) VALUES (2)", "1");
        let sent = r.tell(sent.into_bytes(), &["id", "a"]);
        assert!(has(&sent, "(101,2)"), "{text}: {sent:?}");
        r.answer(&err());
        let sent = r.query("SELECT LAST_INSERT_ID()");
        assert!(has(&sent, "SELECT LAST_INSERT_ID()"), "{text}: {sent:?}");
    }
    let mut r = begun();
    r.query("CREATE TEMPORARY TABLE z (k BIGINT AUTO_INCREMENT PRIMARY KEY)");
    r.answer(&ok(0, 0));
    let sent = r.probed("INSERT INTO t (a) VALUES (2)", "1");
    assert!(sent.contains("LAST_INSERT_ID(101)"), "{sent}");
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
}

/// Of one row that may be updated the number of rows tells whether it went in: an update that changes something counts as two.
#[test]
fn a_row_that_goes_in_beside_an_update_is_known_by_its_count() {
    let text = "INSERT INTO t (a) VALUES (LAST_INSERT_ID(7)) ON DUPLICATE KEY UPDATE a = 1";
    for (affected, id) in [(1, 101), (2, 7), (0, 7)] {
        let mut r = begun();
        r.query(text);
        r.output();
        r.answer(&ok(affected, 7));
        assert_eq!(r.output(), ok(affected, id));
    }
    // Where clients ask for the rows that were found, an update that changes nothing counts as one.
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | FOUND_ROWS);
    r.probed(text, "1");
    r.answer(&ok(1, 7));
    assert_eq!(r.output(), ok(1, 7));
}

/// Behind SET sql_mode what looks like a string may be none: a statement sees, or sets, what its text shows in any modes.
#[test]
fn where_the_modes_are_not_known_what_is_in_quotes_may_be_carried_out() {
    const SEES: &str = "SELECT 'x\\', LAST_INSERT_ID(), ' -- '";
    for (text, is_prepared, is_seen) in [
        (SEES, false, true),
        (SEES, true, true),
        ("SELECT \"f\"(1)", false, true),
        ("SELECT 'LAST_INSERT_ID()'", false, false),
    ] {
        let mut r = begun();
        assert!(has(&r.query("INSERT INTO t (a) VALUES (2)"), "(101)"));
        r.answer(&err());
        let sent = r.query("SET sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES'");
        assert!(has(&sent, "SET sql_mode"), "{sent:?}");
        r.answer(&ok(0, 0));
        let sent = match is_prepared {
            true => {
                r.say(&[&[COM_STMT_PREPARE], text.as_bytes()].concat());
                r.answer(&prepared(7, 0));
                r.say(&execute(7, &[]))
            }
            false => r.query(text),
        };
        assert_eq!(has(&sent, "last_insert_id=100"), is_seen, "{text} {sent:?}");
    }
    let mut r = begun();
    r.query("SET sql_mode='NO_BACKSLASH_ESCAPES'");
    r.answer(&ok(0, 0));
    r.query("SELECT 'x\\', LAST_INSERT_ID(7), ' -- '");
    r.answer(&ok(0, 0));
    let sent = r.probed("INSERT INTO t (a) VALUES (2)", "1");
    assert!(!sent.contains("LAST_INSERT_ID("), "{sent}");
}

/// The result of RETURNING id, with these ids.
fn returned(ids: &[u8]) -> Vec<u8> {
    let mut answer = packet(1, &[1]);
    answer.extend(def(2));
    for id in ids {
        answer.extend(packet(3, &[1, *id]));
    }
    answer.extend(packet(4, &[0xFE, 0, 0, 2, 0, 0, 0]));
    answer
}

/// Rows that are returned went in, or were updated.
#[test]
fn where_no_row_is_returned_none_went_in() {
    let text = "INSERT IGNORE INTO t (a) VALUES (1), (2) RETURNING id";
    for (ids, asked) in [
        (&b"5"[..], "SET last_insert_id=101"),
        (b"56", "SET last_insert_id=101"),
        (b"", "SELECT LAST_INSERT_ID()"),
    ] {
        let mut r = begun();
        assert!(has(&r.query(text), "101"));
        r.answer(&returned(ids));
        let sent = r.query("SELECT LAST_INSERT_ID()");
        assert!(has(&sent, asked), "{ids:?} {sent:?}");
    }
}

pub(super) fn ok_in_words(affected: u8, id: u8, words: &str) -> Vec<u8> {
    let payload = [0, affected, id, 2, 0, 0, 0, words.len() as u8];
    packet(1, &[&payload, words.as_bytes()].concat())
}

/// Of several rows the packet says in words how many were updated.
#[test]
fn several_rows_of_which_none_went_in_report_no_key() {
    let text = "INSERT INTO t (a) VALUES (1), (2), (3) ON DUPLICATE KEY UPDATE a = 2";
    // One was updated and two stayed as they were; one was updated and one went in.
    for (affected, words, id) in [
        (2, "Records: 3  Duplicates: 1  Warnings: 0", 9),
        (6, "Enregistrements: 3  Doublons: 3  Avertissements: 0", 9),
        (3, "Records: 3  Duplicates: 1  Warnings: 0", 101),
        (4, "Records: 3  Duplicates: 1  Warnings: 0", 101),
        (3, "", 101),
    ] {
        let mut r = begun();
        r.query(text);
        r.output();
        r.answer(&ok_in_words(affected, 9, words));
        assert_eq!(r.output(), ok_in_words(affected, id, words), "{words}");
    }
}

/// A trigger that may read LAST_INSERT_ID() was made while the connection was open, as the next schema refresh finds out.
#[test]
fn a_trigger_that_came_later_sees_what_was_there_before() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let schema = Arc::new(SchemaChanges::default());
    let rule = r.rule_in(Mode::Rewrite);
    let rules = Rules::new(vec![rule], false).with_schema(Arc::clone(&schema));
    r.s = Session::new(Arc::new(rules), r.facts());
    assert!(r.probed(ROW, "1").contains("LAST_INSERT_ID(100)"));
    r.answer(&ok(1, 100));
    schema.note_watched([("D", "t")].into_iter());
    schema.note_schema_refresh(0, true);
    let sent = r.query(ROW);
    let sent = r.tell(sent, &["id", "a"]);
    assert!(has(&sent, "VALUES (101, 1)"), "{sent:?}");
    r.answer(&ok(1, 0));
    r.output();
    // Another table's.
    schema.note_watched([("d", "other")].into_iter());
    schema.note_schema_refresh(1, true);
    let sent = r.query(ROW);
    let sent = r.tell(sent, &["id", "a"]);
    assert!(has(&sent, "LAST_INSERT_ID(102)"), "{sent:?}");
}

/// A statement of the proxy's own would be what it tells of.
#[test]
fn diagnostics_are_of_the_statement_before() {
    for (text, answer) in [
        (
            "INSERT INTO t (a) VALUES (1), (f()), (3)",
            ok_in_words(3, 0, "Records: 3  Duplicates: 0  Warnings: 0"),
        ),
        ("INSERT INTO t (a) VALUES (1)", err()),
    ] {
        let mut r = begun();
        r.query(text);
        r.answer(&answer);
        for diagnostics in [
            "GET DIAGNOSTICS @n = ROW_COUNT",
            "get current diagnostics condition 1 @s = returned_sqlstate, @t = message_text",
        ] {
            let sent = r.query(diagnostics);
            assert!(has(&sent, diagnostics), "{text} {sent:?}");
            r.answer(&ok(0, 0));
        }
        let sent = r.query("SELECT LAST_INSERT_ID()");
        assert!(has(&sent, "SET last_insert_id="), "{text} {sent:?}");
    }
}

/// Three rows went in, whose first key is not the server's LAST_INSERT_ID() yet.
fn of_three_rows() -> Rig {
    let mut r = begun();
    r.query("INSERT INTO t (a) VALUES (1), (f()), (3)");
    let words = "Records: 3  Duplicates: 0  Warnings: 0";
    r.answer(&ok_in_words(3, 0, words));
    r
}

/// Nothing but writing rows makes ROW_COUNT() 3.
#[test]
fn a_count_of_rows_is_asked_for_before_the_last_id_is_put_right() {
    for text in [
        "UPDATE audit SET n = ROW_COUNT()",
        "SELECT ROW_COUNT() FROM DUAL",
    ] {
        let mut r = of_three_rows();
        assert!(has(&r.query(text), text), "{text}");
        r.answer(&ok(1, 0));
        let sent = r.query("SELECT LAST_INSERT_ID()");
        assert!(has(&sent, "SET last_insert_id=101"), "{text} {sent:?}");
    }
}

/// An INSERT may make a key that is to be shown.
#[test]
fn so_is_it_by_an_insert() {
    let put_right =
        "SET last_insert_id=CAST(IF(LAST_INSERT_ID()=100,101,LAST_INSERT_ID()) AS UNSIGNED)";
    for (id, asked) in [
        (0, put_right),
        (7, put_right),
        // The server's, in all likelihood.
        (100, "SELECT LAST_INSERT_ID()"),
    ] {
        let mut r = of_three_rows();
        let text = "INSERT INTO audit (n) VALUES (ROW_COUNT())";
        assert!(has(&r.query(text), text), "{id}");
        r.answer(&ok(1, id));
        let sent = r.query("SELECT LAST_INSERT_ID()");
        assert!(has(&sent, asked), "{id} {sent:?}");
    }
}

#[test]
fn what_may_see_the_last_id_has_it_put_right_first() {
    for text in [
        "UPDATE audit SET n = ROW_COUNT(), id = LAST_INSERT_ID()",
        "INSERT INTO audit (n) VALUES (ROW_COUNT() + f())",
        "UPDATE audit SET n = 1",
    ] {
        let mut r = of_three_rows();
        let sent = r.query(text);
        assert!(has(&sent, "SET last_insert_id=101"), "{text} {sent:?}");
    }
}

/// Of several statements in one text another may see it.
#[test]
fn so_have_several_statements() {
    for text in [
        "UPDATE audit SET n = ROW_COUNT(); SELECT LAST_INSERT_ID()",
        "BEGIN; SELECT LAST_INSERT_ID(); COMMIT",
        "BEGIN; UPDATE audit SET n = LAST_INSERT_ID() WHERE id = 1; COMMIT",
        "SELECT 'last'; SELECT @@identity",
        "SELECT 1; DELETE FROM audit",
        "COMMIT; CALL p()",
        "SELECT 1; SET sql_mode = 'ANSI_QUOTES'; SELECT 'last'",
    ] {
        let mut r = several_of_three_rows();
        let sent = r.query(text);
        assert!(has(&sent, "SET last_insert_id=100"), "{text} {sent:?}");
        assert!(has(&r.answer(&ok(0, 0)), text));
    }
    let mut r = several_of_three_rows();
    assert!(has(&r.query("BEGIN; SELECT 1; COMMIT"), "BEGIN"));
}

/// It is what any of them sets, not what was known before: an INSERT that fails leaves it.
#[test]
fn several_statements_may_set_it() {
    for text in [
        "BEGIN; SELECT LAST_INSERT_ID(7)",
        "BEGIN; DO LAST_INSERT_ID(7); COMMIT",
    ] {
        let mut r = several_of_three_rows();
        assert!(has(&r.query("SELECT LAST_INSERT_ID()"), "=100"));
        r.answer(&ok(0, 0));
        r.answer(&ok(0, 0));
        assert!(has(&r.query(text), text));
        r.answer(&ok(0, 0));
        r.query("INSERT INTO t (a) VALUES (1)");
        r.answer(&err());
        let sent = r.query("SELECT LAST_INSERT_ID()");
        assert!(!has(&sent, "=100"), "{text} {sent:?}");
    }
}

fn several_of_three_rows() -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    r.probed("INSERT INTO t (a) VALUES (1), (f()), (3)", "1");
    r.answer(&ok_in_words(3, 0, "Records: 3  Duplicates: 0  Warnings: 0"));
    r
}

/// Its key is a parameter, and of the client's own.
#[test]
fn an_execution_with_a_key_of_its_own_that_fails_leaves_it() {
    let mut r = of_three_rows();
    stmt_prepare(&mut r, "INSERT INTO t (id, a) VALUES (?, 1)", "1");
    r.answer(&prepared(7, 1));
    let own = execute(7, &[&[0, 1, 8, 0][..], &5u64.to_le_bytes()].concat());
    assert!(r.say(&own).ends_with(&own), "it is sent as it is");
    r.answer(&err());
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "SET last_insert_id=101"), "{sent:?}");
}
