//! Texts of several statements, statements of several packets, and statements prepared out of a text.

use keywright_rewrite::KeyForm;

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
