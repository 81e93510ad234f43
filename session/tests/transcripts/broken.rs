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
    // A machine that has just begun may be slow for once.
    let took: Vec<Duration> = (0..5).map(|_| very_many_parameters()).collect();
    assert!(took.iter().any(|took| *took < LONG), "{took:?}");
}

/// How long it takes.
fn very_many_parameters() -> Duration {
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
    started.elapsed()
}

/// MariaDB 10.11.14 ended when it was sent the like behind a question of our own: an execution of what was prepared last, before that was
/// answered, with fewer values than there are parameters.
#[test]
fn a_malformed_execution_of_a_rules_statement_goes_nowhere() {
    const LAST: [u8; 4] = [0xFF; 4];
    let names: Vec<String> = (1..18).map(|at| format!("f{at}")).collect();
    let (names, marks) = (names.join(", "), ["?"; 17].join(", "));
    let text = format!("INSERT INTO t ({names}) VALUES ({marks})");
    let cut = [
        &[0x17],
        &LAST[..],
        &[0, 1, 0, 0, 0, 0, 0, 0, 1, 0xFE, 0, 0xFE, 0],
    ]
    .concat();
    for rest in [&cut[..], &cut[..10]] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let mut sent = stmt_prepare(&mut r, &text, "1").into_bytes();
        r.client.extend(packet(0, rest));
        r.run();
        sent.append(&mut r.to_server);
        assert!(has(&sent, "INSERT INTO t (`id`,f1"), "{sent:?}");
        let parameters = sent.iter().filter(|byte| **byte == b'?').count();
        sent = r.answer(&prepared(7, u16::try_from(parameters).unwrap()));
        assert!(sent.is_empty(), "{sent:?}");
        // As the server says it.
        let told = r.output();
        assert!(told.ends_with(b"\xFF\x2B\x07#HY000Malformed communication packet"));
        assert!(!r.closed);
        let text = "SELECT 1";
        assert!(has(&r.query(text), text));
    }
}

/// Fewer keys would be asked for than rows get.
#[test]
fn rows_are_not_numbered_by_an_increment_of_0() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.probed("INSERT INTO t (a) VALUES (1),(2)", "0");
    assert!(!sent.contains("INSERT"), "{sent}");
    assert!(r.requests.is_empty(), "{:?}", r.requests);
}
