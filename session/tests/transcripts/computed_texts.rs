//! Keys that the server computes and that are no numbers: it is asked which of them are NULL.

use keywright_rewrite::KeyForm;
use keywright_session::*;

use super::computed::{LONGLONG, value};
use super::rig::*;

const OF_TEXT: &str = "INSERT INTO t (id, a) VALUES (UUID(), 1), (NULLIF('a', 'b'), 2)";

/// What goes out once the server has said whether a key that is text is NULL.
fn sent_of_text(r: &mut Rig, text: &str, answer: &[u8]) -> String {
    let asked = r.probed(text, "1");
    assert!(asked.contains(" IS NULL LIMIT 1"), "{asked}");
    assert!(!asked.contains("INSERT"), "{asked}");
    String::from_utf8_lossy(&r.answer(answer)).into_owned()
}

/// It would be stored as NULL, without a key and without an error.
#[test]
fn of_keys_that_are_text_null_asks_for_one() {
    let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
    let asked = r.probed(OF_TEXT, "1");
    let question = "SELECT (NULLIF('a', 'b')) IS NULL LIMIT 1";
    assert!(asked.contains(question), "{asked}");
    let sent = String::from_utf8_lossy(&r.answer(&value(LONGLONG, Some("1"), 0))).into_owned();
    assert!(sent.contains("VALUES (UUID(), 1), ( 'k0' , 2)"), "{sent}");
    r.answer(&ok(2, 0));
    assert_eq!(r.output(), ok(2, 0));
    // What is not stays as it is written, of which the server makes what it would natively.
    r.requests.clear();
    let sent = sent_of_text(&mut r, OF_TEXT, &value(LONGLONG, Some("0"), 0));
    assert!(sent.contains(OF_TEXT), "{sent}");
    assert!(r.requests.is_empty());
    r.answer(&ok(2, 0));
    assert_eq!(r.output(), ok(2, 0));
    // The one before has said nothing of this.
    let sent = sent_of_text(&mut r, OF_TEXT, &value(LONGLONG, Some("0"), 1));
    assert_eq!(sent, "");
    assert!(has(&r.output(), "has a warning"));
}

#[test]
fn a_text_that_no_key_may_be_is_refused_once_it_is_known() {
    let mut r = rig_of_rule(|rule| {
        rule.form = KeyForm::Text;
        rule.on_explicit = OnExplicit::Refuse;
    });
    let text = "INSERT INTO t (id, a) VALUES (@k, 2)";
    let sent = sent_of_text(&mut r, text, &value(LONGLONG, Some("0"), 0));
    assert_eq!(sent, "");
    assert!(has(&r.output(), "may not be given"));
    r.form = KeyForm::Text;
    let sent = sent_of_text(&mut r, text, &value(LONGLONG, Some("1"), 0));
    assert!(sent.contains("VALUES ( 'k0' , 2)"), "{sent}");
}

/// Of what cannot be asked before it is not known whether it is NULL.
#[test]
fn a_text_that_may_be_null_is_refused_where_it_cannot_be_asked_for() {
    for (value, why) in [
        ("f(1)", "a function call as key"),
        ("uuid_v5('a', 'b')", "a function call as key"),
        ("a", "a column as key"),
        ("(SELECT b FROM u)", "a subquery as key"),
    ] {
        let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
        let text = format!("INSERT INTO t (a, id) VALUES (1, {value})");
        assert_eq!(r.probed(&text, "1"), "", "{value}");
        assert!(has(&r.output(), why), "{value}");
    }
    for value in ["LOWER(?)", "@k", "NULLIF(?, '')"] {
        let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
        let text = format!("INSERT INTO t (a, id) VALUES (?, {value})");
        assert_eq!(stmt_prepare(&mut r, &text, "1"), "", "{value}");
        assert!(has(&r.output(), "as key"), "{value}");
    }
    // Prepared, a UUID of the server's is a key of its own.
    let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
    let text = "INSERT INTO t (a, id) VALUES (?, UUID())";
    assert!(stmt_prepare(&mut r, text, "1").contains(text));
}

/// After `SET collation_connection = ucs2_general_ci`, UNHEX of digits is NULL.
#[test]
fn unhex_is_no_key_where_digits_are_wide() {
    let cases = [
        ("VALUES (1, UNHEX('6ccd'))", "utf8mb4 utf8mb4", false),
        ("VALUES (1, UNHEX('6ccd'))", "utf8mb4 ucs2", true),
        ("SELECT 1, UNHEX('6ccd')", "utf8mb4 utf8mb4", false),
        ("SELECT 1, UNHEX('6ccd')", "utf8mb4 ucs2", true),
    ];
    for (rows_of, charsets, is_refused) in cases {
        let text = &format!("INSERT INTO t (a, id) {rows_of}");
        let mut r = rig(KeyForm::Bytes, DEPRECATE_EOF);
        assert!(has(&r.query(text), "@@session.sql_mode"));
        let state = ["", charsets, "d", "1", "0", SERVER];
        let sent = String::from_utf8_lossy(&r.answer(&rows(&state))).into_owned();
        assert_eq!(sent.contains(text), !is_refused, "{sent}");
        let told = r.output();
        assert_eq!(has(&told, "a function call as key"), is_refused);
    }
}

/// It stays as it is written, of whatever rows: the server says what is there twice.
#[test]
fn a_query_brings_keys_that_are_no_numbers() {
    for query in [
        "SELECT 'abc', 1 FROM DUAL WHERE NOT EXISTS (SELECT * FROM t WHERE a = 1)",
        "SELECT UUID(), a FROM u ORDER BY a",
        "SELECT 7, COUNT(*) FROM t",
    ] {
        let text = format!("INSERT INTO t (id, a) {query}");
        let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
        let sent = r.probed(&text, "1");
        assert!(sent.contains(&text), "{sent}");
        assert!(r.requests.is_empty());
        r.answer(&ok(2, 0));
        assert_eq!(r.output(), ok(2, 0));
        let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
        assert!(stmt_prepare(&mut r, &text, "1").contains(&text));
        let mut r = rig_of_rule(|rule| {
            rule.form = KeyForm::Text;
            rule.on_explicit = OnExplicit::Refuse;
        });
        assert_eq!(r.probed(&text, "1"), "");
        assert!(has(&r.output(), "may not be given"));
    }
}
