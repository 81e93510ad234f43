//! A bound `''` where MariaDB takes it for NULL: it asks for a key, whatever else sql_mode says.

use keywright_rewrite::KeyForm;

use super::rig::*;

#[test]
fn a_bound_text_without_content_is_refused_where_it_is_null() {
    for sql_mode in [
        "STRICT_TRANS_TABLES,EMPTY_STRING_IS_NULL",
        "EMPTY_STRING_IS_NULL,NO_AUTO_VALUE_ON_ZERO",
    ] {
        for (value, is_refused) in [(&[0][..], true), (b"\x03abc", false)] {
            let mut r = with_bound_key(sql_mode);
            let execution = execute(7, &[&[0, 1, 0xFD, 0], value].concat());
            // Later it is as it was when the statement was prepared.
            for is_later in [false, true] {
                if is_later {
                    r.query("SET sql_mode = 'STRICT_TRANS_TABLES'");
                    r.answer(&ok(0, 0));
                    r.output();
                }
                let sent = r.say(&execution);
                if has(&sent, "@@session.sql_mode") {
                    r.answer(&probe_in("STRICT_TRANS_TABLES", "1"));
                }
                let refused = has(&r.output(), "a string that is no number");
                assert_eq!(refused, is_refused, "{sql_mode} {is_later}");
                if !is_refused {
                    r.answer(&ok(1, 0));
                    r.output();
                }
            }
        }
    }
}

#[test]
fn so_it_is_with_keys_that_are_text() {
    let execution = |value: &[u8]| execute(7, &[&[0, 1, 0xFD, 0], value].concat());
    for (sql_mode, is_refused) in [
        ("STRICT_TRANS_TABLES,EMPTY_STRING_IS_NULL", true),
        ("STRICT_TRANS_TABLES", false),
    ] {
        let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
        let text = b"INSERT INTO t (id, a) VALUES (?, 1)";
        r.say(&[&[COM_STMT_PREPARE], text.as_slice()].concat());
        r.answer(&probe_in(sql_mode, "1"));
        r.answer(&prepared(7, 1));
        r.output();
        let sent = r.say(&execution(&[0]));
        assert_eq!(sent.is_empty(), is_refused, "{sql_mode}");
        let told = r.output();
        assert_eq!(has(&told, "EMPTY_STRING_IS_NULL as key"), is_refused);
        if !is_refused {
            r.answer(&ok(1, 0));
            r.output();
        }
        assert!(!r.say(&execution(b"\x03abc")).is_empty(), "{sql_mode}");
        assert!(r.requests.is_empty());
    }
}
