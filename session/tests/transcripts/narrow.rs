//! Key columns without room for the keys: only what certainly fails there may be sent.

use keywright_session::KeyColumnState;

use super::rig::*;

const INSERT: &str = "INSERT INTO t (a) VALUES (1)";
const SELECT: &str = "INSERT INTO t (a) SELECT 1";

const LONG: u8 = 3;
const VAR_STRING: u8 = 253;

/// The answer to the question for the key column, of that type.
fn column_of(of_type: u8) -> Vec<u8> {
    let mut column = def(2);
    let at = column.len() - 6;
    column[at] = of_type;
    let answer = [0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [packet(1, &answer), column].concat()
}

/// What goes to the server, and what the client is told, of an INT.
fn said(sql_mode: &str, text: &str) -> (String, String) {
    said_of(LONG, sql_mode, text)
}

fn said_of(of_type: u8, sql_mode: &str, text: &str) -> (String, String) {
    const COM_QUERY: u8 = 3;
    said_to(&[&[COM_QUERY], text.as_bytes()].concat(), of_type, sql_mode)
}

fn said_to(command: &[u8], of_type: u8, sql_mode: &str) -> (String, String) {
    let mut r = rig_of_table(KeyColumnState::TooNarrow);
    assert!(has(&r.say(command), "@@session.sql_mode"));
    let asked = r.answer(&probe_in(sql_mode, "1"));
    assert!(has(&asked, "SELECT `id` FROM `t`"), "{asked:?}");
    let sent = String::from_utf8_lossy(&r.answer(&column_of(of_type))).into_owned();
    (sent, String::from_utf8_lossy(&r.output()).into_owned())
}

#[test]
fn a_key_is_sent_where_the_server_refuses_what_is_too_large() {
    for text in [INSERT, SELECT] {
        let (sent, _) = said("STRICT_TRANS_TABLES", text);
        assert!(sent.contains("100"), "{sent}");
    }
}

#[test]
fn a_key_that_would_be_clipped_is_not_sent() {
    let ignoring = INSERT.replace("INSERT", "INSERT IGNORE");
    let replacing = INSERT.replace("INSERT", "REPLACE");
    for (sql_mode, text) in [
        ("", INSERT),
        ("", SELECT),
        ("", &replacing),
        ("STRICT_TRANS_TABLES", &ignoring),
    ] {
        let (sent, output) = said(sql_mode, text);
        assert!(
            !sent.contains("INSERT") && !sent.contains("REPLACE"),
            "{text}: {sent}"
        );
        assert!(output.contains("room"), "{text}: {output}");
    }
}

/// As of tables that a pattern happens to match. In a column of numbers these texts would ask for a key, or be refused.
#[test]
fn texts_pass_as_keys_of_a_column_of_text() {
    for text in [
        "INSERT INTO t (id, a) VALUES ('huey', 1)",
        "INSERT INTO t (id, a) VALUES ('', 1), ('0', 2), ('1e5f', 3)",
        "INSERT IGNORE INTO t (id, a) VALUES ('0 ', 1)",
        "REPLACE INTO t SET id = '0', a = 1",
        "INSERT INTO t (id, a) VALUES (UUID(), 1), (CONCAT('a', @b), 2)",
    ] {
        for sql_mode in ["", "STRICT_TRANS_TABLES"] {
            let (sent, output) = said_of(VAR_STRING, sql_mode, text);
            assert!(sent.contains(text), "{sql_mode}, {text}: {sent} {output}");
        }
    }
}

#[test]
fn a_column_of_text_gets_no_number_as_key() {
    for text in [
        INSERT,
        "INSERT INTO t (id, a) VALUES (NULL, 1)",
        "INSERT INTO t (id, a) VALUES ('huey', 1), (DEFAULT, 2)",
    ] {
        for sql_mode in ["", "STRICT_TRANS_TABLES"] {
            let (sent, output) = said_of(VAR_STRING, sql_mode, text);
            assert!(!sent.contains("INSERT"), "{text}: {sent}");
            assert!(output.contains("room"), "{text}: {output}");
        }
    }
}

#[test]
fn what_is_prepared_for_a_column_of_text_stays_as_it_is() {
    const COM_STMT_PREPARE: u8 = 0x16;
    let said = |sql_mode, text: &str| {
        let command = [&[COM_STMT_PREPARE], text.as_bytes()].concat();
        said_to(&command, VAR_STRING, sql_mode)
    };
    for sql_mode in ["", "STRICT_TRANS_TABLES"] {
        for text in [
            "INSERT INTO t (id, a) VALUES (?, ?)",
            "INSERT INTO t (id, a) VALUES ('0', ?), (UPPER(?), 2)",
        ] {
            let (sent, output) = said(sql_mode, text);
            assert!(sent.contains(text), "{sql_mode}, {text}: {sent} {output}");
        }
        let (sent, output) = said(sql_mode, "INSERT INTO t (a) VALUES (?)");
        assert!(!sent.contains("INSERT"), "{sql_mode}: {sent}");
        assert!(output.contains("room"), "{sql_mode}: {output}");
    }
}
