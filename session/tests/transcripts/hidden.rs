//! Statements in which an INSERT may hide.

use keywright_rewrite::KeyForm;
use keywright_session::Limits;

use super::rig::*;

/// 1235, of this.
pub(super) fn is_refused(r: &mut Rig, of: &str) {
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

/// What is read of it may be less than its first words.
#[test]
fn what_begins_behind_all_that_is_read_does_not_go_out_either() {
    const READ_BYTES: usize = 4096;
    let limits = Limits {
        rewrite_bytes_max: 10_000,
        ..Limits::default()
    };
    let comment = format!("/* {} */", "c".repeat(5_000));
    let cut = |words: &str, after: usize| format!("{}{words}", " ".repeat(READ_BYTES - after));
    for (front, is_passed) in [
        (format!("{comment} INSERT INTO t (a) VALUES ('"), false),
        (format!("INSERT {comment} INTO t (a) VALUES ('"), false),
        (cut("INSERT INTO t (a) VALUES ('", 3), false),
        (cut("INSERT INTO d.t (a) VALUES ('", 13), false),
        (cut("ANALYZE INSERT INTO t (a) VALUES ('", 10), false),
        (
            cut("SET STATEMENT a=1 FOR INSERT INTO t (a) VALUES ('", 8),
            false,
        ),
        (
            cut("SET STATEMENT a=1 FOR INSERT INTO t (a) VALUES ('", 4),
            false,
        ),
        (
            cut("LOAD DATA INFILE 'f' INTO TABLE t SET a = ('", 7),
            false,
        ),
        (cut("SELECT ('", 8), true),
        (cut("INSERT INTO other (a) VALUES ('", 20), true),
        (cut("SET @a = ('", 6), true),
    ] {
        for command in [3, 0x16] {
            let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
            let text = format!("{front}{}')", "x".repeat(200_000));
            let mut sent = r.say(&[&[command], text.as_bytes()].concat());
            if has(&sent, "@@session.sql_mode") {
                sent = r.answer(&probe("1"));
            }
            let front = front.trim();
            assert_eq!(has(&sent, front), is_passed, "{command} {front}");
            let is_told = has(&r.output(), "longer than rewrite_bytes_max");
            assert_eq!(is_told, !is_passed, "{command} {front}");
        }
    }
}

/// Behind a change of the modes what ends strings and names is not known.
#[test]
fn rows_hide_in_no_text_that_other_modes_read_otherwise() {
    const PREPARE: &str = "PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'";
    for (before, after, text, is_refused) in [
        ("", "ANSI_QUOTES", r#"EXECUTE "s""#, true),
        (
            "",
            "NO_BACKSLASH_ESCAPES",
            r"SET STATEMENT max_statement_time=LENGTH('\') FOR INSERT INTO t (a) VALUES (1)",
            false,
        ),
        (
            "NO_BACKSLASH_ESCAPES",
            "",
            r"SET STATEMENT max_statement_time=LENGTH('\'') FOR INSERT INTO t (a) VALUES (1)",
            false,
        ),
        (
            "",
            "NO_BACKSLASH_ESCAPES",
            r"SET STATEMENT a='\', b=' FOR INSERT INTO u SELECT 1 -- ' FOR EXECUTE IMMEDIATE 'x'",
            true,
        ),
    ] {
        for is_prepared in [false, true] {
            if is_prepared && text.starts_with("EXECUTE") {
                continue;
            }
            let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
            r.query(PREPARE);
            r.answer(&probe_in(before, "1"));
            r.answer(&ok(0, 0));
            r.query("SET sql_mode=@mode");
            r.answer(&ok(0, 0));
            r.output();
            let command = if is_prepared { b"\x16" } else { b"\x03" };
            let sent = r.say(&[command, text.as_bytes()].concat());
            assert!(has(&sent, "@@session.sql_mode"), "{text}");
            let sent = r.answer(&probe_in(after, "1"));
            assert_eq!(
                has(&sent, "t (a,`id`)") || has(&sent, "`id`,a"),
                !is_refused,
                "{text}: {}",
                sent.escape_ascii()
            );
            assert_eq!(has(&r.output(), "42000"), is_refused, "{text}");
        }
    }
}

#[test]
fn rows_hide_in_no_long_text_that_other_modes_read_otherwise() {
    let limits = Limits {
        rewrite_bytes_max: 10_000,
        ..Limits::default()
    };
    let front = r"SET STATEMENT a=LENGTH('\') FOR INSERT INTO t (a) VALUES ('";
    let text = format!("{front}{}')", "x".repeat(200_000));
    let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
    let sent = r.say(&[b"\x03", text.as_bytes()].concat());
    assert!(has(&sent, "@@session.sql_mode"));
    assert_eq!(r.answer(&probe_in("NO_BACKSLASH_ESCAPES", "1")), b"");
    assert!(has(&r.output(), "longer than rewrite_bytes_max"));
}

/// MySQL's versions read six digits before a text in different ways.
#[test]
fn rows_hide_behind_no_comment_whose_version_cannot_be_read() {
    const COMMENT: &str = r"/*!080000\- x */";
    const WHY: &str = "whose version runs into its text";
    let new = || rig_of_mysql(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let insert = format!("{COMMENT} INSERT INTO t (a) VALUES (3)");
    for text in [
        insert.clone(),
        format!("LOAD {COMMENT} DATA INFILE 'f' INTO TABLE t (a)"),
        format!("LOAD DATA INFILE 'f' {COMMENT} INTO TABLE t (a)"),
    ] {
        let mut r = new();
        assert_eq!(r.probed(&text, "1"), "");
        is_refused(&mut r, WHY);
    }
    let mut r = new();
    assert!(r.say(&[b"\x16", insert.as_bytes()].concat()).is_empty());
    is_refused(&mut r, WHY);
    let sent = r.probed(&format!("SELECT 1; {insert}"), "1");
    assert!(sent.ends_with("SELECT 1"), "{sent}");
    assert!(r.answer(&rows(&["1"])).is_empty());
    is_refused(&mut r, WHY);
    // One that no version takes part in hides nothing.
    let sent = new().probed(r"/*!999999\- x */ INSERT INTO t (a) VALUES (3)", "1");
    assert!(sent.contains("LAST_INSERT_ID(100)"), "{sent}");
}
