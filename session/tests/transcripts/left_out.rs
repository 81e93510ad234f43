//! MariaDB may leave rows out at the fence, with a warning: such a statement goes out again by newer rules, where it can.

use keywright_session::{Mode, RulesUpdate};

use super::rig::*;
use super::switched::{AT_FENCE, INSERT, KEYED, Program};

/// The server has no key any more.
const NO_KEY: u16 = 1467;

fn error_number(answer: &[u8]) -> Option<u16> {
    let number = answer.get(5..7)?.try_into().ok()?;
    (answer.get(4) == Some(&0xFF)).then(|| u16::from_le_bytes(number))
}

/// The client has sent its file: what the server says to that, and the client hears.
fn load(answer: impl Fn(u8) -> Vec<u8>, number: Option<&str>) -> (Program, Vec<u8>) {
    let mut program = Program::new(Mode::Observe);
    let r = &mut program.r;
    let text = "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a)";
    assert!(has(&r.query(text), text));
    r.answer(&packet(1, b"\xFBf"));
    assert_eq!(r.output(), packet(1, b"\xFBf"));
    let file = [packet(2, b"1\n2\n"), packet(3, b"")].concat();
    r.client.extend(&file);
    r.run();
    assert_eq!(std::mem::take(&mut r.to_server), file);
    let asked = r.answer(&answer(4));
    match number {
        Some(number) => {
            assert!(has(&asked, "SHOW WARNINGS"), "{asked:?}");
            assert!(r.output().is_empty(), "it was told before");
            assert!(r.answer(&warning(number)).is_empty());
        }
        None => assert!(asked.is_empty(), "{asked:?}"),
    }
    let output = program.r.output();
    (program, output)
}

fn ok_of_load(warnings: u8) -> impl Fn(u8) -> Vec<u8> {
    move |sequence| packet(sequence, &[0, 1, 0, 2, 0, warnings, 0])
}

#[test]
fn a_client_whose_file_was_left_out_hears_of_it() {
    let (mut program, told) = load(ok_of_load(1), Some("167"));
    assert_eq!(error_number(&told), Some(NO_KEY));
    assert_eq!(told.get(3), Some(&4), "the number that its answer had");
    assert!(has(&told, "left them out"));
    // The program looks at the servers, and the connection goes on.
    assert_eq!(program.traffic.at_fence(), 1);
    assert_eq!(program.traffic.under_way("t"), 0);
    assert!(has(&program.r.query("SELECT 1"), "SELECT 1"));
    program.r.answer(&ok(0, 0));
    assert_eq!(program.r.output(), ok(0, 0));
}

#[test]
fn other_warnings_of_a_file_are_told_as_they_are() {
    for (warnings, number) in [(1, Some("1265")), (0, None)] {
        let (mut program, told) = load(ok_of_load(warnings), number);
        assert_eq!(told, ok_of_load(warnings)(4));
        // Nobody asks of what no rule is for.
        let sent = program.r.query("SELECT 1");
        assert!(has(&sent, "SELECT 1"), "{sent:?}");
        assert!(program.r.answer(&ok_with_warnings(0, 1)).is_empty());
    }
}

#[test]
fn rows_that_are_returned_are_followed_by_the_error() {
    let mut program = Program::new(Mode::Observe);
    program
        .r
        .query("INSERT IGNORE INTO t (a) VALUES (1), (2) RETURNING id");
    let mut begin = packet(1, &[1]);
    begin.extend(def(2));
    // A row that comes in two parts.
    let row = packet(3, b"\x011");
    let (one, other) = row.split_at(5);
    begin.extend(one);
    assert!(program.r.answer(&begin).is_empty());
    let end = packet(4, &[0xFE, 0, 0, 2, 0, 1, 0]);
    let rest = [other, &end].concat();
    assert!(has(&program.r.answer(&rest), "SHOW WARNINGS"));
    program.r.answer(&warning("167"));
    let told = program.r.output();
    let before = [&begin[..], other].concat();
    let error = told.strip_prefix(&before[..]).unwrap();
    assert!(has(error, "left them out"));
    assert_eq!(
        (error.get(3), error_number(error)),
        (Some(&4), Some(NO_KEY))
    );
}

