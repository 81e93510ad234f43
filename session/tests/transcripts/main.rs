//! Transcripts: what a client and an upstream say, and what the session makes of it. Each was got wrong once.

mod after;
mod alike;
mod attributes;
mod beyond_ascii;
mod broken;
mod bulk;
mod computed;
mod computed_texts;
mod computed_where_null_fails;
mod counted_otherwise;
mod cursors;
mod cut;
mod elsewhere;
mod empty_text;
mod guarded;
mod hidden;
mod in_place;
mod insert_id;
mod last_insert_id;
mod left_out;
mod load;
mod missing;
mod moved;
mod narrow;
mod next_value;
mod open_transactions;
mod prepared;
mod read_otherwise;
mod rig;
mod select;
mod select_prepared;
mod several;
mod steps;
mod streams;
mod switched;
mod temporary;
mod texts;
mod two_packets;
mod unread_names;
mod unshown;
mod upserts;
mod users;

use std::sync::Arc;

use keywright_rewrite::*;
use keywright_session::*;
use rig::*;

#[test]
fn works_text() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.probed("INSERT INTO t (a) VALUES (1)", "1");
    assert!(sent.contains("LAST_INSERT_ID(100)"), "{sent}");
}

#[test]
fn error_row_split() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.query("SELECT 1");
    let mut whole = packet(1, &[1]);
    whole.extend(def(2));
    let mut e = err();
    e[3] = 3;
    whole.extend(&e);
    for b in &whole {
        r.answer(&[*b]);
    }
    assert_eq!(r.output(), whole);
}
#[test]
fn pending_last_insert_id_is_stale_after_wrapped_insert() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("INSERT IGNORE INTO t (a) VALUES (1)", "1");
    r.answer(&ok(1, 100));
    r.probed("INSERT INTO t (a) VALUES (1)", "1");
    r.answer(&ok(1, 101));
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(
        !has(&sent, "last_insert_id=100"),
        "the older id is put back"
    );
}
#[test]
fn failed_insert_keeps_last_insert_id() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("INSERT INTO t (a) VALUES (1)", "1");
    r.answer(&ok(1, 100));
    r.probed("INSERT INTO t (a) VALUES (1)", "1");
    r.answer(&err());
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(
        has(&sent, "last_insert_id=100"),
        "LAST_INSERT_ID() shows 101, native shows 100"
    );
}
#[test]
fn use_in_several() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    r.probed("SELECT 1; SELECT 2", "1");
    let mut a = ok(0, 0);
    a[7] |= 8;
    a.extend(packet(2, &[0, 0, 0, 2, 0, 0, 0]));
    r.answer(&a);
    r.output();
    // A rule for one schema only.
    let rule = Rule {
        repeatable: true,
        is_steady: true,
        is_signed: true,
        ..Rule::new(Pattern::parse("other.t").unwrap(), "id", KeyForm::Integer)
    };
    let facts = SessionFacts {
        server: Server {
            flavour: Flavour::MariaDb,
            version: 101119,
        },
        capabilities: DEPRECATE_EOF | MULTI,
        collation: 45,
        user: Vec::new(),
        database: Some(b"d".to_vec()),
        status: 2,
        limits: Limits::default(),
    };
    r.s = Session::new(Arc::new(Rules::new(vec![rule], false)), facts);
    let sent = r.probed("USE other; INSERT INTO t (a) VALUES (1)", "1");
    assert!(
        !sent.contains("INSERT INTO t (a) VALUES (1)"),
        "passed without a key"
    );
}
#[test]
fn temporary_in_several() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    r.probed("CREATE TEMPORARY TABLE t (id INT, a INT); SELECT 1", "1");
    let mut a = ok(0, 0);
    a[7] |= 8;
    a.extend(packet(2, &[0, 0, 0, 2, 0, 0, 0]));
    r.answer(&a);
    assert!(has(
        &r.query("INSERT INTO t (a) VALUES (1)"),
        "SHOW CREATE TABLE"
    ));
    r.answer(&rows(&["t", "CREATE TEMPORARY TABLE `t` ("]));
    let sent = String::from_utf8_lossy(&r.answer(&probe("1"))).into_owned();
    assert!(
        sent.contains("INSERT INTO t (a) VALUES (1)"),
        "a temporary table's INSERT was rewritten: {sent}"
    );
}
#[test]
fn text_keys_with_increment() {
    let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
    let sent = r.probed("INSERT INTO t (a) VALUES (1),(2)", "3");
    assert!(
        sent.contains("'k0'"),
        "refused: {}",
        String::from_utf8_lossy(&r.output())
    );
}
#[test]
fn no_select_privilege() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.probed("INSERT INTO t VALUES (NULL, 1)", "1");
    assert!(sent.contains("SELECT * FROM"), "{sent}");
    let mut p = vec![0xFF, 0x76, 0x04];
    p.extend(b"#42000SELECT command denied");
    let sent = r.answer(&packet(1, &p));
    assert!(
        !has(&sent, "INSERT INTO t VALUES (NULL, 1)"),
        "passed without a key to an account that may INSERT but not SELECT"
    );
}
#[test]
fn close_of_16mb_is_bounded() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.client = vec![0xFF, 0xFF, 0xFF, 0, 0x19];
    r.client.resize((1 << 24) + 3, 0);
    r.run();
    let first = r.at_least[0];
    r.client.extend([0; 4096]);
    r.run();
    assert!(
        r.closed || r.client.is_empty() || r.at_least[0] <= first,
        "wants {} then {} bytes: without end",
        first,
        r.at_least[0]
    );
}
#[test]
fn large_insert_on_free_table_with_multi_statements() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let sent = r.probed("SELECT 1; SELECT 2", "1");
    assert!(sent.contains("SELECT 1"));
    let mut a = ok(0, 0);
    a[7] |= 8;
    a.extend(packet(2, &[0, 0, 0, 2, 0, 0, 0]));
    r.answer(&a);
    r.output();
    let mut text = b"\x03INSERT INTO free (b) VALUES ('".to_vec();
    text.resize(0xFF_FFFF, b'x');
    let sent = r.say(&text);
    if has(&sent, "sql_mode") {
        r.answer(&probe("1"));
    }
    assert!(!r.closed, "{}", String::from_utf8_lossy(&r.output()));
}
#[test]
fn probe_in_another_charset() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.query("INSERT INTO t (a) VALUES (1)");
    // SET character_set_results = utf16: every text of the answer is in it.
    let mut o = packet(1, &[6]);
    for i in 0..6 {
        o.extend(def(2 + i));
    }
    let mut row = vec![];
    for s in ["", "utf8mb4", "d", "1", "0", SERVER] {
        row.push(2 * s.len() as u8);
        for b in s.bytes() {
            row.extend([0, b]);
        }
    }
    o.extend(packet(8, &row));
    o.extend(packet(9, &[0xFE, 0, 0, 2, 0, 0, 0]));
    r.answer(&o);
    assert!(
        !has(&r.output(), "\0u\0t\0f"),
        "the probe's rows were given to the client as the answer to its INSERT"
    );
}
#[test]
fn all_rows_updated() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed(
        "INSERT INTO t (a) VALUES (1),(2) ON DUPLICATE KEY UPDATE a=a+1",
        "1",
    );
    r.answer(&ok(4, 55));
    let output = r.output();
    assert_eq!(
        output,
        ok(4, 55),
        "4 affected rows of 2: none went in, yet a phantom id is reported"
    );
}
#[test]
fn returning_that_fails() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("INSERT IGNORE INTO t (a) VALUES (1) RETURNING id", "1");
    r.answer(&err());
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(
        !has(&sent, "last_insert_id=100"),
        "a failed INSERT sets LAST_INSERT_ID()"
    );
}
#[test]
fn probe_is_not_sent_for_tables_without_rule() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("INSERT INTO t (a) VALUES (1)", "1");
    r.answer(&ok(1, 100));
    r.query("CALL p()");
    r.answer(&ok(0, 0));
    r.output();
    let mut p = vec![0x16];
    p.extend(b"INSERT INTO free (a) VALUES (?)");
    assert!(
        !has(&r.say(&p), "sql_mode"),
        "probe before the PREPARE of an INSERT on a table without rule: warnings and FOUND_ROWS() of the CALL are lost"
    );
}

