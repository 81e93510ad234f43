//! Statements that were prepared out of a text: which of them the server still has is known from what was carried out, and not
//! from what was read.

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::{Event, Mode, OnExplicit, Pattern, Rule, Rules, Session, StatementOutcome};

use super::beyond_ascii::in_charset;
use super::hidden::is_refused;
use super::rig::*;

const REFUSED: &str = "PREPARE from a text";

/// A session that has prepared an INSERT as `s`.
fn begun() -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    r.probed("PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'", "1");
    r.answer(&ok(0, 0));
    r.output();
    r
}

/// What EXECUTE of it comes to: what the server gets, and what the client is told at once.
fn executed(r: &mut Rig) -> (Vec<u8>, Vec<u8>) {
    let sent = r.unhidden("EXECUTE s").into_bytes();
    (sent, r.output())
}

fn is_keyed(sent: &[u8]) -> bool {
    has(
        sent,
        "PREPARE `keywright execute` FROM 'INSERT INTO t (a,`id`) VALUES (1,LAST_INSERT_ID(",
    ) || has(sent, "LAST_INSERT_ID(10")
}

#[test]
fn what_was_not_reached_changes_none() {
    for behind in [
        "DEALLOCATE PREPARE s",
        "PREPARE s FROM 'SELECT 1'",
        "PREPARE s FROM @x",
        "CALL p()",
        "EXECUTE IMMEDIATE 'CALL p()'",
    ] {
        let mut r = begun();
        let sent = r.query(&format!("INSERT INTO t (nosuch) VALUES (1); {behind}"));
        assert!(has(&sent, "LAST_INSERT_ID(100)"));
        r.answer(&err());
        r.output();
        let (sent, _) = executed(&mut r);
        assert!(is_keyed(&sent), "after {behind}");
    }
}

#[test]
fn what_may_not_have_been_reached_makes_them_doubtful() {
    for behind in [
        "DEALLOCATE PREPARE s",
        "PREPARE s FROM 'SELECT 1'",
        "PREPARE s FROM @x",
        "CALL p()",
        "EXECUTE IMMEDIATE 'CALL p()'",
    ] {
        let mut r = begun();
        let sent = r.query(&format!("SELECT nosuch; {behind}"));
        assert!(has(&sent, behind), "they are sent as they are");
        r.answer(&err());
        r.output();
        let (sent, output) = executed(&mut r);
        assert!(sent.is_empty(), "after {behind}");
        assert!(has(&output, REFUSED));
    }
}

#[test]
fn an_insert_that_is_carried_out_at_once_is_refused_by_name() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.probed("EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (1)'", "1");
    assert_eq!(sent, "");
    let told = r.output();
    assert!(has(&told, "exactly in EXECUTE IMMEDIATE of an INSERT,"));
    assert!(!has(&told, REFUSED));
    assert!(r.s.events().contains(&Event {
        rule: Some(0),
        outcome: StatementOutcome::Refused("execute_immediate"),
    }));
}

#[test]
fn what_was_refused_changes_none() {
    let mut r = begun();
    let sent = r.query("PREPARE s FROM 'LOAD DATA INFILE ''f'' INTO TABLE t (a)'");
    assert!(sent.is_empty());
    assert!(has(&r.output(), "LOAD DATA"));
    assert!(is_keyed(&executed(&mut r).0));
}

#[test]
fn what_failed_makes_its_name_doubtful() {
    for between in ["DEALLOCATE PREPARE s garbage", "PREPARE s FROM @x garbage"] {
        let mut r = begun();
        r.query(between);
        r.answer(&err());
        r.output();
        let (sent, output) = executed(&mut r);
        assert!(sent.is_empty(), "after {between}");
        assert!(has(&output, REFUSED));
    }
    let mut r = begun();
    r.query("DEALLOCATE PREPARE other");
    r.answer(&err());
    assert!(is_keyed(&executed(&mut r).0), "another name");
}

#[test]
fn what_has_another_name_now_is_passed_on() {
    let mut r = begun();
    r.query("PREPARE s FROM 'SELECT 1'");
    r.answer(&ok(0, 0));
    assert!(has(&executed(&mut r).0, "EXECUTE s"));
}

#[test]
fn what_was_prepared_anew_is_not_doubtful() {
    let mut r = begun();
    r.query("CALL p()");
    r.answer(&ok(0, 0));
    r.probed("PREPARE s FROM 'INSERT INTO t (a) VALUES (2)'", "1");
    r.answer(&ok(0, 0));
    r.output();
    let (sent, _) = executed(&mut r);
    assert!(has(&sent, "FROM 'INSERT INTO t") && has(&sent, "100"));
}

