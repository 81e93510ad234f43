//! Texts of several statements, statements of several packets, and statements prepared out of a text.

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::*;

use super::rig::*;

fn ends_with_more(output: &[u8], sequence: u8) -> bool {
    output.get(3) == Some(&sequence) && output.get(7).is_some_and(|flags| flags & 8 != 0)
}

fn asked(text: &str) -> (Rig, String) {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let sent = r.probed(text, "1");
    (r, sent)
}

#[test]
fn each_statement_is_sent_by_itself_and_answered_in_one() {
    let (mut r, sent) = asked("INSERT INTO t (a) VALUES (1); SELECT LAST_INSERT_ID() ;\n");
    assert!(
        sent.contains("LAST_INSERT_ID(100)") && !sent.contains("SELECT"),
        "{sent}"
    );
    let sent = r.answer(&ok(1, 100));
    assert!(has(&sent, "SELECT LAST_INSERT_ID()"));
    assert!(ends_with_more(&r.output(), 1));
    let mut rows = packet(1, &[1]);
    rows.extend(def(2));
    rows.extend(packet(3, &[3, b'1', b'0', b'0']));
    rows.extend(packet(4, &[0xFE, 0, 0, 2, 0, 0, 0]));
    for byte in &rows {
        r.answer(&[*byte]);
    }
    let output = r.output();
    let mut numbered = rows.clone();
    for (at, number) in [
        (0, 2),
        (5, 3),
        (5 + def(2).len(), 4),
        (5 + def(2).len() + 8, 5),
    ] {
        numbered[at + 3] = number;
    }
    assert_eq!(output, numbered);
    // The next command is a command again.
    assert!(has(&r.query("SELECT 2"), "SELECT 2"));
}

/// Servers cut all semicolons off the end of a text.
#[test]
fn nothing_follows_behind_several_semicolons() {
    for end in [";;", " ;\n ;\n", ";;;; "] {
        let text = format!("INSERT INTO t (a) VALUES (1){end}");
        for capabilities in [DEPRECATE_EOF, DEPRECATE_EOF | MULTI] {
            let mut r = rig(KeyForm::Integer, capabilities);
            let sent = r.probed(&text, "1");
            assert!(sent.contains("LAST_INSERT_ID(100)"), "{sent}");
            assert!(r.answer(&ok(1, 100)).is_empty());
            assert_eq!(r.output(), ok(1, 100), "{end:?}");
            let text = text.replace("(1)", "(?)");
            let sent = stmt_prepare(&mut r, &text, "1");
            assert!(sent.contains("LAST_INSERT_ID(?)"), "{end:?} {sent}");
        }
        let (mut r, sent) = asked(&format!("SELECT 1; INSERT INTO t (a) VALUES (1){end}"));
        assert!(sent.contains("SELECT 1") && !sent.contains("INSERT"));
        assert!(has(&r.answer(&ok(0, 0)), "LAST_INSERT_ID(100)"));
        assert!(ends_with_more(&r.output(), 1));
        assert!(r.answer(&ok(1, 100)).is_empty());
        let last = r.output();
        assert!(!last.is_empty() && !ends_with_more(&last, 2), "{end:?}");
        assert!(has(&r.query("SELECT 2"), "SELECT 2"));
    }
}

#[test]
fn statements_behind_one_that_fails_are_not_carried_out() {
    let (mut r, _) = asked("INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (2)");
    assert!(r.answer(&err()).is_empty());
    assert_eq!(r.output(), err());
    assert!(has(&r.query("SELECT 2"), "SELECT 2"));
}

#[test]
fn statements_behind_one_that_is_refused_are_not_carried_out() {
    let (mut r, _) =
        asked("SELECT 1 FROM x; INSERT INTO t (id) SELECT x + 1 FROM u; DELETE FROM x");
    let sent = r.answer(&ok(0, 0));
    assert!(sent.is_empty(), "{}", String::from_utf8_lossy(&sent));
    let output = r.output();
    assert!(ends_with_more(&output, 1));
    let refusal = &output[ok(0, 0).len()..];
    assert_eq!((refusal[3], refusal[4]), (2, 0xFF));
    assert!(has(&r.query("SELECT 2"), "SELECT 2"));
}

#[test]
fn a_database_chosen_on_the_way_counts() {
    let (mut r, _) = asked("USE elsewhere; INSERT INTO t (a) VALUES (1)");
    let sent = r.answer(&ok(0, 0));
    assert!(has(&sent, "LAST_INSERT_ID(100)"));
}

#[test]
fn modes_changed_on_the_way_are_asked_for() {
    let (mut r, _) = asked("SET sql_mode='ANSI_QUOTES'; INSERT INTO \"t\" (a) VALUES (1)");
    let sent = r.answer(&ok(0, 0));
    assert!(has(&sent, "@@session.sql_mode"));
    let sent = r.answer(&probe_in("ANSI_QUOTES", "1"));
    assert!(has(&sent, "LAST_INSERT_ID(100)"));
    r.answer(&ok(1, 100));
    let output = r.output();
    assert!(ends_with_more(&output, 1));
    assert_eq!(output[ok(0, 0).len() + 3], 2);
}

