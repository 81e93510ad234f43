//! Computed keys that are no numbers, and that the server is not asked for: keys where NULL would be an error, which is in a NOT NULL column
//! of a strict server.

use keywright_rewrite::{Flavour, KeyForm, Server};

use super::rig::*;

const MYSQL: Server = Server {
    flavour: Flavour::MySql,
    version: 90704,
};
const STRICT: &str = "STRICT_TRANS_TABLES";
const TEXT: &str = "INSERT INTO t (id, a) VALUES (CONCAT(UUID(), 'x'), 1)";
const PREPARED: &str = "INSERT INTO t (id, a) VALUES (UNHEX(REPLACE(?, '-', '')), ?)";
const REFUSED: &str = "a function call as key";

/// The column as the server describes it.
fn key_column(is_not_null: bool) -> Vec<u8> {
    const CHAR: u8 = 254;
    let mut answer = described(&["id"]);
    let at = answer.len() - 6;
    answer[at] = CHAR;
    answer[at + 1] = u8::from(is_not_null);
    answer
}

/// Answers what the session asks, until it sends something else: that, and whether the key column was asked about.
fn told(r: &mut Rig, sent: Vec<u8>, sql_mode: &str, is_not_null: bool) -> (String, bool) {
    let (mut sent, mut has_asked) = (sent, false);
    loop {
        let answer = if has(&sent, "@@session.sql_mode") {
            probe_in(sql_mode, "1")
        } else if has(&sent, "SELECT `id` FROM") {
            has_asked = true;
            key_column(is_not_null)
        } else if has(&sent, "SHOW CREATE TABLE") {
            rows(&["t", "CREATE TABLE"])
        } else {
            break;
        };
        sent = r.answer(&answer);
    }
    (String::from_utf8_lossy(&sent).into_owned(), has_asked)
}

/// What goes out for a text, of which the session must know no more than sql_mode.
fn sent_in(r: &mut Rig, sql_mode: &str, text: &str) -> String {
    let sent = r.query(text);
    let (sent, has_asked) = told(r, sent, sql_mode, false);
    assert!(!has_asked, "{text}");
    sent
}

/// The same of a text that is prepared.
fn prepared_in(r: &mut Rig, sql_mode: &str, text: &str) -> String {
    let sent = r.say(&[&[COM_STMT_PREPARE], text.as_bytes()].concat());
    let (sent, has_asked) = told(r, sent, sql_mode, false);
    assert!(!has_asked, "{text}");
    sent
}

/// An execution of number 7 with these two values.
fn execution(values: [Option<&str>; 2]) -> Vec<u8> {
    let [first, second] = values.map(|value| u8::from(value.is_none()));
    let mut rest = vec![first | (second << 1), 1, 0xFD, 0, 0xFD, 0];
    for value in values.into_iter().flatten() {
        rest.push(u8::try_from(value.len()).unwrap());
        rest.extend(value.as_bytes());
    }
    execute(7, &rest)
}

/// A session of a strict server whose `t` has a key that is NOT NULL, after it has prepared [`PREPARED`] as number 7.
fn with_statement() -> Rig {
    let mut r = rig_of_not_null(MARIADB, KeyForm::Bytes, Some(true));
    assert!(prepared_in(&mut r, STRICT, PREPARED).contains(PREPARED));
    r.answer(&prepared(7, 2));
    assert_eq!(r.output(), prepared(7, 2));
    r
}

#[test]
fn what_applications_compute_out_of_their_own_keys_goes_in_as_it_is() {
    for (server, value) in [
        (MYSQL, "UUID_TO_BIN(?)"),
        (MYSQL, "UUID_TO_BIN(?, 1)"),
        (MYSQL, "UNHEX(REPLACE(?, '-', ''))"),
        (MARIADB, "UNHEX(REPLACE(?, '-', ''))"),
        (MARIADB, "uuid_v5(?)"),
    ] {
        for text in [
            format!("INSERT INTO t (id, a) VALUES ({value}, ?)"),
            format!("REPLACE INTO t (id, a) VALUES ({value}, ?)"),
            format!(
                "INSERT INTO t (id, a) VALUES ({value}, ?) ON DUPLICATE KEY UPDATE a = VALUES(a)"
            ),
        ] {
            let mut r = rig_of_not_null(server, KeyForm::Bytes, Some(true));
            assert!(prepared_in(&mut r, STRICT, &text).contains(&text), "{text}");
            r.answer(&prepared(7, 2));
            assert_eq!(r.output(), prepared(7, 2), "{text}");
            assert!(!r.say(&execution([Some("6ccd"), Some("1")])).is_empty());
            r.answer(&ok(1, 0));
            assert_eq!(r.output(), ok(1, 0));
            assert!(r.requests.is_empty(), "{text}");
        }
    }
}