#[test]
fn a_prepare_that_failed_makes_its_name_doubtful() {
    let mut r = begun();
    r.query("PREPARE s FROM 'INSERT INTO t (nosuch) VALUES (1)'");
    r.answer(&err());
    r.output();
    let (sent, output) = executed(&mut r);
    assert!(sent.is_empty() && has(&output, REFUSED));
}

#[test]
fn a_name_that_may_be_any_is_taken_for_one_that_gets_keys() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let seen = Rule {
        table: Pattern::parse("*.seen").unwrap(),
        mode: Mode::Observe,
        ..r.rule_in(Mode::Rewrite)
    };
    let rules = vec![r.rule_in(Mode::Rewrite), seen];
    r.s = Session::new(Arc::new(Rules::new(rules, false)), r.facts());
    for prepare in [
        "PREPARE a FROM 'INSERT INTO seen (a) VALUES (1)'",
        "PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'",
    ] {
        let sent = r.query(prepare);
        let sent = r.tell(sent, &["id", "a"]);
        assert!(has(&sent, prepare));
        r.answer(&ok(0, 0));
    }
    r.output();
    let sent = r.query("EXECUTE \u{15b}");
    let sent = r.tell(sent, &["id", "a"]);
    assert_eq!(String::from_utf8_lossy(&sent), "");
    assert!(has(&r.output(), REFUSED));
}

#[test]
fn a_bound_key_is_not_counted_where_none_would_be_given() {
    for (mode, text, counted) in [
        (Mode::Observe, "INSERT INTO t (a) VALUES (1)", true),
        (Mode::Observe, "INSERT INTO t (id) VALUES (?)", false),
    ] {
        let mut r = rig_of_rule(|rule| rule.mode = mode);
        r.probed(&format!("PREPARE s FROM '{text}'"), "1");
        r.answer(&ok(0, 0));
        let sent = r.query("EXECUTE s USING @a");
        assert!(has(&sent, "EXECUTE s USING @a"), "{mode:?}, {text}");
        let is_it = |event: &Event| match event.outcome {
            StatementOutcome::Observed | StatementOutcome::Rewritten => true,
            StatementOutcome::Native(_)
            | StatementOutcome::Refused(_)
            | StatementOutcome::Passed(_) => false,
        };
        let is_counted = r.s.events().iter().any(is_it);
        assert_eq!(is_counted, counted, "{mode:?}, {text}");
    }
}

/// Only what goes beyond ASCII is read otherwise where a character may end in a backslash. A backslash in ASCII escapes as ever.
#[test]
fn an_insert_in_ascii_gets_keys_in_each_character_set() {
    for (sql_mode, charset, inner) in [
        ("", "gbk", r"''x\\y''"),
        ("", "sjis sjis", r"\'x\\y\'"),
        ("", "big5", r"''x\\y''"),
        ("", "cp932", r"''x\\y''"),
        ("", "gb18030", r"''x\\y''"),
        ("", "latin1", r"''x\\y''"),
        ("NO_BACKSLASH_ESCAPES", "sjis sjis", r"''x\\y''"),
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let text = format!("PREPARE s FROM 'INSERT INTO t (a) VALUES ({inner})'");
        assert!(has(&r.query(&text), "@@session.sql_mode"));
        let sent = r.answer(&rows(&[sql_mode, charset, "d", "1", "0", SERVER]));
        let told = r.output();
        let told = String::from_utf8_lossy(&told);
        assert!(has(&sent, &text), "{sql_mode} {charset}: {told}");
        r.answer(&ok(0, 0));
        let (sent, _) = executed(&mut r);
        let sent = String::from_utf8_lossy(&sent);
        let new = r"(`id`,a) VALUES (LAST_INSERT_ID(100),''x\\y'')";
        assert!(sent.contains(new), "{sql_mode} {charset}: {sent}");
    }
}