#[test]
fn a_statement_of_several_packets_is_put_together() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("SELECT 1", "1");
    r.answer(&ok(0, 0));
    r.output();
    let mut text = b"\x03INSERT INTO t (b) VALUES ('".to_vec();
    text.resize(20 << 20, b'x');
    text.extend(b"')");
    let (first, second) = text.split_at(0xFF_FFFF);
    r.client.extend(packet(0, first));
    r.run();
    assert!(r.to_server.is_empty());
    let sent = r.say_numbered(1, second);
    let sent = if has(&sent, "sql_mode") {
        r.answer(&probe("1"))
    } else {
        sent
    };
    assert_eq!(sent[..4], [0xFF, 0xFF, 0xFF, 0]);
    assert!(sent.ends_with(b"LAST_INSERT_ID(100))") || has(&sent[..100], "LAST_INSERT_ID(100)"));
    let mut answer = ok(1, 100);
    answer[3] = 2;
    r.answer(&answer);
    assert_eq!(r.output(), answer);
}

#[test]
fn execute_of_a_text_is_preceded_by_its_keys() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.probed(
        "PREPARE s FROM 'INSERT INTO t (a, b) VALUES (?, ''it''''s'')'",
        "1",
    );
    assert!(
        sent.contains("FROM 'INSERT INTO t (a, b) VALUES (?, "),
        "{sent}"
    );
    r.answer(&ok(0, 0));
    for key in [100, 101] {
        let sent = r.query("EXECUTE S USING @a");
        assert!(has(
            &sent,
            "PREPARE `keywright execute` FROM 'INSERT INTO t ("
        ));
        assert!(has(&sent, &format!("LAST_INSERT_ID({key})")));
        assert!(has(&sent, "''it''''s''"));
        r.output();
        let sent = r.answer(&ok(0, 0));
        assert!(has(&sent, "EXECUTE `keywright execute` USING @a"));
        assert!(r.output().is_empty());
        r.answer(&ok(1, key));
        assert_eq!(r.output(), ok(1, key));
    }
    // Gone is gone.
    r.query("DEALLOCATE PREPARE s");
    r.answer(&ok(0, 0));
    assert!(has(&r.query("EXECUTE s USING @a"), "EXECUTE s USING @a"));
}

#[test]
fn execute_of_a_text_that_may_be_another_by_now_is_refused() {
    for between in ["CALL p()", "USE elsewhere"] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        r.probed("PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'", "1");
        r.answer(&ok(0, 0));
        r.query(between);
        r.answer(&ok(0, 0));
        r.output();
        let sent = r.query("EXECUTE s");
        if has(&sent, "sql_mode") {
            assert!(r.answer(&probe("1")).is_empty());
        }
        assert_eq!(r.output().get(4), Some(&0xFF), "after {between}");
    }
}

/// The packets of an answer to a client that is told where column definitions end.
fn with_ends(answer: &[u8], columns: usize) -> Vec<u8> {
    let (mut rest, mut packets) = (answer, Vec::new());
    while let Some(front) = rest.get(..3) {
        let bytes = usize::from(front[0]) | usize::from(front[1]) << 8;
        packets.push(rest[4..4 + bytes].to_vec());
        rest = &rest[4 + bytes..];
    }
    let end = vec![0xFE, 0, 0, 2, 0];
    *packets.last_mut().unwrap() = end.clone();
    packets.insert(1 + columns, end);
    let numbered = (1..).zip(packets);
    numbered.flat_map(|(at, body)| packet(at, &body)).collect()
}

#[test]
fn the_end_of_column_definitions_tells_of_another_result() {
    let mut r = rig(KeyForm::Integer, MULTI);
    let text = "INSERT INTO t (a) VALUES (1); SELECT 1; SELECT 2";
    assert!(has(&r.query(text), "@@session.sql_mode"));
    r.answer(&with_ends(&probe("1"), 6));
    r.answer(&ok(1, 100));
    r.output();
    let one = with_ends(&rows(&["1"]), 1);
    let ends = |output: &[u8]| -> Vec<u8> {
        let ends = output
            .windows(9)
            .filter(|part| part.starts_with(&[5, 0, 0]));
        ends.filter(|part| part[4] == 0xFE)
            .map(|part| part[7])
            .collect()
    };
    for byte in &one {
        r.answer(&[*byte]);
    }
    assert_eq!(ends(&r.output()), [2 | 8; 2]);
    r.answer(&one);
    assert_eq!(ends(&r.output()), [2; 2], "the last");
}

/// Where rules only observe, a text goes out as it is.
#[test]
fn a_text_of_observed_statements_stays_whole() {
    const TEXT: &str = "SELECT 1; INSERT INTO t (a) VALUES (1); INSERT INTO t (id) VALUES (a + 1)";
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let rule = r.rule_in(Mode::Observe);
    r.s = Session::new(Arc::new(Rules::new(vec![rule], false)), r.facts());
    assert_eq!(r.probed(TEXT, "1").get(5..), Some(TEXT));
    let outcomes: Vec<_> = r.s.events().iter().map(|event| event.outcome).collect();
    let native = StatementOutcome::Native(None);
    let passed = |outcome: &StatementOutcome| matches!(outcome, StatementOutcome::Passed(_));
    assert_eq!(outcomes[..2], [StatementOutcome::Observed, native]);
    assert!(
        passed(&outcomes[2]) && outcomes[3..] == [native],
        "{outcomes:?}"
    );
    let answer = [ok(1, 0), ok(1, 7), ok(1, 8)];
    let mut whole = Vec::new();
    for (at, part) in (1..).zip(&answer) {
        let more = if at < 3 { 8 } else { 0 };
        whole.extend(packet(at, &[0, 1, part[6], 2 | more, 0, 0, 0]));
    }
    r.answer(&whole);
    assert_eq!(r.output(), whole);
    assert!(has(&r.query("SELECT 2"), "SELECT 2"));
}
