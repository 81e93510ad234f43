//! Statements in which an INSERT may hide.

use keywright_rewrite::KeyForm;
use keywright_session::Limits;

use super::rig::*;

/// 1235, of this.
fn is_refused(r: &mut Rig, of: &str) {
    let output = r.output();
    assert!(
        has(&output, "42000") && has(&output, of),
        "{}",
        String::from_utf8_lossy(&output)
    );
}

#[test]
fn set_statement_hides_no_rows() {
    for (text, of) in [
        ("LOAD DATA INFILE 'f' INTO TABLE t (a)", "LOAD DATA"),
        ("LOAD DATA LOCAL INFILE 'f' INTO TABLE d.t (a)", "LOAD DATA"),
        (
            "SET STATEMENT b=2 FOR INSERT INTO t (a) VALUES (1)",
            "another SET STATEMENT",
        ),
        (
            "SET STATEMENT b=2 FOR SET STATEMENT c=2 FOR SELECT 1",
            "another SET STATEMENT",
        ),
        ("EXECUTE s", "PREPARE or EXECUTE"),
        (
            "EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (1)'",
            "PREPARE or EXECUTE",
        ),
        (
            "BEGIN NOT ATOMIC INSERT INTO t (a) VALUES (1); END",
            "a compound statement",
        ),
    ] {
        let text = format!("SET STATEMENT max_statement_time=10 FOR {text}");
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        assert_eq!(r.probed(&text, "1"), "");
        is_refused(&mut r, &format!("SET STATEMENT FOR {of}"));
        let prepare = packet(0, &[b"\x16", text.as_bytes()].concat());
        assert!(r.say(&prepare[4..]).is_empty());
        is_refused(&mut r, &format!("SET STATEMENT FOR {of}"));
    }
    for text in [
        "SELECT 1",
        "LOAD DATA INFILE 'f' INTO TABLE other (a)",
        "CALL p()",
    ] {
        let text = format!("SET STATEMENT max_statement_time=10 FOR {text}");
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        assert!(r.probed(&text, "1").contains(&text));
    }
}

#[test]
fn answers_are_numbered_as_the_client_expects() {
    const HEAD: &str = "INSERT INTO t (a) VALUES ('";
    // One packet of the client's; with the key it would be two, and the server would number its answer 2.
    for (bytes, is_passed) in [(16_777_100, true), (16_777_210, false)] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let text = format!("{HEAD}{}')", "x".repeat(bytes - HEAD.len() - 3));
        let sent = r.probed(&text, "1");
        assert_eq!(sent.contains("LAST_INSERT_ID(100)"), is_passed, "{bytes}");
        if !is_passed {
            assert_eq!(sent, "");
            is_refused(&mut r, "takes another packet of 16 MiB");
        }
    }
}

#[test]
fn answers_to_executions_are_numbered_as_the_client_expects() {
    const TEXT: &str = "INSERT INTO t (a) VALUES (?)";
    for (bytes, is_passed) in [(16_777_100_u32, true), (16_777_190, false)] {
        let [a, b, c, _] = bytes.to_le_bytes();
        let value = [vec![0xFD, a, b, c], vec![b'x'; bytes as usize]].concat();
        let one = execute(7, &[vec![0, 1, 253, 0], value.clone()].concat());
        let mut many = vec![COM_STMT_BULK_EXECUTE, 7, 0, 0, 0, 128, 0, 253, 0, 0];
        many.extend(value);
        for payload in [one, many] {
            let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | BULK);
            stmt_prepare(&mut r, TEXT, "1");
            r.answer(&prepared(7, 2));
            r.output();
            let mut sent = r.say(&payload);
            if payload.first() == Some(&COM_STMT_BULK_EXECUTE) {
                // A text of its own is prepared for it.
                sent = r.answer(&prepared(8, 2));
            }
            assert_eq!(sent.len() > bytes as usize, is_passed, "{bytes}");
            if !is_passed {
                is_refused(&mut r, "takes another packet of 16 MiB");
            }
        }
    }
}

