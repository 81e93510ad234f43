//! Keys that the server computes: it is asked for their values first, and what goes out has those in it.

use keywright_rewrite::KeyForm;
use keywright_session::*;

use super::rig::*;
use super::select::cut_off;

const INSERT: &str = "INSERT INTO t (id, a) VALUES (@k + 1, 2)";
/// Types of columns, as the server numbers them.
const DOUBLE: u8 = 5;
pub(super) const LONGLONG: u8 = 8;
const DECIMAL: u8 = 246;
const STRING: u8 = 253;

/// A result of one value of this type, behind which the server warns so often.
pub(super) fn value(of_type: u8, value: Option<&str>, warnings: u8) -> Vec<u8> {
    let mut column = def(2);
    let at = column.len() - 6;
    column[at] = of_type;
    let row = match value {
        Some(text) => [&[text.len() as u8], text.as_bytes()].concat(),
        None => vec![0xFB],
    };
    let end = [0xFE, 0, 0, 2, 0, warnings, 0];
    [packet(1, &[1]), column, packet(3, &row), packet(4, &end)].concat()
}

/// What goes out once the server has answered the question so.
fn sent(r: &mut Rig, text: &str, answer: &[u8]) -> String {
    let asked = r.probed(text, "1");
    assert!(asked.contains("SELECT (@k + 1) LIMIT 1"), "{asked}");
    String::from_utf8_lossy(&r.answer(answer)).into_owned()
}

fn new() -> Rig {
    rig(KeyForm::Integer, DEPRECATE_EOF)
}

#[test]
fn null_and_zero_ask_for_a_key() {
    for answer in [
        value(LONGLONG, None, 0),
        value(STRING, None, 0),
        value(LONGLONG, Some("0"), 0),
        value(DECIMAL, Some("-0"), 0),
    ] {
        let mut r = new();
        let sent = sent(&mut r, INSERT, &answer);
        assert!(
            sent.contains("(id, a) VALUES ( LAST_INSERT_ID(100) , 2)"),
            "{sent}"
        );
        r.answer(&ok(1, 100));
        assert_eq!(r.output(), ok(1, 100));
    }
}

#[test]
fn another_integer_is_the_key_that_goes_out() {
    for (of_type, key) in [
        (LONGLONG, "7"),
        (LONGLONG, "18446744073709551615"),
        (LONGLONG, "-7"),
        (DECIMAL, "7"),
        (STRING, "7"),
        (DOUBLE, "700000"),
    ] {
        let mut r = new();
        let sent = sent(&mut r, INSERT, &value(of_type, Some(key), 0));
        assert!(
            sent.contains(&format!("(id, a) VALUES ( {key} , 2)")),
            "{sent}"
        );
        assert!(r.requests.is_empty());
        r.answer(&ok(1, 7));
        assert_eq!(r.output(), ok(1, 7));
    }
}

/// MariaDB has numbers in the character set of the results: utf16, utf16le, utf32.
#[test]
fn a_number_in_two_or_four_bytes_for_each_digit_is_read() {
    for wide in ["\x001\x000", "1\x000\x00", "\0\0\x001\0\0\x000"] {
        let mut r = new();
        let sent = sent(&mut r, INSERT, &value(LONGLONG, Some(wide), 0));
        assert!(sent.contains("VALUES ( 10 , 2)"), "{wide:?} {sent}");
        // A text may have such bytes of its own.
        let mut r = new();
        let text = r.probed(INSERT, "1");
        assert!(text.contains("SELECT (@k + 1)"), "{text}");
        assert!(r.answer(&value(STRING, Some(wide), 0)).is_empty());
        assert!(has(&r.output(), "not of the kind of the key"));
    }
}

#[test]
fn what_is_no_integer_is_refused_and_so_is_what_the_server_warns_of() {
    for answer in [
        value(STRING, Some("7a"), 0),
        value(STRING, Some("7 "), 0),
        value(STRING, Some(""), 0),
        value(STRING, Some("1234567890123456789"), 0),
        value(DECIMAL, Some("7.5"), 0),
        value(DOUBLE, Some("1e20"), 0),
        value(DOUBLE, Some("9007199254740993"), 0),
        value(LONGLONG, Some("7"), 1),
        value(LONGLONG, None, 1),
        err(),
    ] {
        let mut r = new();
        let sent = sent(&mut r, INSERT, &answer);
        assert_eq!(sent, "");
        assert!(has(
            &r.output(),
            "not of the kind of the key, or has a warning"
        ));
        // It is over: the next one is asked for anew.
        assert!(has(&r.query(INSERT), "SELECT (@k + 1)"));
    }
}

