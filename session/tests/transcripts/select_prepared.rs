//! A prepared INSERT … SELECT: its keys are parameters, and it is executed again with more of them. And what is executed as
//! the client wrote it.

use keywright_rewrite::KeyForm;
use keywright_session::Limits;

use super::rig::*;

const SELECT: &str = "INSERT INTO t (a, b) SELECT ?, a FROM u WHERE a > ?";

/// One row at most, and the parameters of [`SELECT`].
const SINGLE: &str = "INSERT INTO t (a, b) SELECT ?, 1 FROM DUAL WHERE 1 > ?";

const LONGLONG: [u8; 2] = [8, 0];

/// What the server says when a row had no key.
fn too_few() -> Vec<u8> {
    let mut payload = vec![0xFF, 0x9A, 0x06];
    payload
        .extend(b"#22003BIGINT UNSIGNED value is out of range in 'rownum() * 7046029254386353131'");
    packet(1, &payload)
}

/// A session in which the statement is prepared as number 7, and the text that the server got.
fn with(text: &str, parameters: u16) -> (Rig, String) {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = stmt_prepare(&mut r, text, "1");
    r.answer(&prepared(7, parameters));
    r.output();
    (r, sent)
}

/// An execution with two numbers.
fn two(first: u64, second: u64) -> Vec<u8> {
    let mut rest = vec![0, 1];
    rest.extend(LONGLONG.repeat(2));
    rest.extend(first.to_le_bytes());
    rest.extend(second.to_le_bytes());
    execute(7, &rest)
}

/// What the server gets for it, where the number of rows is not known.
fn ranged(number: u32, values: [u64; 5]) -> Vec<u8> {
    let mut rest = vec![0, 1];
    rest.extend(LONGLONG.repeat(5));
    rest.extend(values.into_iter().flat_map(u64::to_le_bytes));
    packet(0, &execute(number, &rest))
}

#[test]
fn the_client_knows_of_its_own_parameters_only() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = stmt_prepare(&mut r, SELECT, "1");
    assert!(
        sent.contains("SELECT ?, a,CASE WHEN ROWNUM()<=? THEN ?+(ROWNUM()-1)*? ELSE"),
        "{sent}"
    );
    r.answer(&prepared(7, 5));
    assert_eq!(r.output(), prepared(7, 2));
}

#[test]
fn too_few_keys_are_tried_again_with_more() {
    let (mut r, _) = with(SELECT, 5);
    assert_eq!(r.say(&two(1, 2)), ranged(7, [1, 64, 100, 1, 2]));
    assert_eq!(r.answer(&too_few()), ranged(7, [1, 512, 164, 1, 2]));
    assert!(
        r.output().is_empty(),
        "the client hears of the last try only"
    );
    r.answer(&ok(200, 99));
    assert_eq!(r.output(), ok(200, 164), "the first key of the last try");
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "SET last_insert_id=164"));
    r.answer(&ok(0, 0));
    r.answer(&ok(0, 0));
    // The types are not sent again.
    let mut rest = vec![0, 0];
    rest.extend([3_u64, 4].into_iter().flat_map(u64::to_le_bytes));
    assert_eq!(
        r.say(&execute(7, &rest)),
        ranged(7, [3, 64, 676, 1, 4]),
        "the next execution begins with few again"
    );
}

#[test]
fn the_spacing_in_force_is_that_of_the_execution() {
    let (mut r, _) = with(SELECT, 5);
    r.query("SET auto_increment_increment = 10");
    r.answer(&ok(0, 0));
    assert!(has(&r.say(&two(1, 2)), "sql_mode"));
    assert_eq!(r.answer(&probe("10")), ranged(7, [1, 64, 100, 10, 2]));
    assert_eq!(r.requests[0].count, 63 * 10 + 1);
}

#[test]
fn more_rows_than_the_limit_are_refused() {
    let limits = Limits {
        select_rows_max: 100,
        ..Limits::default()
    };
    let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
    stmt_prepare(&mut r, SELECT, "1");
    r.answer(&prepared(7, 5));
    r.output();
    r.say(&two(1, 2));
    assert_eq!(r.answer(&too_few()), ranged(7, [1, 100, 164, 1, 2]));
    assert_eq!(r.answer(&too_few()), b"");
    assert!(has(&r.output(), "more than 100 rows"));
    assert!(has(&r.query("SELECT 1"), "SELECT 1"), "the session goes on");
}

