//! Key columns without room for the keys: only what certainly fails there may be sent.

use keywright_session::KeyColumnState;

use super::rig::*;

const INSERT: &str = "INSERT INTO t (a) VALUES (1)";
const SELECT: &str = "INSERT INTO t (a) SELECT 1";

/// The answer to the question for the key column, an INT.
fn int() -> Vec<u8> {
    const LONG: u8 = 3;
    let mut column = def(2);
    let at = column.len() - 6;
    column[at] = LONG;
    let answer = [0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [packet(1, &answer), column].concat()
}

/// What goes to the server, and what the client is told.
fn said(sql_mode: &str, text: &str) -> (String, String) {
    let mut r = rig_of_table(KeyColumnState::TooNarrow);
    assert!(has(&r.query(text), "@@session.sql_mode"));
    let asked = r.answer(&probe_in(sql_mode, "1"));
    assert!(has(&asked, "SELECT `id` FROM `t`"), "{asked:?}");
    let sent = String::from_utf8_lossy(&r.answer(&int())).into_owned();
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
