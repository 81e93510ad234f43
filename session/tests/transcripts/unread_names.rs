//! Tables whose names only the server can tell: their bytes are others in UTF-8, in which rules have them.

use keywright_rewrite::KeyForm;
use keywright_session::Pattern;

use super::beyond_ascii::{in_charset, probe_in_charset};
use super::hidden::is_refused;
use super::rig::*;

const OF: &str =
    "named beyond ASCII in a character set other than UTF-8, on a table that may have a rule";

/// With a rule for these tables.
fn of_tables(pattern: &str) -> Rig {
    rig_of_rule(|rule| rule.table = Pattern::parse(pattern).unwrap())
}

fn insert(name: &[u8]) -> Vec<u8> {
    [b"INSERT INTO ", name, b" (a) VALUES (1)"].concat()
}

#[test]
fn no_rows_go_into_a_table_that_a_rule_may_be_for() {
    for (charset, name) in [
        ("latin1", &b"`gr\xF6\xDFe`"[..]),
        ("latin1", b"gr\xF6\xDFe"),
        ("latin1", b"`d`.`gr\xF6\xDFe`"),
        ("latin1", b"`\xF6d`.`gr`"),
        // It is another name than these bytes are in UTF-8.
        ("latin1", "`grö`".as_bytes()),
        ("cp1251", b"`gr\xF6`"),
        ("ascii", b"`gr\xF6`"),
        ("sjis", b"`gr\x95\\`"),
        ("gbk", b"`gr\xD6\xD0`"),
        // The second byte of the only character is that of a backquote.
        ("sjis", b"`\x83``"),
        // To MySQL a character that is cut off is not there.
        ("utf8mb4", b"`gr\xE9`"),
        ("utf8mb4", b"`d\xE9`.`gr`"),
    ] {
        for command in [3, 0x16] {
            for tables in ["*.gr*", "*.*"] {
                let mut r = of_tables(tables);
                let sent = in_charset(&mut r, charset, command, &insert(name));
                assert_eq!(sent, b"", "{charset} {}", name.escape_ascii());
                is_refused(&mut r, OF);
            }
        }
    }
    for text in [
        &b"LOAD DATA INFILE 'f' INTO TABLE `gr\xF6`"[..],
        b"PREPARE s FROM 'INSERT INTO `gr\xF6` (a) VALUES (1)'",
        b"SET STATEMENT max_statement_time=1 FOR INSERT INTO `gr\xF6` (a) VALUES (1)",
    ] {
        let mut r = of_tables("d.gr*");
        assert_eq!(in_charset(&mut r, "latin1", 3, text), b"");
        is_refused(&mut r, OF);
    }
}

#[test]
fn rows_go_into_tables_that_no_rule_can_be_for() {
    for (charset, tables, name) in [
        ("latin1", "*.gr", &b"`gr\xF6x`"[..]),
        ("latin1", "*.x*", b"`gr\xF6`"),
        ("latin1", "other.*", b"`gr\xF6`"),
        ("latin1", "d.*", b"`other`.`gr\xF6`"),
        ("sjis", "*.order*", b"`gr\x95\\`"),
        ("utf8mb4", "*.order*", "`größe`".as_bytes()),
    ] {
        for command in [3, 0x16] {
            let mut r = of_tables(tables);
            let text = insert(name);
            let sent = in_charset(&mut r, charset, command, &text);
            assert!(sent.ends_with(&text), "{charset} {}", name.escape_ascii());
        }
    }
    for charset in ["utf8mb4", "utf8mb3", "binary"] {
        let mut r = of_tables("*.gr*");
        let sent = in_charset(&mut r, charset, 3, &insert("`größe`".as_bytes()));
        assert!(has(&sent, "LAST_INSERT_ID(100)"), "{charset}");
    }
}

/// Which table is changed is not known, and so neither is what hides a rule's.
#[test]
fn behind_the_drop_of_such_a_table_the_server_is_asked() {
    for (charset, is_asked) in [("latin1", true), ("utf8mb4", false)] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        in_charset(&mut r, charset, 3, b"INSERT INTO t (a) VALUES ('\xC3\xA9')");
        r.answer(&ok(1, 100));
        r.say(&[&b"\x03DROP TEMPORARY TABLE "[..], "`té`".as_bytes()].concat());
        r.answer(&ok(0, 0));
        r.output();
        let sent = r.query("INSERT INTO t (a) VALUES (1)");
        assert_eq!(has(&sent, "@@session.sql_mode"), is_asked, "{charset}");
    }
}

/// However long the text is.
#[test]
fn a_name_that_is_cut_off_is_seen_before_long_values() {
    let values = format!(" (a) VALUES ('{}')", "é".repeat(4_000));
    let rows = |name: &[u8]| [b"INSERT INTO ", name, values.as_bytes()].concat();
    let mut r = of_tables("d.gr");
    assert_eq!(in_charset(&mut r, "utf8mb4", 3, &rows(b"`gr\xE9`")), b"");
    is_refused(&mut r, OF);
    let mut r = of_tables("d.gr");
    let sent = in_charset(&mut r, "utf8mb4", 3, &rows(b"`gr`"));
    assert!(has(&sent, "LAST_INSERT_ID(100)"));
}

const SWE7: &str = "swe7";

/// Brackets are letters in it, so nothing that brings rows is read.
#[test]
fn no_rows_come_in_swe7() {
    for text in [
        "INSERT INTO t (a) VALUES (1)",
        "INSERT INTO other[ (a) VALUES (1)",
        "INSERT INTO[x (a) VALUES (1)",
        "INSERT INTO `[` (a) VALUES (1)",
        "LOAD DATA INFILE 'f' INTO TABLE `other[`",
    ] {
        for command in [3_u8, 0x16] {
            let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
            // Before the character set is known, too.
            let sent = r.say(&[&[command], text.as_bytes()].concat());
            assert!(has(&sent, "@@session.sql_mode"), "{text}");
            assert_eq!(r.answer(&probe_in_charset(SWE7)), b"", "{text}");
            is_refused(&mut r, SWE7);
        }
    }
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    in_charset(&mut r, SWE7, 3, b"INSERT INTO t (a) VALUES (1)");
    r.output();
    assert!(has(&r.query("SELECT '[]' FROM t"), "SELECT '[]'"));
}

#[test]
fn no_rows_come_in_swe7_behind_a_change_of_the_character_set() {
    for name in ["u[", "`[`", "[u"] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
        let insert = insert(name.as_bytes());
        let text = [b"SET NAMES swe7; ", &insert[..]].concat();
        let sent = in_charset(&mut r, "utf8mb4", 3, &text);
        assert!(sent.ends_with(b"SET NAMES swe7"), "{name}");
        assert!(has(&r.answer(&ok(0, 0)), "@@session.sql_mode"), "{name}");
        assert_eq!(r.answer(&probe_in_charset(SWE7)), b"", "{name}");
        is_refused(&mut r, SWE7);
    }
}

#[test]
fn a_database_that_is_chosen_in_swe7_is_asked_for() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    in_charset(&mut r, SWE7, 3, b"INSERT INTO t (a) VALUES (1)");
    r.output();
    r.say(b"\x02sh[p");
    r.answer(&ok(0, 0));
    r.output();
    let sent = r.query("INSERT INTO t (a) VALUES (1)");
    assert!(has(&sent, "@@session.sql_mode"));
}