/// Perhaps the server finds another error before.
#[test]
fn a_statement_whose_key_is_out_of_range_fails_by_itself() {
    let out_of_range = packet(
        1,
        b"\xFF\x9A\x06#22003BIGINT value is out of range in '(@`k` + 1)'",
    );
    let mut r = new();
    assert!(sent(&mut r, INSERT, &out_of_range).contains(INSERT));
    r.answer(&out_of_range);
    assert_eq!(r.output(), out_of_range);
    // IGNORE could make a warning of it, and another number may be in range.
    for text in [
        "INSERT IGNORE INTO t (id, a) VALUES (@k + 1, 2)",
        "INSERT INTO t (id, a) VALUES (UUID_SHORT() + @k, 2)",
        // The server could number the row before.
        "INSERT INTO t (id, a) VALUES (NULL, 1), (LAST_INSERT_ID() + 7, 2)",
    ] {
        assert!(has(&r.query(text), "SELECT ("));
        assert!(r.answer(&out_of_range).is_empty());
        assert!(has(&r.output(), "not of the kind of the key"));
    }
    let interrupted = packet(1, b"\xFF\x25\x05#70100Query execution was interrupted");
    assert_eq!(sent(&mut r, INSERT, &interrupted), "");
    assert_eq!(r.output(), interrupted);
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn a_key_is_refused_where_none_may_be_given() {
    let mut r = rig_of_rule(|rule| rule.on_explicit = OnExplicit::Refuse);
    assert_eq!(sent(&mut r, INSERT, &value(LONGLONG, Some("7"), 0)), "");
    assert!(has(&r.output(), "may not be given"));
    let sent = r.query(INSERT);
    assert!(has(&sent, "SELECT (@k + 1)"));
    let sent = r.answer(&value(LONGLONG, None, 0));
    assert!(has(&sent, "LAST_INSERT_ID(100)"));
}

#[test]
fn a_rule_that_observes_asks_nothing() {
    let mut r = rig_of_rule(|rule| rule.mode = Mode::Observe);
    assert!(r.probed(INSERT, "1").contains(INSERT));
}

/// LAST_INSERT_ID() is put right before the question that sees it, too.
#[test]
fn what_is_asked_for_sees_the_right_last_id() {
    let mut r = new();
    r.probed(
        "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
        "1",
    );
    r.answer(&ok(1, 100));
    let asked = r.query("INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(), 2)");
    assert!(has(&asked, "SET last_insert_id=100"), "{asked:?}");
    let asked = r.answer(&ok(0, 0));
    assert!(
        has(&asked, "SELECT (LAST_INSERT_ID()) LIMIT 1"),
        "{asked:?}"
    );
    let sent = r.answer(&value(LONGLONG, Some("100"), 0));
    assert!(has(&sent, "VALUES ( 100 , 2)"), "{sent:?}");
}

/// The client knows of its own parameters only; the others get what the server has computed, at each execution.
#[test]
fn prepared_statements_ask_at_each_execution() {
    let mut r = new();
    let text = "INSERT INTO t (a, id, b) VALUES (?, @k + 1, ?)";
    let sent = stmt_prepare(&mut r, text, "1");
    assert!(sent.contains("VALUES (?,  ? , ?)"), "{sent}");
    r.answer(&prepared(9, 3));
    assert_eq!(r.output(), prepared(9, 2));
    let number = |value: u8| [value, 0, 0, 0, 0, 0, 0, 0];
    let values = [&[0, 1, 8, 0, 8, 0][..], &number(4), &number(5)].concat();
    // An explicit key.
    let asked = r.say(&execute(9, &values));
    assert!(has(&asked, "SELECT (@k + 1) LIMIT 1"), "{asked:?}");
    let sent = r.answer(&value(LONGLONG, Some("7"), 0));
    let wanted = [
        &[0, 1, 8, 0, 8, 0, 8, 0][..],
        &number(4),
        &number(7),
        &number(5),
    ]
    .concat();
    assert_eq!(sent, packet(0, &execute(9, &wanted)));
    r.answer(&ok(1, 7));
    // One that asks: the key is reported by another text.
    let asked = r.say(&execute(9, &values));
    assert!(has(&asked, "SELECT (@k + 1) LIMIT 1"), "{asked:?}");
    let sent = r.answer(&value(STRING, None, 0));
    assert!(
        has(&sent, "COALESCE") || has(&sent, "LAST_INSERT_ID(?)"),
        "{sent:?}"
    );
    // What is no integer.
    let mut r = new();
    stmt_prepare(&mut r, text, "1");
    r.answer(&prepared(9, 3));
    r.output();
    r.say(&execute(9, &values));
    assert!(r.answer(&value(STRING, Some("7a"), 0)).is_empty());
    assert!(has(&r.output(), "not of the kind of the key"));
}

/// The server refuses a row when it prepares the statement, and not when it is executed.
#[test]
fn a_row_is_no_key() {
    for row in ["(0,0)", "((0, 0))", "(@k,1)", "(SELECT 1,2)", "1 + (2, 3)"] {
        let text = format!("INSERT INTO t (a, id) VALUES (?, {row})");
        let mut r = new();
        let sent = stmt_prepare(&mut r, &text, "1");
        assert_eq!(sent, "", "{row}");
        assert!(has(&r.output(), "as key"), "{row}");
    }
    // Arguments.
    for list in ["COALESCE(@k, 1)", "IF((1), (@k), GREATEST(1, 2))"] {
        let mut r = new();
        let text = format!("INSERT INTO t (a, id) VALUES (?, {list})");
        let sent = stmt_prepare(&mut r, &text, "1");
        assert!(sent.contains("VALUES (?,  ? )"), "{list}: {sent}");
    }
}

const QUERY: &str = "INSERT INTO t (id, a) VALUES ((SELECT i FROM u), 2)";

/// A session whose statement with a query as key went out, which the server was asked for the type of.
fn queried() -> Rig {
    queried_by(|_| {})
}

/// The same by a rule that was changed.
fn queried_by(change: impl FnOnce(&mut Rule)) -> Rig {
    let mut r = rig_of_rule(|rule| {
        rule.is_signed = true;
        change(rule);
    });
    let asked = r.query(QUERY);
    let asked = match has(&asked, "@@session.sql_mode") {
        true => r.answer(&probe_in("STRICT_TRANS_TABLES", "1")),
        false => asked,
    };
    assert!(has(&asked, "SELECT (SELECT i FROM u)"), "{asked:?}");
    let sent = r.answer(&described(&["i"]));
    assert!(
        has(
            &sent,
            "CASE WHEN (SELECT i FROM u)<>0 THEN (SELECT i FROM u) ELSE 3935559000370003845*("
        ),
        "{sent:?}"
    );
    assert!(r.requests.is_empty());
    r
}

/// A query is carried out where it stands.
#[test]
fn a_query_that_comes_to_a_key_is_sent_once() {
    let mut r = queried();
    assert!(r.answer(&ok(1, 5)).is_empty());
    assert_eq!(r.output(), ok(1, 5));
    let mut r = queried();
    assert!(r.answer(&err()).is_empty());
    assert_eq!(r.output(), err());
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

/// The server made no id for it, and LAST_INSERT_ID() is what it was.
#[test]
fn a_query_that_comes_to_a_key_leaves_the_last_id_known() {
    let mut r = queried();
    r.answer(&ok(1, 0));
    let sent = r.query("LOAD DATA INFILE 'f' INTO TABLE t (a)");
    assert!(has(&sent, "SET last_insert_id=0"), "{sent:?}");
}

#[test]
fn a_query_that_comes_to_none_is_replaced_by_a_key() {
    let no_key = b"\xFF\x9A\x06#22003BIGINT value is out of range in '(3935559000370003845 * (1))'";
    let mut r = queried();
    let sent = r.answer(&packet(1, no_key));
    assert!(
        has(&sent, "VALUES ( LAST_INSERT_ID(100) , 2)") || has(&sent, "VALUES ( 100 , 2)"),
        "{sent:?}"
    );
    r.answer(&ok(1, 100));
    assert_eq!(r.output(), ok(1, 100));
}

/// Perhaps it came to none, which the server has cut off.
#[test]
fn a_query_whose_error_is_cut_off_is_refused() {
    let mut r = queried();
    assert!(r.answer(&cut_off("")).is_empty());
    let told = r.output();
    assert!(has(&told, "character_set_results"), "{told:?}");
    assert_eq!(told.get(3..7), Some(&[1, 0xFF, 0xD3, 4][..]), "1235");
    assert!(r.requests.is_empty());
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

/// What it reads may be a view that calls a function, and the guard has it read more than once.
#[test]
fn a_query_that_may_leave_something_behind_is_refused() {
    let mut r = rig_of_rule(|rule| (rule.is_signed, rule.is_steady) = (true, false));
    let asked = r.query(QUERY);
    assert!(has(&asked, "@@session.sql_mode"), "{asked:?}");
    let sent = r.answer(&probe_in("STRICT_TRANS_TABLES", "1"));
    assert!(sent.is_empty(), "{sent:?}");
    assert!(has(&r.output(), "a subquery as key"));
}

/// MySQL opens a temporary table once only in a statement, and either server a locked one once for each name that it was locked by.
#[test]
fn a_query_over_a_table_that_can_be_read_only_once_is_refused() {
    let reopened = packet(1, b"\xFF\x71\x04#HY000Can't reopen table: 'u'");
    let locked = packet(
        1,
        b"\xFF\x4C\x04#HY000Table 'u' was not locked with LOCK TABLES",
    );
    for error in [reopened, locked] {
        let mut r = queried();
        let sent = r.answer(&error);
        assert!(sent.is_empty(), "{sent:?}");
        let told = r.output();
        assert!(has(&told, "a subquery as key"), "{told:?}");
        assert_eq!(told.get(3..7), Some(&[1, 0xFF, 0xD3, 4][..]), "1235");
        assert!(has(&r.query("SELECT 1"), "SELECT 1"));
        // It goes out as its client wrote it where the rule says so.
        let mut r = queried_by(|rule| rule.on_unsupported = OnUnsupported::Pass);
        let sent = r.answer(&error);
        assert!(has(&sent, QUERY), "{sent:?}");
    }
}
