//! What peers send that keep to nothing.

use std::time::{Duration, Instant};

use keywright_rewrite::KeyForm;

use crate::rig::*;

/// Far more than it takes on a busy machine, and far less than it took once.
const LONG: Duration = Duration::from_millis(1_500);

/// A result's beginning: one column, without EOF behind its definition.
fn rows_begin() -> Vec<u8> {
    let mut begin = packet(1, &[1]);
    begin.extend(def(2));
    begin
}

#[test]
fn what_came_before_a_broken_packet_is_the_clients() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.query("SELECT 1");
    let mut whole = rows_begin();
    whole.extend(packet(3, b"\x01x"));
    let before = whole.clone();
    whole.extend(packet(4, &[0xFE, 0]));
    r.answer(&whole);
    assert!(r.closed);
    assert!(r.output().starts_with(&before));
}

#[test]
fn an_empty_packet_among_rows_hides_nothing() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.query("SELECT 1");
    r.answer(&rows_begin());
    // The next packet's length begins with the byte that ends rows.
    r.answer(&packet(3, &[]));
    let row = packet(4, &[b'x'; 0xFE]);
    let mut rest = packet(3, &[]);
    rest.extend(&row);
    rest.extend(packet(5, &[0xFE, 0, 0, 2, 0, 0, 0]));
    r.answer(&rest);
    assert!(!r.closed && r.s.is_between_commands());
}

#[test]
fn a_short_command_that_is_long_ends_the_connection_however_it_comes() {
    let long = [vec![0x1A], vec![0; 100_000]].concat();
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.say(&long);
    assert!(r.closed);
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    for byte in packet(0, &long) {
        r.client.push(byte);
        r.run();
    }
    assert!(r.closed);
}

/// All connections of a thread wait while one statement is worked on.
#[test]
fn a_statement_of_very_many_parameters_takes_no_long() {
    const ROWS: usize = 30_000;
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let marks = vec!["(?)"; ROWS].join(",");
    let text = format!("INSERT IGNORE INTO t (a) VALUES {marks}");
    let started = Instant::now();
    let prepared = stmt_prepare(&mut r, &text, "1");
    let count = prepared.matches('?').count();
    let both = u16::try_from(count).unwrap().to_le_bytes();
    let mut answer = packet(1, &[0, 7, 0, 0, 0, 0, 0, both[0], both[1], 0, 0, 0]);
    for _ in 0..count {
        answer.extend(def(2));
    }
    r.answer(&answer);
    let mut rest = vec![0xFF; ROWS / 8];
    rest.push(1);
    rest.extend([6, 0].repeat(ROWS));
    let sent = r.say(&execute(7, &rest));
    assert!(sent.len() > 2 * ROWS, "{} bytes sent", sent.len());
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
}
