//! Results while a cursor is open: a client's own, where the rows stay, and a routine's, beside which they are sent.

use keywright_rewrite::KeyForm;

use super::rig::*;

const MORE_RESULTS: u8 = 0x08;
const CURSOR_EXISTS: u8 = 0x40;

fn eof(number: u8, status: u8) -> Vec<u8> {
    packet(number, &[0xFE, 0, 0, status, 0])
}

/// A result of one column up to its rows.
fn definitions(status: u8) -> Vec<u8> {
    [packet(1, &[1]), def(2), eof(3, status)].concat()
}

/// The rows of a routine that has a cursor open, and its end. A row that began an answer would make one of 49 columns.
fn rows_of_routine() -> Vec<u8> {
    let status = CURSOR_EXISTS | MORE_RESULTS;
    [
        packet(4, b"\x011"),
        eof(5, status),
        packet(6, &[0, 0, 0, 2, 0, 0, 0]),
    ]
    .concat()
}

/// Whether the answer is over.
fn is_over(r: &mut Rig) -> bool {
    has(&r.say(&[0x0E]), "\x0E")
}

#[test]
fn a_routines_own_cursor_keeps_no_rows_back() {
    let answer = [definitions(CURSOR_EXISTS | MORE_RESULTS), rows_of_routine()].concat();
    let mut r = rig(KeyForm::Integer, 0);
    r.query("CALL p()");
    r.answer(&answer);
    assert_eq!(r.output(), answer);
    assert!(is_over(&mut r));
    // So in an execution, with a cursor asked for or not.
    for flags in [0, 1] {
        let mut r = rig(KeyForm::Integer, 0);
        stmt_prepare(&mut r, "CALL p()", "1");
        r.answer(&prepared(7, 0));
        r.output();
        r.say(&[COM_STMT_EXECUTE, 7, 0, 0, 0, flags, 1, 0, 0, 0]);
        r.answer(&answer);
        assert_eq!(r.output(), answer, "{flags}");
        assert!(is_over(&mut r), "{flags}");
    }
}

#[test]
fn rows_in_a_clients_cursor_are_not_waited_for() {
    let mut r = rig(KeyForm::Integer, 0);
    stmt_prepare(&mut r, "SELECT id FROM t", "1");
    r.answer(&prepared(7, 0));
    r.output();
    r.say(&[COM_STMT_EXECUTE, 7, 0, 0, 0, 1, 1, 0, 0, 0]);
    r.answer(&definitions(CURSOR_EXISTS));
    assert_eq!(r.output(), definitions(CURSOR_EXISTS));
    assert!(is_over(&mut r));
}

#[test]
fn an_execution_may_fail_behind_its_definitions() {
    let failed = [
        packet(1, &[1]),
        def(2),
        packet(3, b"\xFF\x26\x04#23000Duplicate entry"),
    ]
    .concat();
    let mut r = rig(KeyForm::Integer, 0);
    stmt_prepare(&mut r, "SELECT f()", "1");
    r.answer(&prepared(7, 0));
    r.output();
    r.say(&[COM_STMT_EXECUTE, 7, 0, 0, 0, 1, 1, 0, 0, 0]);
    r.answer(&failed);
    assert_eq!(r.output(), failed);
    assert!(is_over(&mut r));
}