/// The session's state where the client's character set is latin1.
fn probe_in_latin1() -> Vec<u8> {
    const NAME: &[u8] = b"\x07utf8mb4";
    let mut probe = probe("1");
    let at = probe.windows(NAME.len()).position(|part| part == NAME);
    let at = at.expect("there is a name");
    probe.splice(at..at + NAME.len(), *b"\x06latin1");
    // Before it the row has an empty sql_mode, and its packet's length.
    probe[at - 5] -= 1;
    probe
}

#[test]
fn blanks_beyond_ascii_hide_no_rows() {
    let latin1 = |r: &mut Rig, text: &[u8]| {
        let sent = r.say(&[b"\x03", text].concat());
        assert!(
            has(&sent, "@@session.sql_mode"),
            "the character set is asked for"
        );
        r.answer(&probe_in_latin1())
    };
    for text in [
        &b"INSERT INTO\xA0t (a) VALUES (1)"[..],
        b"INSERT INTO t (a) VALUES (1); --\xA0 x; INSERT INTO t (a) VALUES (2)",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        assert_eq!(latin1(&mut r, text), b"");
        is_refused(&mut r, "blanks beyond ASCII");
        assert!(r.say(&[b"\x16", text].concat()).is_empty());
        is_refused(&mut r, "blanks beyond ASCII");
    }
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = latin1(&mut r, b"INSERT INTO t (a) VALUES ('\xA0')");
    assert!(has(&sent, "LAST_INSERT_ID(100)"));
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.say(b"\x03INSERT INTO t (a) VALUES ('\xC3\xA0')");
    assert!(has(&r.answer(&probe("1")), "LAST_INSERT_ID(100)"));
}

#[test]
fn what_is_too_long_to_be_read_is_not_prepared() {
    let limits = Limits {
        rewrite_bytes_max: 10_000,
        ..Limits::default()
    };
    for (front, is_passed) in [
        ("INSERT INTO t (a) VALUES ('", false),
        ("SET STATEMENT a=1 FOR INSERT INTO t (a) VALUES ('", false),
        ("INSERT INTO other (a) VALUES ('", true),
        ("SELECT ('", true),
    ] {
        let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
        let text = format!("{front}{}')", "x".repeat(200_000));
        let sent = r.say(&[b"\x16", text.as_bytes()].concat());
        assert_eq!(has(&sent, front), is_passed, "{front}");
        let output = r.output();
        assert_eq!(
            has(&output, "longer than rewrite_bytes_max"),
            !is_passed,
            "{front}"
        );
    }
}

#[test]
fn what_is_too_long_to_be_read_does_not_go_out_with_an_insert_in_it() {
    let limits = Limits {
        rewrite_bytes_max: 10_000,
        ..Limits::default()
    };
    for (front, alone, among_others) in [
        ("INSERT INTO t (a) VALUES ('", false, false),
        ("LOAD DATA INFILE 'f' INTO TABLE t SET a = ('", false, false),
        ("PREPARE s FROM ('", false, false),
        ("EXECUTE IMMEDIATE ('", false, false),
        ("EXECUTE s USING ('", false, false),
        ("SET STATEMENT a=1 FOR EXECUTE IMMEDIATE ('", false, false),
        ("INSERT INTO other (a) VALUES ('", true, false),
        ("SELECT 1; INSERT INTO t (a) VALUES ('", true, false),
        ("UPDATE other SET a = ('", true, false),
    ] {
        for (caps, is_passed) in [(0, alone), (MULTI, among_others)] {
            let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF | caps, limits);
            let text = format!("{front}{}')", "x".repeat(200_000));
            let mut sent = r.say(&[b"\x03", text.as_bytes()].concat());
            if has(&sent, "@@session.sql_mode") {
                sent = r.answer(&probe("1"));
            }
            assert_eq!(has(&sent, front), is_passed, "{front} {caps}");
            let is_told = has(&r.output(), "longer than rewrite_bytes_max");
            assert_eq!(is_told, !is_passed, "{front} {caps}");
        }
    }
}