/// The server converts the text to the character set of the connection's strings and back. In sjis a backslash does not come back as one.
#[test]
fn an_insert_with_a_backslash_is_refused_where_that_is_lost_on_its_way() {
    const PREPARE: &str = r"PREPARE s FROM 'INSERT INTO t (a) VALUES (''x\\y'')'";
    for (charsets, is_lost) in [
        ("sjis utf8mb4", true),
        ("sjis latin1", true),
        ("sjis sjis", false),
        ("cp932 utf8mb4", false),
    ] {
        let modes = rows(&["", charsets, "d", "1", "0", SERVER]);
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        r.query(PREPARE);
        let sent = r.answer(&modes);
        assert_eq!(!has(&sent, PREPARE), is_lost, "at PREPARE, {charsets}");
        if is_lost {
            is_refused(&mut r, "may contain a backslash");
        }
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        r.query(PREPARE);
        r.answer(&rows(&["", "utf8mb4 utf8mb4", "d", "1", "0", SERVER]));
        r.answer(&ok(0, 0));
        r.query("SET NAMES whatever");
        r.answer(&ok(0, 0));
        r.output();
        r.query("EXECUTE s");
        let sent = r.answer(&modes);
        match is_lost {
            true => is_refused(&mut r, REFUSED),
            false => assert!(!sent.is_empty(), "at EXECUTE, {charsets}"),
        }
    }
}

#[test]
fn an_insert_beyond_ascii_is_refused_where_a_character_may_end_in_a_backslash() {
    for text in [
        &b"PREPARE s FROM 'INSERT INTO t (a) VALUES (''\x82\xA0'')'"[..],
        b"PREPARE s FROM 'INSERT INTO t (a) ' 'VALUES (''\x82\xA0'')'",
        b"PREPARE s FROM 'INSERT INTO t (a) VALUES (1) -- \x82\xA0'",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        assert_eq!(in_charset(&mut r, "sjis", 3, text), b"");
        is_refused(&mut r, "may contain a backslash (big5, cp932, gb18030");
    }
    for text in [
        &b"PREPARE s FROM 'INSERT INTO other (a) VALUES (''\x82\xA0'')'"[..],
        b"PREPARE /* \x82\xA0 */ s FROM 'INSERT INTO t (a) VALUES (1)'",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let sent = in_charset(&mut r, "sjis", 3, text);
        assert!(sent.ends_with(text), "{}", text.escape_ascii());
    }
}

/// As after one from utf8mb4 to latin1.
#[test]
fn an_insert_in_ascii_gets_keys_after_a_change_of_the_character_set() {
    const PREPARE: &[u8] = b"PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'";
    for (before, now) in [("gbk", "utf8mb4"), ("utf8mb4", "sjis"), ("gbk", "sjis")] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        assert!(in_charset(&mut r, before, 3, PREPARE).ends_with(PREPARE));
        r.answer(&ok(0, 0));
        r.query("SET NAMES whatever");
        r.answer(&ok(0, 0));
        r.output();
        let sent = in_charset(&mut r, now, 3, b"EXECUTE s");
        let sent = r.tell(sent, &["id", "a"]);
        assert!(is_keyed(&sent), "{before}, {now}: {}", sent.escape_ascii());
    }
}

/// What is bound is known to the server alone: it would number the row of a NULL among the rule's keys.
#[test]
fn one_whose_key_is_bound_is_refused() {
    for text in [
        "INSERT INTO t (id, a) VALUES (?, 1)",
        "INSERT INTO t (id, a) VALUES (?, 1), (7, ?)",
        "INSERT INTO t (id, a) VALUES (?, 1), (NULL, 2)",
        "REPLACE INTO t SET a = 1, id = ?",
    ] {
        for on_explicit in [OnExplicit::Keep, OnExplicit::Refuse] {
            let mut r = rig_of_rule(|rule| rule.on_explicit = on_explicit);
            r.probed(&format!("PREPARE s FROM '{text}'"), "1");
            r.answer(&ok(0, 0));
            r.output();
            let sent = r.query("EXECUTE s USING @k");
            assert_eq!(String::from_utf8_lossy(&sent), "", "{text}");
            let output = r.output();
            let why = String::from_utf8_lossy(&output);
            let is_explicit = on_explicit == OnExplicit::Refuse && text.contains('7');
            assert!(is_explicit || has(&output, REFUSED), "{text}: {why}");
        }
    }
}

#[test]
fn a_row_without_values_does_not_hide_that_an_alias_names_all_columns() {
    let mut r = rig_of_mysql(KeyForm::Integer, DEPRECATE_EOF);
    assert!(
        r.probed("INSERT INTO t () VALUES ()", "1")
            .ends_with("INSERT INTO t (`id`) VALUES (LAST_INSERT_ID(100))")
    );
    r.answer(&ok(1, 100));
    let text = "INSERT INTO t () VALUES () AS n ON DUPLICATE KEY UPDATE a = n.a";
    let sent = r.query(text);
    let sent = r.tell(sent, &["id", "a"]);
    assert!(has(
        &sent,
        "INSERT INTO t (`id`,`a`) VALUES (101,DEFAULT) AS n ON"
    ));
}