/// 1048, as natively.
#[test]
fn that_the_key_is_null_is_the_servers_own_error() {
    let null = packet(1, b"\xFF\x18\x04#23000Column 'id' cannot be null");
    let mut r = with_statement();
    assert!(!r.say(&execution([None, Some("1")])).is_empty());
    r.answer(&null);
    assert_eq!(r.output(), null);
    assert!(!r.say(&execution([Some("6ccd"), None])).is_empty());
}

#[test]
fn so_it_is_with_texts_that_the_server_cannot_be_asked_for() {
    for value in [
        "f(1)",
        "uuid_v5('a', 'b')",
        "CONCAT(UUID(), 'x')",
        "a",
        "DEFAULT(a)",
        "(SELECT b FROM u)",
    ] {
        let mut r = rig_of_not_null(MARIADB, KeyForm::Text, Some(true));
        let text = format!("INSERT INTO t (a, id) VALUES (1, {value})");
        assert!(sent_in(&mut r, STRICT, &text).contains(&text), "{value}");
        r.answer(&ok(1, 0));
        assert_eq!(r.output(), ok(1, 0), "{value}");
        assert!(r.requests.is_empty(), "{value}");
    }
}

/// NULL gets a key there, whatever the column is.
#[test]
fn what_the_server_can_be_asked_for_is_asked_for() {
    let text = "INSERT INTO t (id, a) VALUES (@k, 1)";
    let mut r = rig_of_not_null(MARIADB, KeyForm::Text, Some(true));
    let sent = sent_in(&mut r, STRICT, text);
    assert!(sent.contains("SELECT (@k) IS NULL LIMIT 1"), "{sent}");
    // Not before an execution.
    let mut r = rig_of_not_null(MARIADB, KeyForm::Text, Some(true));
    assert!(prepared_in(&mut r, STRICT, text).contains(text));
    let mut r = rig_of_not_null(MARIADB, KeyForm::Text, Some(true));
    assert!(sent_in(&mut r, STRICT, &format!("PREPARE s FROM '{text}'")).contains(text));
    r.answer(&ok(0, 0));
    r.output();
    assert!(sent_in(&mut r, STRICT, "EXECUTE s").contains("EXECUTE s"));
}

#[test]
fn where_null_may_be_stored_it_is_refused() {
    let ignoring = TEXT.replace("INSERT", "INSERT IGNORE");
    let ignoring_prepared = PREPARED.replace("INSERT", "INSERT IGNORE");
    for (is_not_null, sql_mode, text, prepared) in [
        (true, "", TEXT, PREPARED),
        (false, STRICT, TEXT, PREPARED),
        (true, STRICT, &ignoring, &ignoring_prepared),
    ] {
        let new = || rig_of_not_null(MARIADB, KeyForm::Text, Some(is_not_null));
        let mut r = new();
        assert_eq!(sent_in(&mut r, sql_mode, text), "", "{text}");
        assert!(has(&r.output(), REFUSED), "{text}");
        let mut r = new();
        assert_eq!(prepared_in(&mut r, sql_mode, prepared), "", "{prepared}");
        assert!(has(&r.output(), REFUSED), "{prepared}");
    }
}

/// As without `admin`, and of views.
#[test]
fn of_tables_that_nobody_has_looked_at_the_server_is_asked_once() {
    for is_not_null in [true, false] {
        for mut r in [
            rig(KeyForm::Text, DEPRECATE_EOF),
            rig_of_not_null(MARIADB, KeyForm::Text, None),
        ] {
            for is_first in [true, false] {
                let sent = r.query(TEXT);
                let (sent, has_asked) = told(&mut r, sent, STRICT, is_not_null);
                assert_eq!(has_asked, is_first);
                assert_eq!(sent.contains(TEXT), is_not_null, "{sent}");
                let output = r.output();
                assert_eq!(has(&output, REFUSED), !is_not_null);
                if is_not_null {
                    r.answer(&ok(1, 0));
                    r.output();
                }
            }
        }
    }
}

#[test]
fn a_prepared_statement_is_judged_again_when_its_table_changes() {
    for is_not_null in [true, false] {
        let mut r = with_statement();
        r.query("ALTER TABLE t MODIFY id BINARY(16) NULL");
        r.answer(&ok(0, 0));
        r.output();
        let sent = r.say(&execution([Some("6ccd"), Some("1")]));
        let (sent, has_asked) = told(&mut r, sent, STRICT, is_not_null);
        assert!(has_asked);
        assert_eq!(sent.contains("6ccd"), is_not_null);
        assert_eq!(has(&r.output(), REFUSED), !is_not_null);
    }
}

#[test]
fn without_strict_mode_it_is_not_executed_any_more() {
    let mut r = with_statement();
    r.query("SET sql_mode = ''");
    r.answer(&ok(0, 0));
    r.output();
    let sent = r.say(&execution([Some("6ccd"), Some("1")]));
    assert_eq!(told(&mut r, sent, "", true), (String::new(), false));
    assert!(has(&r.output(), "under another sql_mode"));
}
