//! LOAD DATA: rows are numbered by the server's LAST_INSERT_ID(), with more keys until they are enough.

use keywright_core::KeyBatch;
use keywright_rewrite::KeyForm;
use keywright_session::{KeyColumnState, Limits, Mode, OnExplicit, RulesUpdate};

use super::rig::*;
use super::select::cut_off;
use super::switched::Program;

const LOAD: &str = "LOAD DATA INFILE 'f' INTO TABLE t (a)";
const LOCAL: &str = "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a)";
const START: &str = "SET last_insert_id=0";

fn too_few() -> Vec<u8> {
    let mut payload = vec![0xFF, 0x9A, 0x06];
    payload.extend(
        b"#22003BIGINT UNSIGNED value is out of range in 'last_insert_id() * 7046029254386353131'",
    );
    packet(1, &payload)
}

fn numbered(number: u8, mut packet: Vec<u8>) -> Vec<u8> {
    packet[3] = number;
    packet
}

/// Says a text, and answers what is asked before it goes out.
fn said(r: &mut Rig, text: &str) -> String {
    let sent = r.probed(text, "1");
    assert!(sent.contains(START), "{sent}");
    String::from_utf8_lossy(&r.answer(&ok(0, 0))).into_owned()
}

/// The same of a client's file: the server is asked for its name, and the client for its content.
fn sent_local(r: &mut Rig, text: &str, lines: &str) -> Vec<u8> {
    let sent = r.probed(text, "1");
    assert!(sent.contains(text) && !sent.contains("CASE"), "{sent}");
    assert_eq!(r.answer(&packet(1, b"\xFBf")), packet(2, b""));
    assert!(
        r.output().is_empty(),
        "not before the server has done with it"
    );
    r.answer(&numbered(3, ok(0, 0)));
    assert_eq!(r.output(), packet(1, b"\xFBf"));
    let file = [packet(2, lines.as_bytes()), packet(3, b"")].concat();
    r.client.extend(&file);
    r.run();
    std::mem::take(&mut r.to_server)
}

#[test]
fn too_few_keys_are_tried_again_with_more() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = said(&mut r, LOAD);
    assert!(
        sent.contains("(a) SET `id`=CASE WHEN LAST_INSERT_ID()=0 THEN LAST_INSERT_ID(100) WHEN LAST_INSERT_ID()>=100 AND LAST_INSERT_ID()<163 "),
        "{sent}"
    );
    assert!(has(&r.answer(&too_few()), START), "it counts from 0 again");
    assert!(has(&r.answer(&ok(0, 0)), "THEN LAST_INSERT_ID(164) "));
    assert!(
        r.output().is_empty(),
        "the client hears of the last try only"
    );
    assert_eq!(r.answer(&ok(200, 0)), b"");
    assert_eq!(r.output(), ok(200, 0), "as the server says it");
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "SET last_insert_id=164"));
    let counts: Vec<_> = r
        .requests
        .iter()
        .map(|one| (one.count, one.contiguous))
        .collect();
    assert_eq!(counts, [(64, false), (512, false)]);
}

#[test]
fn more_rows_than_the_limit_are_refused() {
    let limits = Limits {
        select_rows_max: 3,
        ..Limits::default()
    };
    let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
    said(&mut r, LOAD);
    assert_eq!(r.answer(&too_few()), b"");
    let output = r.output();
    assert!(has(&output, "more than 3 rows") && has(&output, "select_rows_max"));
    assert!(has(
        &r.query("SELECT LAST_INSERT_ID()"),
        "SET last_insert_id=0"
    ));
    let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
    assert_eq!(sent_local(&mut r, LOCAL, "1\n2\n3\n"), b"");
    let output = r.output();
    assert!(has(&output, "more than 3 rows"), "{output:?}");
    assert_eq!(output[3], 4, "the number behind the file's last packet");
    assert!(has(&r.query("SELECT 1"), "SELECT 1"), "the session goes on");
}