#[test]
fn a_prepared_query_is_told_of_and_its_connection_ends() {
    let execution = execute(7, &[]);
    for (answer, number) in [
        (ok_with_warnings(0, 2), Some("167")),
        (ok_with_warnings(2, 1), Some("1265")),
        (ok_with_warnings(2, 0), None),
        (packet(1, AT_FENCE), None),
    ] {
        let mut program = Program::new(Mode::Observe);
        let text = "INSERT IGNORE INTO t (a) SELECT a FROM u";
        stmt_prepare(&mut program.r, text, "1");
        program.r.answer(&prepared(7, 0));
        program.r.output();
        assert_eq!(program.r.say(&execution), packet(0, &execution));
        let asked = program.r.answer(&answer);
        assert_eq!(has(&asked, "SHOW WARNINGS"), number.is_some());
        if let Some(number) = number {
            assert!(program.r.output().is_empty(), "it was told before");
            program.r.answer(&warning(number));
        }
        let told = program.r.output();
        match (number, error_number(&answer)) {
            (Some("167"), _) => assert_eq!(error_number(&told), Some(NO_KEY)),
            // It may not be carried out again, and waits for newer rules.
            (_, Some(_)) => assert!(told.is_empty(), "{told:?}"),
            (_, None) => assert_eq!(told, answer),
        }
        assert_eq!(
            program.publish(Mode::Rewrite, false),
            RulesUpdate::Impossible
        );
    }
}

/// The OK packet of an INSERT IGNORE that warns.
fn ok_with_warnings(affected: u8, warnings: u8) -> Vec<u8> {
    packet(1, &[0, affected, 0, 2, 0, warnings, 0])
}

/// The list of one warning.
pub(super) fn warning(number: &str) -> Vec<u8> {
    rows(&[
        "Warning",
        number,
        "Out of range value for column 'id' at row 1",
    ])
}

const IGNORE: &str = "INSERT IGNORE INTO t (a) VALUES (1)";

#[test]
fn rows_that_the_fence_leaves_out_go_out_again_by_newer_rules() {
    let mut program = Program::new(Mode::Observe);
    assert!(has(&program.r.query(IGNORE), IGNORE));
    let asked = program.r.answer(&ok_with_warnings(0, 1));
    assert!(has(&asked, "SHOW WARNINGS"), "{asked:?}");
    assert!(program.r.answer(&warning("167")).is_empty());
    assert!(program.r.output().is_empty());
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.sent().contains(KEYED));
    program.r.answer(&ok(1, 100));
    assert_eq!(program.r.output(), ok(1, 100));
    // So do those of a prepared statement.
    let mut program = Program::new(Mode::Observe);
    stmt_prepare(&mut program.r, "INSERT IGNORE INTO t (a) VALUES (?)", "1");
    program.r.answer(&prepared(7, 1));
    program.r.output();
    program
        .r
        .say(&execute(7, &[0, 1, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0]));
    program.r.answer(&ok_with_warnings(0, 1));
    program.r.answer(&warning("167"));
    assert!(program.r.output().is_empty());
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.sent().contains("(`id`,a) VALUES (?,?)"));
}

#[test]
fn rows_that_are_left_out_are_told_if_there_are_no_newer_rules() {
    let mut program = Program::new(Mode::Observe);
    program.r.query(IGNORE);
    program.r.answer(&ok_with_warnings(0, 1));
    program.r.answer(&warning("167"));
    program.r.s.on_waited();
    program.r.run();
    assert_eq!(program.r.output(), ok_with_warnings(0, 1));
    // Once.
    assert!(has(&program.r.query(INSERT), INSERT));
    program.r.answer(&ok(1, 7));
    assert_eq!(program.r.output(), ok(1, 7));
}

#[test]
fn other_warnings_are_told_and_stay() {
    let mut program = Program::new(Mode::Observe);
    program.r.query(IGNORE);
    program.r.answer(&ok_with_warnings(0, 1));
    assert!(program.r.answer(&warning("1062")).is_empty());
    assert_eq!(program.r.output(), ok_with_warnings(0, 1));
    assert!(has(&program.r.query("SHOW WARNINGS"), "SHOW WARNINGS"));
}

#[test]
fn nobody_asks_where_no_row_may_be_left_out() {
    let mut program = Program::new(Mode::Observe);
    for (text, affected) in [
        (INSERT, 0),
        (IGNORE, 1),
        ("INSERT IGNORE INTO t (id, a) VALUES (5, 1)", 1),
    ] {
        program.r.query(text);
        let asked = program.r.answer(&ok_with_warnings(affected, 1));
        assert!(asked.is_empty(), "{text} {asked:?}");
        assert_eq!(program.r.output(), ok_with_warnings(affected, 1), "{text}");
    }
}