#[test]
fn keys_that_run_out_are_an_error() {
    let (mut r, _) = with(SELECT, 5);
    r.fail_keys = true;
    assert_eq!(r.say(&two(1, 2)), b"");
    assert!(has(&r.output(), "down"));
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn long_data_goes_to_its_place() {
    let (mut r, sent) = with(SINGLE, 3);
    assert!(sent.contains("SELECT ?, 1,? FROM DUAL"), "{sent}");
    let long_data = |index: u8| {
        [
            vec![COM_STMT_SEND_LONG_DATA, 7, 0, 0, 0, index, 0],
            b"long".to_vec(),
        ]
        .concat()
    };
    assert_eq!(r.say(&long_data(0)), packet(0, &long_data(0)));
    assert_eq!(r.say(&long_data(1)), packet(0, &long_data(2)));
    let types = [252, 0, 252, 0];
    let mut rest = vec![0, 1];
    rest.extend(types);
    let sent = r.say(&execute(7, &rest));
    let mut expected = vec![0, 1, 252, 0, 8, 0x80, 252, 0];
    expected.extend(100_u64.to_le_bytes());
    assert_eq!(sent, packet(0, &execute(7, &expected)));
    r.answer(&ok(1, 100));
    assert_eq!(r.output(), ok(1, 100));
}

#[test]
fn long_data_cannot_be_tried_twice() {
    let (mut r, _) = with(SELECT, 5);
    r.say(&[COM_STMT_SEND_LONG_DATA, 7, 0, 0, 0, 0, 0, b'x']);
    let sent = r.say(&two(1, 2));
    // The server forgets what was sent as long data.
    assert_eq!(sent, packet(0, &[COM_STMT_RESET, 7, 0, 0, 0]));
    assert!(has(&r.output(), "COM_STMT_SEND_LONG_DATA"));
    r.answer(&ok(0, 0));
    assert_eq!(r.say(&two(1, 2)), ranged(7, [1, 64, 100, 1, 2]));
}

/// Another sql_mode when it is executed than when it was prepared.
#[test]
fn a_zero_means_what_it_meant_when_prepared() {
    for (text, parameters) in [
        ("INSERT INTO t (id, a) SELECT 0, a FROM u WHERE a > ?", 4),
        ("INSERT INTO t (id, a) VALUES (0, ?)", 2),
        ("INSERT INTO t (id, a) VALUES (NULL, 1), (DEFAULT, ?)", 3),
    ] {
        let (mut r, _) = with(text, parameters);
        r.query("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'");
        r.answer(&ok(0, 0));
        let mut rest = vec![0, 1];
        rest.extend(LONGLONG);
        rest.extend(1_u64.to_le_bytes());
        r.say(&execute(7, &rest));
        assert_eq!(r.answer(&probe_in("NO_AUTO_VALUE_ON_ZERO", "1")), b"");
        assert!(has(&r.output(), "another sql_mode than that of PREPARE"));
        r.query("SET sql_mode = ''");
        r.answer(&ok(0, 0));
        r.say(&execute(7, &rest));
        assert_ne!(r.answer(&probe("1")), b"", "as when it was prepared");
    }
}

#[test]
fn statements_on_rules_tables_are_counted_together() {
    let limits = Limits {
        statements_max: 2,
        ..Limits::default()
    };
    let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
    stmt_prepare(&mut r, SELECT, "1");
    r.answer(&prepared(7, 5));
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1");
    r.answer(&prepared(8, 2));
    r.output();
    assert_eq!(stmt_prepare(&mut r, SELECT, "1"), "");
    assert!(has(&r.output(), "too many prepared statements"));
    r.say(&[COM_STMT_CLOSE, 7, 0, 0, 0]);
    assert!(stmt_prepare(&mut r, SELECT, "1").contains("ROWNUM()"));
}

#[test]
fn insert_id_is_used_up_by_the_clients_own_text() {
    for (text, parameters) in [
        (SELECT, 5),
        ("INSERT INTO t (a, b) VALUES (?, ?)", 3),
        ("INSERT INTO t (a, b) VALUES (?, ?), (1, 1)", 4),
    ] {
        let (mut r, _) = with(text, parameters);
        r.query("SET insert_id = 77");
        r.answer(&ok(0, 0));
        r.output();
        r.say(&two(1, 2));
        let sent = r.answer(&probe_with_insert_id("77"));
        assert_eq!(sent, packet(0, &[b"\x16", text.as_bytes()].concat()));
        let mut rest = vec![0, 1];
        rest.extend(LONGLONG.repeat(2));
        rest.extend([1_u64, 2].into_iter().flat_map(u64::to_le_bytes));
        let sent = r.answer(&prepared(9, 2));
        assert_eq!(sent, packet(0, &execute(9, &rest)), "no key of ours");
        r.answer(&ok(1, 77));
        assert_eq!(r.output(), ok(1, 77));
        assert!(r.requests.is_empty());
        // Only once, and it is closed with the client's.
        r.say(&two(1, 2));
        let sent = r.answer(&probe("1"));
        if sent.get(4) == Some(&COM_STMT_PREPARE) {
            // One that leaves LAST_INSERT_ID(), which is not known now.
            r.answer(&prepared(10, parameters));
        }
        assert_eq!(r.requests.len(), 1);
        r.answer(&ok(1, 100));
        let sent = r.say(&[COM_STMT_CLOSE, 7, 0, 0, 0]);
        let close = packet(0, &[COM_STMT_CLOSE, 9, 0, 0, 0]);
        assert_eq!(
            sent.windows(close.len()).filter(|at| *at == close).count(),
            1
        );
    }
}