#[test]
fn what_was_before_a_failure_is_shown_again() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    said(&mut r, LOAD);
    r.answer(&err());
    assert_eq!(r.output(), err());
    assert!(has(
        &r.query("SELECT LAST_INSERT_ID()"),
        "SET last_insert_id=IF(LAST_INSERT_ID()>100,100,0)"
    ));
    r.answer(&ok(0, 0));
    r.answer(&err());
    // Now nobody knows which it was.
    let sent = r.query(LOAD);
    assert!(has(&sent, "SELECT LAST_INSERT_ID()"), "{sent:?}");
    let mut row = packet(1, &[1]);
    row.extend(def(2));
    row.extend(packet(3, b"\x0217"));
    row.extend(packet(4, &[0xFE, 0, 0, 2, 0, 0, 0]));
    assert!(has(&r.answer(&row), START));
    r.answer(&ok(0, 0));
    r.answer(&ok(0, 0));
    assert!(has(
        &r.query("SELECT LAST_INSERT_ID()"),
        "SET last_insert_id=17"
    ));
}

#[test]
fn keys_in_the_file_leave_it_open_what_was_generated() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = said(&mut r, "LOAD DATA INFILE 'f' INTO TABLE t");
    assert!(
        sent.contains("t SET `id`=CASE WHEN `id`<>0 THEN `id` WHEN"),
        "{sent}"
    );
    r.answer(&ok(5, 0));
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(
        &sent,
        "SET last_insert_id=IF(LAST_INSERT_ID()>0,100,0)"
    ));
}

#[test]
fn an_error_that_the_server_cuts_off_is_refused_by_the_name_of_the_variable() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    said(&mut r, LOAD);
    assert!(r.answer(&cut_off("")).is_empty());
    let told = r.output();
    assert!(has(&told, "character_set_results"), "{told:?}");
    assert_eq!(told.get(3..7), Some(&[1, 0xFF, 0xD3, 4][..]), "1235");
}

#[test]
fn only_the_servers_error_of_a_given_key_is_told_as_one() {
    for (number, text, is_told) in [
        (
            1690_u16,
            "'cast(`d`.`t`.`id` as signed) * 6364136223846793005'",
            true,
        ),
        // The client's own numbers.
        (1690, "'`d`.`t`.`a` * 9223372036854775807'", false),
        (
            1062,
            "Duplicate entry '6364136223846793005' for key 'a'",
            false,
        ),
    ] {
        let mut r = rig_of_rule(|rule| rule.on_explicit = OnExplicit::Refuse);
        let sent = said(&mut r, "LOAD DATA INFILE 'f' INTO TABLE t");
        assert!(sent.contains("AS SIGNED)*6364136223846793005*"), "{sent}");
        let error = [
            &[0xFF][..],
            &number.to_le_bytes(),
            b"#HY000",
            text.as_bytes(),
        ]
        .concat();
        let error = packet(1, &error);
        assert_eq!(r.answer(&error), b"", "nothing is tried again");
        let output = r.output();
        assert_eq!(output == error, !is_told, "{text}: {output:?}");
        assert_eq!(has(&output, "may not be given"), is_told, "{text}");
    }
}

#[test]
fn the_keys_of_a_clients_file_are_as_many_as_its_lines() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    assert!(has(&sent_local(&mut r, LOCAL, "1\n2\n3\n"), START));
    assert_eq!(r.requests[0].count, 4, "a last line may have no end");
    let sent = r.answer(&ok(0, 0));
    assert!(has(&sent, "LAST_INSERT_ID()<103"), "{sent:?}");
    let file = r.answer(&packet(1, b"\xFBf"));
    assert_eq!(file, [packet(2, b"1\n2\n3\n"), packet(3, b"")].concat());
    assert!(r.output().is_empty());
    r.answer(&numbered(4, ok(3, 0)));
    assert_eq!(r.output(), numbered(4, ok(3, 0)));
    assert!(r.client.is_empty());
    assert!(has(
        &r.query("SELECT LAST_INSERT_ID()"),
        "SET last_insert_id=100"
    ));
}