/// Of which one row has its key.
const MIXED: &str = "INSERT IGNORE INTO t (id, a) VALUES (5, 1), (NULL, 2)";

/// A change of the configuration may leave the table out while the statement waits.
#[test]
fn rules_without_its_table_leave_no_answer_for_another_statement() {
    for is_in in [true, false] {
        let mut program = Program::new(Mode::Observe);
        let text = if is_in { MIXED } else { IGNORE };
        program.r.query(text);
        let answer = ok_with_warnings(is_in.into(), 1);
        program.r.answer(&answer);
        program.r.answer(&warning("167"));
        assert_eq!(program.leave_out(), RulesUpdate::Taken);
        if is_in {
            assert_eq!(program.sent(), "", "its rows would go in twice");
            let told = program.r.output();
            assert_eq!(error_number(&told), Some(NO_KEY));
            assert!(has(&told, "without one were left out"));
        } else {
            assert!(program.sent().ends_with(text));
            program.r.answer(&answer);
            assert_eq!(program.r.output(), answer);
        }
        // The next one is by itself, where the rule is there again.
        assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
        let sent = program.r.query(INSERT);
        assert!(has(&sent, KEYED), "{text}: {:?}", program.r.output());
        program.r.answer(&ok(1, 100));
        assert_eq!(program.r.output(), ok(1, 100));
    }
}

#[test]
fn rows_that_are_in_do_not_go_out_again() {
    let mut program = Program::new(Mode::Observe);
    program.r.query(MIXED);
    program.r.answer(&ok_with_warnings(1, 1));
    program.r.answer(&warning("167"));
    assert!(program.r.output().is_empty());
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.sent().is_empty());
    assert!(has(&program.r.output(), "without one were left out"));
    assert_eq!(program.traffic.under_way("t"), 0);
    // Others have no such rows.
    assert_eq!(program.publish(Mode::Observe, false), RulesUpdate::Taken);
    program.r.query(MIXED);
    program.r.answer(&ok_with_warnings(1, 1));
    assert!(program.r.answer(&warning("1062")).is_empty());
    assert_eq!(program.r.output(), ok_with_warnings(1, 1));
}

/// An INSERT IGNORE whose 5000 warnings fill two parts of the list, this one among those of the second.
fn warned(program: &mut Program, number: &str) -> Vec<u8> {
    let answer = packet(1, &[0, 0, 0, 2, 0, 0x88, 0x13]);
    let asked = program.r.answer(&answer);
    assert!(has(&asked, "SHOW WARNINGS LIMIT 0,4096"), "{asked:?}");
    let asked = program.r.answer(&warnings("1366", 4096));
    assert!(has(&asked, "SHOW WARNINGS LIMIT 4096,4096"), "{asked:?}");
    assert!(program.r.output().is_empty(), "it was told before");
    let asked = program.r.answer(&warnings(number, 904));
    assert!(asked.is_empty(), "{asked:?}");
    answer
}

/// So many of one kind.
fn warnings(number: &str, count: usize) -> Vec<u8> {
    let mut row = Vec::new();
    for text in ["Warning", number, "text"] {
        row.push(u8::try_from(text.len()).unwrap());
        row.extend(text.as_bytes());
    }
    let mut list = packet(1, &[3]);
    for sequence in 2..5 {
        list.extend(def(sequence));
    }
    let mut sequence = 5_u8;
    for _ in 0..count {
        list.extend(packet(sequence, &row));
        sequence = sequence.wrapping_add(1);
    }
    list.extend(packet(sequence, &[0xFE, 0, 0, 2, 0, 0, 0]));
    list
}

/// Whole, it could be longer than what is gathered of an answer.
#[test]
fn a_long_list_of_warnings_is_asked_for_in_parts() {
    let mut program = Program::new(Mode::Observe);
    program.r.query(IGNORE);
    warned(&mut program, "167");
    assert!(program.r.output().is_empty());
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.sent().contains(KEYED));
    let mut program = Program::new(Mode::Observe);
    program.r.query(IGNORE);
    let answer = warned(&mut program, "1366");
    assert_eq!(program.r.output(), answer);
    // Of one that cannot go out again.
    let mut program = Program::new(Mode::Observe);
    let text = "INSERT IGNORE INTO t (a) SELECT a FROM u";
    stmt_prepare(&mut program.r, text, "1");
    program.r.answer(&prepared(7, 0));
    program.r.output();
    program.r.say(&execute(7, &[]));
    warned(&mut program, "167");
    assert_eq!(error_number(&program.r.output()), Some(NO_KEY));
}
