//! Commands that are refused before they have come whole: their rest is no command.

use std::sync::Arc;

use keywright_session::{Limits, Mode, RuleAdmission, Rules, Session, SessionFacts};
use keywright_wire::bytes::BODY_BYTES_MAX;

use super::rig::*;
use super::switched::{INSERT, Program, ok_in};

/// What would become of the rest if it were read as commands.
const HIDDEN: &str = "DROP TABLE u";

/// The client sends the beginning of a command, is told that it waited for too long, and sends the rest and another command.
fn wait_in_vain(r: &mut Rig, first: &[u8], rest: &[u8]) {
    r.client.extend(first);
    r.run();
    assert!(r.to_server.is_empty(), "{} bytes", r.to_server.len());
    r.s.on_waited();
    r.run();
    assert!(has(&r.output(), "are being switched"));
    assert!(!r.s.is_between_commands());
    // Byte by byte where that does not take long.
    for part in rest.chunks(rest.len() / 64 + 1) {
        r.client.extend(part);
        r.run();
    }
    assert!(r.output().is_empty());
    assert!(r.s.is_between_commands());
    let sent = r.query("SELECT 2");
    assert!(!has(&sent, HIDDEN) && sent.ends_with(b"SELECT 2"));
    r.answer(&ok_in(2));
    assert_eq!(r.output(), ok_in(2));
    assert!(!r.closed);
}

/// An execution of statement 7 whose one value is this.
fn execute_with_text(text: &[u8]) -> Vec<u8> {
    let mut rest = vec![0, 1, 0xFD, 0, 0xFE];
    rest.extend((text.len() as u64).to_le_bytes());
    rest.extend(text);
    execute(7, &rest)
}

fn held_with_statement() -> Program {
    let mut program = Program::new(Mode::Observe);
    stmt_prepare(&mut program.r, "INSERT INTO t (a) VALUES (?)", "1");
    program.r.answer(&prepared(7, 1));
    program.r.output();
    program.publish(Mode::Observe, true);
    program
}

#[test]
fn the_rest_of_an_execution_is_no_command() {
    let mut hidden = vec![3];
    hidden.extend(HIDDEN.as_bytes());
    let whole = packet(0, &execute_with_text(&packet(0, &hidden)));
    let (first, rest) = whole.split_at(whole.len() - hidden.len() - 4);
    wait_in_vain(&mut held_with_statement().r, first, rest);
}

#[test]
fn nor_is_the_next_packet_of_a_long_one() {
    let payload = execute_with_text(&vec![b'x'; BODY_BYTES_MAX]);
    let (first, last) = payload.split_at(BODY_BYTES_MAX);
    wait_in_vain(
        &mut held_with_statement().r,
        &packet(0, first),
        &packet(1, last),
    );
}

#[test]
fn nor_is_the_rest_of_a_text_that_is_too_long_to_gather() {
    let mut program = Program::new(Mode::Observe);
    let limits = Limits {
        rewrite_bytes_max: 64 << 10,
        ..Limits::default()
    };
    let admission = RuleAdmission {
        name: "t".to_owned(),
        is_held: true,
        waits_for_store: false,
        is_switched: true,
        servers: None,
    };
    let rules = Rules::new(vec![program.r.rule_in(Mode::Observe)], false);
    let rules = Arc::new(rules.with_traffic(&program.traffic, 0, &[admission]));
    let facts = SessionFacts {
        limits,
        ..program.r.facts()
    };
    program.r.s = Session::new(rules, facts);
    program.r.probed("INSERT INTO u (a) VALUES (1)", "1");
    program.r.answer(&ok(1, 0));
    program.r.output();
    let mut text = vec![3];
    text.extend(INSERT.as_bytes());
    let mut hidden = vec![3];
    hidden.extend(HIDDEN.as_bytes());
    while text.len() < 200 << 10 {
        text.extend(b", ('");
        text.extend(packet(0, &hidden));
        text.extend(b"')");
    }
    let whole = packet(0, &text);
    let mut rest = whole.as_slice();
    // The session's state is asked for first.
    program.r.client.extend(&rest[..64 << 10]);
    rest = &rest[64 << 10..];
    program.r.run();
    let sent = std::mem::take(&mut program.r.to_server);
    assert!(has(&sent, "@@session.sql_mode"));
    program.r.server.extend(probe("1"));
    wait_in_vain(&mut program.r, &[], rest);
}