#[test]
fn the_server_may_not_want_the_clients_file() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed(LOCAL, "1");
    r.answer(&err());
    assert_eq!(r.output(), err());
    r.query(LOCAL);
    r.answer(&packet(1, b"\xFBf"));
    r.answer(&numbered(3, err()));
    assert_eq!(r.output(), err(), "as if it had not asked");
    assert!(r.requests.is_empty());
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn no_keys_for_a_clients_file_are_an_error_behind_it() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.fail_keys = true;
    assert_eq!(sent_local(&mut r, LOCAL, "1\n"), b"");
    let output = r.output();
    assert!(has(&output, "down") && output[3] == 4, "{output:?}");
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn a_clients_file_that_is_too_long_is_dropped() {
    let limits = Limits {
        rewrite_bytes_max: 100,
        ..Limits::default()
    };
    let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
    let long = "1\n".repeat(60);
    assert_eq!(sent_local(&mut r, LOCAL, &long), b"");
    let output = r.output();
    assert!(has(&output, "a file longer than rewrite_bytes_max") && output[3] == 4);
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
    assert!(r.requests.is_empty());
}

#[test]
fn no_memory_for_a_clients_file_is_an_error_behind_it() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed(LOCAL, "1");
    r.answer(&packet(1, b"\xFBf"));
    r.answer(&numbered(3, ok(0, 0)));
    r.output();
    r.client.extend(&packet(2, b"1\n2\n")[..6]);
    r.run();
    r.s.memory_full();
    r.client.extend(&packet(2, b"1\n2\n")[6..]);
    r.client.extend(packet(3, b""));
    r.run();
    let output = r.output();
    assert!(
        has(&output, "memory_bytes_max") && output[3] == 4,
        "{output:?}"
    );
    assert!(r.client.is_empty() && !r.closed);
    assert!(
        has(&sent_local(&mut r, LOCAL, "1\n"), START),
        "there is some again"
    );
}

#[test]
fn reports_of_progress_come_before_the_answer() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    said(&mut r, LOAD);
    let progress = packet(1, b"\xFF\xFF\xFF\x01\x01\x02\x00\x00\x00\x04read");
    let answer = [progress, numbered(2, ok(1, 0))].concat();
    r.answer(&answer);
    assert_eq!(r.output(), answer);
    assert!(has(
        &r.query("SELECT LAST_INSERT_ID()"),
        "SET last_insert_id=100"
    ));
}

#[test]
fn a_prepared_load_is_refused_by_name() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    assert_eq!(stmt_prepare(&mut r, LOAD, "1"), "");
    assert!(has(&r.output(), "LOAD DATA in a prepared statement"));
    for text in ["PREPARE s FROM", "EXECUTE IMMEDIATE"] {
        let text = format!("{text} \"{LOAD}\"");
        let sent = r.probed(&text, "1");
        assert_eq!(sent, "", "{text}");
        assert!(has(&r.output(), "LOAD DATA in a prepared statement"));
    }
    let free = LOAD.replace("TABLE t", "TABLE free");
    assert!(has(&r.say(&[b"\x16", free.as_bytes()].concat()), &free));
}

#[test]
fn the_server_may_change_its_mind_about_the_clients_file() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    sent_local(&mut r, LOCAL, "1\n");
    r.answer(&ok(0, 0));
    assert_eq!(r.answer(&err()), b"");
    assert_eq!(r.output(), numbered(4, err()), "behind the file");
    assert!(has(&r.query("SELECT 1"), "SELECT 1"), "its bytes are gone");
    r.answer(&ok(0, 0));
    r.output();
    // The same of what comes before it.
    sent_local(&mut r, LOCAL, "1\n");
    r.answer(&err());
    assert_eq!(r.output(), numbered(4, err()));
    assert!(r.client.is_empty());
}

