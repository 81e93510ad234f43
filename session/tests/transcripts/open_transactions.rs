//! Transactions that are open while rules change: they may go on by what was in force, and hold others up.

use keywright_session::{Mode, RulesUpdate};

use super::rig::*;
use super::switched::{INSERT, KEYED, Program, ok_in};

#[test]
fn a_transaction_that_has_touched_the_table_goes_on() {
    for touches in [INSERT, "SELECT a FROM t"] {
        let mut program = Program::new(Mode::Observe);
        program.r.query("BEGIN");
        program.r.answer(&ok_in(3));
        program.r.query(touches);
        program.r.answer(&ok_in(3));
        assert_eq!(program.traffic.under_way("t"), 1, "{touches}");
        assert_eq!(
            program.publish(Mode::Observe, true),
            RulesUpdate::AfterTransaction
        );
        assert!(has(&program.r.query(INSERT), INSERT));
        program.r.answer(&ok_in(3));
        assert_eq!(program.traffic.under_way("t"), 1);
        program.r.query("COMMIT");
        program.r.answer(&ok_in(2));
        assert_eq!(program.traffic.under_way("t"), 0);
        // The next one waits.
        assert!(program.r.query(INSERT).is_empty());
        assert_eq!(program.follow(Mode::Observe, true), RulesUpdate::Taken);
        assert!(program.sent().is_empty());
    }
}

/// COM_SET_OPTION: several statements are not allowed.
const SET_OPTION: &[u8] = b"\x03\0\0\0\x1b\x01\0";
const ERROR: &[u8] =
    b"\xff\xbd\x04#40001Deadlock found when trying to get lock; try restarting transaction";

/// The EOF packet that answers it, with these status flags.
fn eof_in(status: u8) -> Vec<u8> {
    packet(1, &[0xFE, 0, 0, status, 0, 0, 0])
}

#[test]
fn an_error_that_has_ended_a_transaction_is_found_out_while_others_wait() {
    for (status, under_way) in [(2, 0), (3, 1)] {
        let mut program = Program::new(Mode::Observe);
        program.r.query("BEGIN");
        program.r.answer(&ok_in(3));
        program.r.query(INSERT);
        program.r.answer(&ok_in(3));
        program.r.query("UPDATE t SET a = 1");
        program.r.answer(&packet(1, ERROR));
        assert!(!program.r.s.ask_whether_open(), "nobody waits");
        assert_eq!(
            program.publish(Mode::Observe, true),
            RulesUpdate::AfterTransaction
        );
        program.r.output();
        program.sent();
        assert!(program.r.s.ask_whether_open());
        assert!(!program.r.s.ask_whether_open(), "once");
        program.r.run();
        assert_eq!(std::mem::take(&mut program.r.to_server), SET_OPTION);
        program.r.answer(&eof_in(status));
        assert_eq!(program.traffic.under_way("t"), under_way, "{status}");
        assert!(program.r.output().is_empty());
        assert!(!program.r.s.ask_whether_open(), "once");
        // One that is over waits like any other.
        assert_eq!(program.r.query(INSERT).is_empty(), under_way == 0);
    }
}

/// Rules that hold nothing are taken in the middle of it.
#[test]
fn nobody_waits_for_a_transaction_that_has_taken_the_rules() {
    let mut program = Program::new(Mode::Observe);
    program.r.query("BEGIN");
    program.r.answer(&ok_in(3));
    program.r.query(INSERT);
    program.r.answer(&ok_in(3));
    let held = program.publish(Mode::Observe, true);
    assert_eq!(held, RulesUpdate::AfterTransaction);
    assert_eq!(program.publish(Mode::Observe, false), RulesUpdate::Taken);
    program.r.query("UPDATE t SET a = 1");
    program.r.answer(&packet(1, ERROR));
    assert!(!program.r.s.ask_whether_open());
}

#[test]
fn a_command_behind_that_question_waits_for_its_answer() {
    let mut program = Program::new(Mode::Observe);
    program.r.query("BEGIN");
    program.r.answer(&ok_in(3));
    program.r.query(INSERT);
    program.r.answer(&packet(1, ERROR));
    assert_eq!(
        program.publish(Mode::Observe, true),
        RulesUpdate::AfterTransaction
    );
    program.sent();
    assert!(program.r.s.ask_whether_open());
    assert_eq!(program.r.query("COMMIT"), SET_OPTION);
    assert!(has(&program.r.answer(&eof_in(3)), "COMMIT"));
}

#[test]
fn an_error_may_have_begun_a_transaction_without_autocommit() {
    let mut program = Program::new(Mode::Observe);
    program.r.query("SET autocommit = 0");
    program.r.answer(&ok_in(0));
    program.r.query(INSERT);
    program.r.answer(&packet(1, ERROR));
    assert_eq!(program.traffic.under_way("t"), 1);
    assert_eq!(
        program.publish(Mode::Observe, true),
        RulesUpdate::AfterTransaction
    );
    assert!(program.r.s.ask_whether_open());
    program.r.answer(&eof_in(0));
    assert_eq!(program.traffic.under_way("t"), 0);
}

#[test]
fn a_transaction_that_has_not_touched_it_waits() {
    let mut program = Program::new(Mode::Observe);
    program.r.query("BEGIN");
    program.r.answer(&ok_in(3));
    program.r.query("SELECT a FROM u");
    program.r.answer(&ok_in(3));
    assert_eq!(program.publish(Mode::Observe, true), RulesUpdate::Taken);
    for text in ["SELECT a FROM t", INSERT] {
        assert!(program.r.query(text).is_empty(), "{text}");
        program.r.s.on_waited();
        program.r.run();
        assert!(has(&program.r.output(), "being switched"), "{text}");
    }
}

#[test]
fn one_that_goes_on_follows_what_is_in_force_after_all() {
    let mut program = Program::new(Mode::Observe);
    program.r.query("BEGIN");
    program.r.answer(&ok_in(3));
    program.r.query(INSERT);
    program.r.answer(&ok_in(3));
    assert_eq!(
        program.publish(Mode::Observe, true),
        RulesUpdate::AfterTransaction
    );
    // Others went on without this program.
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(has(&program.r.query(INSERT), KEYED));
}

/// The answer may be an error too: it says no more than the one before.
#[test]
fn whether_it_is_open_is_asked_once_whatever_the_answer_is() {
    let mut program = Program::new(Mode::Observe);
    program.r.query("BEGIN");
    program.r.answer(&ok_in(3));
    program.r.query(INSERT);
    program.r.answer(&ok_in(3));
    program.r.query("UPDATE t SET a = 1");
    program.r.answer(&packet(1, ERROR));
    program.publish(Mode::Observe, true);
    program.r.output();
    assert!(program.r.s.ask_whether_open());
    program.r.run();
    program.r.answer(&packet(1, ERROR));
    assert!(program.r.output().is_empty());
    assert!(!program.r.s.ask_whether_open());
}