#[test]
fn an_open_transaction_is_no_place_to_end_a_connection() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let mut in_transaction = ok(0, 0);
    in_transaction[7] |= 1;
    assert!(r.s.is_between_commands());
    r.query("BEGIN");
    assert!(!r.s.is_between_commands());
    r.answer(&in_transaction);
    assert!(!r.s.is_between_commands());
    r.query("COMMIT");
    r.answer(&ok(0, 0));
    assert!(r.s.is_between_commands());
}

fn after(r: &mut Rig, insert: &str, answer: &[u8], question: &str) -> String {
    r.probed(insert, "1");
    r.answer(answer);
    r.output();
    String::from_utf8_lossy(&r.query(question)).into_owned()
}

const BOTH: &str = "SELECT LAST_INSERT_ID(), ROW_COUNT()";

#[test]
fn row_count_survives_what_puts_the_last_id_right() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let upsert = "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2";
    let sent = after(&mut r, upsert, &ok(1, 100), BOTH);
    assert!(
        sent.contains("SELECT LAST_INSERT_ID(100) INTO @keywright"),
        "ROW_COUNT() is 1: {sent}"
    );
    let sent = String::from_utf8_lossy(&r.answer(&ok(1, 0))).into_owned();
    assert!(sent.contains(BOTH), "{sent}");
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = after(&mut r, "INSERT INTO t (a) VALUES (1)", &err(), BOTH);
    assert!(
        sent.contains("SELECT LAST_INSERT_ID(0)") && !sent.contains("INTO"),
        "ROW_COUNT() is -1: {sent}"
    );
}

