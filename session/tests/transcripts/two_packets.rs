//! Commands of two packets, numbered 0 and 1: what the client gets is numbered from 2 on, whatever the server was asked before.

use keywright_rewrite::KeyForm;
use keywright_session::Limits;
use keywright_wire::bytes::BODY_BYTES_MAX;

use super::hidden::is_refused;
use super::rig::*;
use super::select::too_few;

fn new() -> Rig {
    let limits = Limits {
        select_rows_max: 10,
        ..Limits::default()
    };
    rig_with(KeyForm::Integer, DEPRECATE_EOF, limits)
}

/// Says a text, with so long a literal in place of `?` that it takes two packets. Returns what goes out behind the probe.
fn said(r: &mut Rig, text: &str) -> Vec<u8> {
    let text = text.replace('?', &format!("'{}'", "x".repeat(BODY_BYTES_MAX)));
    let payload = [b"\x03", text.as_bytes()].concat();
    let (first, last) = payload.split_at(BODY_BYTES_MAX);
    r.client.extend(packet(0, first));
    let sent = r.say_numbered(1, last);
    match has(&sent, "@@session.sql_mode") {
        true => r.answer(&probe("1")),
        false => sent,
    }
}

fn numbered(number: u8, mut packet: Vec<u8>) -> Vec<u8> {
    packet[3] = number;
    packet
}

#[test]
fn a_question_for_keys_that_is_interrupted_is_answered_so() {
    let mut r = new();
    let asked = said(&mut r, "INSERT INTO t (id, a) VALUES (@k + 1, ?)");
    assert!(has(&asked, "SELECT (@k + 1) LIMIT 1"));
    let interrupted = packet(1, b"\xFF\x25\x05#70100Query execution was interrupted");
    assert_eq!(r.answer(&interrupted), b"");
    assert_eq!(r.output(), numbered(2, interrupted));
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn more_rows_than_the_limit_are_refused_so() {
    let mut r = new();
    let sent = said(&mut r, "INSERT INTO t (a) SELECT ? FROM u");
    assert!(has(&sent, "ROWNUM()<=10"));
    assert_eq!(r.answer(&numbered(2, too_few())), b"");
    let output = r.output();
    assert!(has(&output, "more than 10 rows"), "{output:?}");
    assert_eq!(output[3], 2);
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

/// The server's own question for the file is answered as it numbers it.
#[test]
fn the_clients_file_is_asked_for_so() {
    const LOCAL: &str = "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a) SET b = ?";
    let wanted = packet(2, b"\xFBf");
    let mut r = new();
    said(&mut r, LOCAL);
    assert_eq!(r.answer(&wanted), packet(3, b""));
    r.answer(&numbered(4, ok(0, 0)));
    assert_eq!(r.output(), wanted);
    let mut r = new();
    said(&mut r, LOCAL);
    assert_eq!(r.answer(&numbered(2, err())), b"");
    assert_eq!(r.output(), numbered(2, err()));
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

/// With its keys it would be two, and the server would number its answer so.
#[test]
fn one_that_was_one_packet_does_not_become_two() {
    for text in [
        "INSERT INTO t (a) SELECT '?' FROM u",
        "LOAD DATA INFILE 'f' INTO TABLE t (a) SET b = '?'",
    ] {
        let room = BODY_BYTES_MAX - 2 - text.len();
        let mut r = new();
        let mut sent = r.query(&text.replace('?', &"x".repeat(room)));
        if has(&sent, "@@session.sql_mode") {
            sent = r.answer(&probe("1"));
        }
        if has(&sent, "SET last_insert_id=0") {
            sent = r.answer(&ok(0, 0));
        }
        assert_eq!(sent, b"", "{text}");
        is_refused(&mut r, "takes another packet of 16 MiB");
    }
}
