//! The session's sql_mode or character set changes after a statement was prepared: what its text says stays what it was.

use keywright_rewrite::KeyForm;
use keywright_session::*;

use super::rig::*;

const REFUSED: &str = "another sql_mode or character set: prepare it again";
/// Where the first statement is prepared.
const BEFORE: (&str, &str) = ("", "utf8mb4 utf8mb4");
const LATIN1: (&str, &str) = ("", "latin1 latin1");

fn state((sql_mode, charsets): (&str, &str), insert_id: &str) -> Vec<u8> {
    rows(&[sql_mode, charsets, "d", "1", insert_id, SERVER])
}

/// What a command comes to where the server is in that state when it is asked.
fn say(r: &mut Rig, command: &[u8], in_state: (&str, &str), insert_id: &str) -> Vec<u8> {
    let sent = r.say(command);
    match has(&sent, "@@session.sql_mode") {
        true => r.answer(&state(in_state, insert_id)),
        false => sent,
    }
}

/// Prepares a text as number 7, then something may have changed.
fn prepare(r: &mut Rig, text: &str, parameters: u16) {
    let command = [&[COM_STMT_PREPARE], text.as_bytes()].concat();
    let sent = say(r, &command, BEFORE, "0");
    assert!(sent.contains(&COM_STMT_PREPARE), "{sent:?}");
    r.answer(&prepared(7, parameters));
    set(r);
}

fn set(r: &mut Rig) {
    r.query("SET NAMES whatever");
    r.answer(&ok(0, 0));
    r.output();
}

/// What the server gets for an execution whose one parameter is NULL.
fn executed_with_null(text: &str, in_state: (&str, &str)) -> (Vec<u8>, Vec<u8>) {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    prepare(&mut r, text, 1);
    let sent = say(&mut r, &execute(7, &[1, 1, 6, 0]), in_state, "0");
    (sent, r.output())
}

#[test]
fn no_other_text_is_prepared_that_would_be_read_otherwise() {
    for (values, in_state) in [
        ("'é'", LATIN1),
        ("'é'", ("", "utf8mb4 latin1")),
        ("\"b\"", ("ANSI_QUOTES", "utf8mb4 utf8mb4")),
        ("'x'||'y'", ("PIPES_AS_CONCAT", "utf8mb4 utf8mb4")),
        ("'\\n'", ("NO_BACKSLASH_ESCAPES", "utf8mb4 utf8mb4")),
    ] {
        let text = format!("INSERT INTO t (id, a) VALUES (?, {values})");
        let (sent, told) = executed_with_null(&text, in_state);
        assert!(!has(&sent, "INSERT"), "{}", String::from_utf8_lossy(&sent));
        assert!(has(&told, REFUSED), "{values} {told:?}");
    }
}

#[test]
fn one_that_is_read_alike_is_prepared() {
    for (values, in_state) in [
        ("'é'", BEFORE),
        ("'é'", ("ANSI_QUOTES,STRICT_TRANS_TABLES", BEFORE.1)),
        ("'e'", LATIN1),
        ("'b'", ("ANSI_QUOTES,PIPES_AS_CONCAT", BEFORE.1)),
    ] {
        let text = format!("INSERT INTO t (id, a) VALUES (?, {values})");
        let (sent, told) = executed_with_null(&text, in_state);
        assert!(has(&sent, "LAST_INSERT_ID(?)"), "{values} {told:?}");
    }
}

#[test]
fn nor_is_its_own_text() {
    for (text, parameters, rest) in [
        (
            "INSERT INTO t (id, a) VALUES (?, 'é')",
            1,
            &[1, 1, 6, 0][..],
        ),
        ("INSERT INTO t (a) SELECT 'é'", 1, &[]),
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        prepare(&mut r, text, parameters);
        let sent = say(&mut r, &execute(7, rest), LATIN1, "77");
        assert!(!has(&sent, "INSERT"), "{}", String::from_utf8_lossy(&sent));
        assert!(has(&r.output(), REFUSED), "{text}");
    }
}

/// The text that is prepared serves on.
#[test]
fn a_text_that_is_there_is_executed() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    prepare(&mut r, "INSERT INTO t (a) VALUES ('é')", 1);
    let sent = say(&mut r, &execute(7, &[]), LATIN1, "0");
    assert_eq!(sent.get(4), Some(&COM_STMT_EXECUTE), "{sent:?}");
    assert_eq!(r.requests.len(), 1);
}

/// Nor one that gets keys only since its rule rewrites.
#[test]
fn what_was_observed_is_not_taken_over() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let rules = |mode, version| {
        let rules = Rules::new(vec![r.rule_in(mode)], false);
        let traffic = std::sync::Arc::new(Traffic::default());
        std::sync::Arc::new(rules.with_traffic(&traffic, version, &[]))
    };
    let (observing, rewriting) = (rules(Mode::Observe, 0), rules(Mode::Rewrite, 1));
    r.s = Session::new(observing, r.facts());
    prepare(&mut r, "INSERT INTO t (a) VALUES ('é')", 0);
    assert_eq!(r.s.update_rules(&rewriting), RulesUpdate::Taken);
    let sent = say(&mut r, &execute(7, &[]), LATIN1, "0");
    assert!(sent.is_empty(), "{}", String::from_utf8_lossy(&sent));
    assert!(has(&r.output(), REFUSED));
}

/// The proxy's own statement is prepared before each EXECUTE.
#[test]
fn a_statement_out_of_a_text_is_not_prepared_anew() {
    for (values, in_state, is_executed) in [
        ("''é''", LATIN1, false),
        ("''é''", ("", "koi8r koi8r"), false),
        ("1||0", ("PIPES_AS_CONCAT", BEFORE.1), false),
        ("NOT 1 = 2", ("HIGH_NOT_PRECEDENCE", BEFORE.1), false),
        ("1", ("PIPES_AS_CONCAT", "koi8r koi8r"), true),
        ("''é''", BEFORE, true),
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let text = format!("\u{3}PREPARE s FROM 'INSERT INTO t (a) VALUES ({values})'");
        say(&mut r, text.as_bytes(), BEFORE, "0");
        r.answer(&ok(0, 0));
        set(&mut r);
        let sent = say(&mut r, b"\x03EXECUTE s", in_state, "0");
        let told = r.output();
        assert_eq!(has(&sent, "keywright execute"), is_executed, "{values}");
        assert_eq!(has(&told, "PREPARE from a text"), !is_executed, "{values}");
    }
}