/// As it was to the client before the session asked for its state.
#[test]
fn row_count_among_values_survives_a_question() {
    const COUNTS: &str = "INSERT INTO t (a) VALUES (ROW_COUNT())";
    for (before, made_so) in [
        (ok(0, 0), Some("SET @keywright=0")),
        (ok(1, 0), Some("SELECT 0 INTO @keywright")),
        // Only writing rows would make it so.
        (ok(2, 0), None),
        (err(), None),
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        r.probed("INSERT INTO t (id, a) VALUES (5, 1)", "1");
        r.answer(&ok(1, 0));
        r.query("SET sql_mode = ''");
        r.answer(&before);
        r.output();
        let sent = r.probed(COUNTS, "1");
        let sent = match made_so {
            Some(text) => {
                assert!(sent.contains(text), "{sent}");
                String::from_utf8_lossy(&r.answer(&ok(1, 0))).into_owned()
            }
            None => sent,
        };
        assert!(sent.contains(",ROW_COUNT())"), "{sent}");
        assert!(r.output().is_empty());
    }
}

#[test]
fn an_error_in_place_of_the_row_count_is_the_answer() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.probed("INSERT INTO t (a) VALUES (ROW_COUNT())", "1");
    assert!(sent.contains("SET @keywright=0"), "{sent}");
    assert!(r.answer(&err()).is_empty());
    assert_eq!(r.output(), err());
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn ignored_row_leaves_the_last_id() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("INSERT IGNORE INTO t (a) VALUES (1)", "1");
    r.answer(&ok(0, 100));
    assert_eq!(r.output(), ok(0, 0), "the key did not go in");
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "SET last_insert_id=0"), "it was 0 before");
}

#[test]
fn key_is_no_last_id_when_the_old_one_could_not_be_put_back() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.query("CALL p()");
    r.answer(&ok(0, 0));
    let sent = r.unhidden("INSERT INTO t (a) VALUES (1)");
    assert!(sent.contains("VALUES (100,1)"), "{sent}");
    r.answer(&ok(1, 100));
    // From here on it is known.
    let sent = r.probed("INSERT INTO t (a) VALUES (1)", "1");
    assert!(sent.contains("LAST_INSERT_ID(101)"), "{sent}");
}