/// What the client says behind its file is no part of it.
#[test]
fn the_command_behind_a_file_that_is_refused_goes_out() {
    let next = packet(0, b"\x03SELECT 1");
    let limits = Limits {
        rewrite_bytes_max: 100,
        ..Limits::default()
    };
    for is_long in [false, true] {
        let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
        r.probed(LOCAL, "1");
        r.answer(&packet(1, b"\xFBf"));
        r.answer(&numbered(3, ok(0, 0)));
        r.output();
        let lines = if is_long {
            "1\n".repeat(99)
        } else {
            "1\n".to_owned()
        };
        let file = [packet(2, lines.as_bytes()), packet(3, b"")].concat();
        r.client.extend([&file, &next[..]].concat());
        r.run();
        let sent = match is_long {
            true => std::mem::take(&mut r.to_server),
            false => {
                // It has named the file once, and refuses the statement now.
                assert!(has(&r.answer(&ok(0, 0)), "CASE WHEN"));
                let sent = r.answer(&err());
                assert_eq!(r.output(), numbered(4, err()));
                sent
            }
        };
        assert_eq!(sent, next, "{is_long}");
    }
}

/// A server may end lines elsewhere than the file's client.
#[test]
fn a_clients_file_with_more_rows_than_lines_is_refused() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    assert!(has(&sent_local(&mut r, LOCAL, "1\n"), START));
    r.answer(&ok(0, 0));
    let file = r.answer(&packet(1, b"\xFBf"));
    assert_eq!(file, [packet(2, b"1\n"), packet(3, b"")].concat());
    assert_eq!(
        r.answer(&numbered(4, too_few())),
        b"",
        "it has no file any more"
    );
    let output = r.output();
    assert!(has(&output, "more than") && output[3] == 4, "{output:?}");
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn the_table_is_asked_about_anew_after_a_file_that_was_refused() {
    let mut r = rig_of_table(KeyColumnState::Missing);
    let mut sent = r.query(LOAD);
    while !has(&sent, START) {
        sent = r.tell_once(&sent, &[]).unwrap();
    }
    r.answer(&err());
    assert_eq!(r.output(), err());
    let sent = r.query(LOAD);
    assert!(has(&sent, "SELECT `id` FROM"), "{sent:?}");
    for is_named in [false, true] {
        let mut r = rig_of_table(KeyColumnState::Missing);
        let sent = r.query(LOCAL);
        let sent = r.tell(sent, &[]);
        assert!(has(&sent, LOCAL), "{sent:?}");
        if is_named {
            r.answer(&packet(1, b"\xFBf"));
            r.answer(&numbered(3, ok(0, 0)));
            r.output();
            r.client
                .extend([packet(2, b"1\n"), packet(3, b"")].concat());
            r.run();
            assert!(has(&r.answer(&ok(0, 0)), "CASE WHEN"));
        }
        r.answer(&err());
        assert!(!r.output().is_empty());
        let sent = r.query("INSERT INTO t (a) VALUES (1)");
        let sent = match has(&sent, START) {
            true => r.answer(&ok(0, 0)),
            false => sent,
        };
        assert!(has(&sent, "SELECT `id` FROM"), "{is_named}: {sent:?}");
    }
}

/// Its lines are counted for the rules that were in force.
#[test]
fn other_rules_wait_for_a_statement_whose_file_has_come() {
    let mut program = Program::new(Mode::Rewrite);
    program.r.holds_keys = true;
    assert!(has(&program.r.query(LOCAL), LOCAL));
    program.r.answer(&packet(1, b"\xFBf"));
    program.r.answer(&numbered(3, ok(0, 0)));
    program.r.output();
    let file = [packet(2, b"1\n"), packet(3, b"")].concat();
    program.r.client.extend(&file);
    program.r.run();
    program.r.s.on_keys(Ok(KeyBatch::Numbers {
        first: 100,
        spacing: 1,
        count: 2,
    }));
    let update = program.publish(Mode::Observe, false);
    assert_eq!(update, RulesUpdate::AfterCommand);
    assert!(program.sent().contains(START));
}
