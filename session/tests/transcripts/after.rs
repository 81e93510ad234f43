//! What is left of a statement when it has ended, also in an error: nothing that the next one, or other connections, would suffer from.

use keywright_core::KeyBatch;
use keywright_rewrite::KeyForm;
use keywright_session::{KeyColumnState, Limits, Mode, RulesUpdate};

use super::left_out::warning;
use super::rig::*;
use super::switched::{AT_FENCE, INSERT, KEYED, Program, ok_in};

fn new() -> Rig {
    rig(KeyForm::Integer, DEPRECATE_EOF)
}

const UNLISTED: &str = "INSERT INTO t VALUES (NULL, 1)";

/// The server has refused a question of the session's own: nothing of what it has said before is believed of the next statement.
#[test]
fn a_question_that_fails_is_the_answer_and_all_is_asked_anew() {
    let mut r = rig_of_table(KeyColumnState::Missing);
    let sent = r.query("INSERT IGNORE INTO t (a) VALUES (1)");
    r.tell(sent, &[]);
    r.answer(&ok(0, 100));
    r.output();
    let two = "INSERT INTO t (a) VALUES (1), (2)";
    assert!(has(&r.query(two), "SELECT `id` FROM"));
    assert!(has(&r.answer(&described(&["id"])), "SET last_insert_id=0"));
    assert_eq!(r.answer(&err()), b"", "and the statement does not go out");
    assert_eq!(r.output(), err());
    assert!(has(&r.query(two), "@@session.sql_mode"));
    assert!(has(&r.answer(&probe("1")), "SELECT `id` FROM"));
}

/// Two rows at the fence in one statement: the second is not the first's business.
#[test]
fn what_the_fence_has_refused_for_good_is_over() {
    let mut program = Program::new(Mode::Observe);
    let r = &mut program.r;
    let sent = r.query(UNLISTED);
    assert!(has(&sent, "SELECT * FROM"), "{sent:?}");
    let sent = r.tell(sent, &["id", "a"]);
    assert!(has(&sent, UNLISTED));
    let sent = r.answer(&packet(1, AT_FENCE));
    r.tell(sent, &["id", "a"]);
    assert!(r.output().is_empty(), "it waits");
    r.s.on_waited();
    r.run();
    assert_eq!(r.output(), packet(1, AT_FENCE));
    assert_eq!(program.traffic.under_way("t"), 0);
    assert!(has(&program.r.query(UNLISTED), "SELECT * FROM"));
}

#[test]
fn a_native_insert_asks_anew_for_the_columns() {
    let mut program = Program::new(Mode::Observe);
    for _ in 0..2 {
        let sent = program.r.query(UNLISTED);
        assert!(has(&sent, "SELECT * FROM"), "{sent:?}");
        let sent = program.r.tell(sent, &["id", "a"]);
        assert!(has(&sent, UNLISTED));
        program.r.answer(&ok(1, 7));
        assert_eq!(program.r.output(), ok(1, 7));
    }
}

#[test]
fn one_that_has_waited_for_other_rules_asks_anew_by_those() {
    let mut program = Program::new(Mode::Rewrite);
    assert_eq!(program.publish(Mode::Rewrite, true), RulesUpdate::Taken);
    let sent = program.r.query(UNLISTED);
    assert!(has(&sent, "SELECT * FROM"), "{sent:?}");
    let sent = program.r.tell(sent, &["id", "a"]);
    assert!(!has(&sent, "INSERT"), "it waits");
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.sent().contains("SELECT * FROM"));
}

#[test]
fn one_that_has_waited_for_too_long_does_not_hurry_the_next() {
    let mut program = Program::new(Mode::Rewrite);
    program.publish(Mode::Rewrite, true);
    assert!(program.r.query(INSERT).is_empty());
    program.r.s.on_waited();
    program.r.run();
    assert!(has(&program.r.output(), "are being switched"));
    assert!(program.r.query(INSERT).is_empty());
    assert!(program.r.output().is_empty(), "it waits too");
}

/// A transaction goes on by what was in force, and the one behind it does not.
#[test]
fn a_transaction_that_has_gone_on_has_ended() {
    let mut program = Program::new(Mode::Observe);
    program.r.query("BEGIN");
    program.r.answer(&ok_in(3));
    program.r.query(INSERT);
    program.r.answer(&ok_in(3));
    let update = program.publish(Mode::Observe, true);
    assert_eq!(update, RulesUpdate::AfterTransaction);
    program.r.query("COMMIT");
    program.r.answer(&ok_in(2));
    assert_eq!(program.follow(Mode::Observe, true), RulesUpdate::Taken);
    assert!(program.r.query(INSERT).is_empty(), "it is held");
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.sent().contains(KEYED));
}

/// Its memory may be there again for the next.
#[test]
fn a_statement_that_is_passed_for_want_of_memory_is_the_only_one() {
    let mut r = new();
    r.probed("INSERT INTO t (id, a) VALUES (5, 1)", "1");
    r.answer(&ok(1, 0));
    r.output();
    let text = format!("\x03SELECT '{}'", "x".repeat(60_000));
    let whole = packet(0, text.as_bytes());
    r.client.extend(&whole[..20_000]);
    r.run();
    r.s.memory_full();
    r.run();
    r.client.extend(&whole[20_000..]);
    r.run();
    assert_eq!(std::mem::take(&mut r.to_server), whole);
    r.answer(&ok(0, 0));
    r.output();
    // What it has changed nobody has read.
    let sent = r.query(INSERT);
    let sent = r.tell(sent, &[]);
    assert!(has(&sent, KEYED), "{sent:?}");
    assert!(!r.closed);
}

/// No answer tells that it has gone.
#[test]
fn other_rules_wait_for_the_rest_of_a_command_without_an_answer() {
    let mut program = Program::new(Mode::Rewrite);
    let data = [
        &[COM_STMT_SEND_LONG_DATA, 7, 0, 0, 0, 0, 0][..],
        &[b'x'; 90],
    ]
    .concat();
    let whole = packet(0, &data);
    program.r.client.extend(&whole[..50]);
    program.r.run();
    let update = program.publish(Mode::Observe, false);
    assert_eq!(update, RulesUpdate::AfterCommand);
    program.r.client.extend(&whole[50..]);
    program.r.run();
    assert_eq!(program.follow(Mode::Observe, false), RulesUpdate::Taken);
}

/// What LAST_INSERT_ID() was brought to is what it is.
#[test]
fn last_insert_id_is_put_back_to_what_it_was_as_often_as_need_be() {
    let mut r = new();
    r.probed("INSERT INTO t (a) VALUES (1)", "1");
    r.answer(&ok(1, 100));
    for _ in 0..2 {
        r.query("INSERT IGNORE INTO t (a) VALUES (1)");
        r.answer(&ok(0, 0));
        let sent = r.query("SELECT LAST_INSERT_ID()");
        assert!(has(&sent, "SET last_insert_id=100"), "{sent:?}");
        assert!(has(&r.answer(&ok(0, 0)), "SELECT LAST_INSERT_ID()"));
        r.answer(&rows(&["100"]));
    }
}

/// What the proxy says of its own accord the client gets no answer to.
#[test]
fn what_makes_the_server_forget_long_data_is_answered_to_nobody() {
    let mut r = new();
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1");
    r.answer(&prepared(7, 2));
    r.output();
    let data = [&[COM_STMT_SEND_LONG_DATA, 7, 0, 0, 0, 0, 0][..], b"xyz"].concat();
    r.say(&data);
    r.fail_keys = true;
    let sent = r.say(&execute(7, &[0, 1, 252, 0]));
    assert!(
        has(&sent, "\x1a\x07\0\0\0") || sent.ends_with(&packet(0, &[COM_STMT_RESET, 7, 0, 0, 0])),
        "{sent:?}"
    );
    assert!(has(&r.output(), "down"));
    r.answer(&ok(0, 0));
    assert!(r.output().is_empty());
    r.fail_keys = false;
    // Long data is said once: the next execution has none.
    let sent = r.say(&execute(7, &[0, 1, 253, 0, 1, b'a']));
    assert!(has(&sent, "\x01a"), "{sent:?}");
}

/// One text, of which each statement is sent by itself.
fn several(text: &str) -> (Rig, String) {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let sent = r.probed(text, "1");
    (r, sent)
}

#[test]
fn packets_of_several_answers_are_numbered_in_whatever_parts_they_come() {
    let answer = rows(&["a value", "another"]);
    let told = |chunk: usize| {
        let (mut r, sent) = several("INSERT INTO t (a) VALUES (1); SELECT b, c FROM u");
        assert!(sent.contains(KEYED), "{sent}");
        assert!(has(&r.answer(&ok(1, 100)), "SELECT b, c"));
        for part in answer.chunks(chunk) {
            r.answer(part);
        }
        r.output()
    };
    let whole = told(usize::MAX);
    for chunk in 1..20 {
        assert_eq!(told(chunk), whole, "{chunk}");
    }
}

/// Where the next statement ends may depend on what the one before has changed.
#[test]
fn the_modes_are_known_before_the_next_statement_is_cut_off() {
    let (mut r, sent) = several(
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT 'a\\'; INSERT INTO t (a) VALUES (1); SELECT 'b'",
    );
    assert!(sent.contains("SET sql_mode"), "{sent}");
    let sent = r.answer(&ok(0, 0));
    assert!(has(&sent, "@@session.sql_mode"), "{sent:?}");
    let sent = r.answer(&probe_in("NO_BACKSLASH_ESCAPES", "1"));
    assert_eq!(sent, packet(0, b"\x03 SELECT 'a\\'"));
}

/// A query over tables as a key: what it came to was for this statement.
#[test]
fn a_query_that_came_to_a_key_leaves_nothing_behind() {
    const KEY: &str = "INSERT INTO t (id, a) VALUES ((SELECT k FROM u), 1)";
    let mut r = rig_of_table(KeyColumnState::Missing);
    r.query(KEY);
    let sent = r.answer(&probe_in("STRICT_TRANS_TABLES", "1"));
    let sent = r.tell(sent, &[]);
    if has(&sent, "\x16SELECT") || sent.get(4) == Some(&COM_STMT_PREPARE) {
        let sent = r.answer(&described(&["k"]));
        assert!(has(&sent, "INSERT INTO t"), "{sent:?}");
    }
    r.answer(&ok(1, 0));
    assert_eq!(r.output(), ok(1, 0));
    assert!(has(&r.query(KEY), "SELECT `id` FROM"));
}

#[test]
fn a_limit_that_was_met_is_for_one_statement() {
    let limits = Limits {
        select_rows_max: 3,
        ..Limits::default()
    };
    let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
    let select = "INSERT INTO t (a) SELECT a FROM u";
    for _ in 0..2 {
        let sent = r.probed(select, "1");
        assert!(sent.contains("ROWNUM()<=3"), "{sent}");
        r.answer(&super::select::too_few());
        assert!(has(&r.output(), "more than 3 rows"));
    }
    r.s.on_keys(Ok(KeyBatch::Listed(Vec::new())));
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

/// Values that were sent as long data are for one execution.
#[test]
fn long_data_is_of_one_execution() {
    for (text, parameters) in [
        ("INSERT INTO t (a) VALUES (?)", 2),
        ("INSERT INTO t (a) SELECT ? FROM DUAL WHERE 1 > 0", 2),
    ] {
        let mut r = new();
        stmt_prepare(&mut r, text, "1");
        r.answer(&prepared(7, parameters));
        r.output();
        let data = [&[COM_STMT_SEND_LONG_DATA, 7, 0, 0, 0, 0, 0][..], b"xyz"].concat();
        r.say(&data);
        let sent = r.say(&execute(7, &[0, 1, 252, 0]));
        assert!(!sent.is_empty(), "{text}");
        r.answer(&ok(1, 100));
        assert_eq!(r.output(), ok(1, 100), "{text}");
        let sent = r.say(&execute(7, &[0, 1, 253, 0, 1, b'a']));
        let sent = r.tell(sent, &[]);
        assert!(has(&sent, "\x01a"), "{text}: {sent:?}");
    }
}

#[test]
fn a_command_that_was_answered_is_not_begun_anew_by_other_rules() {
    let mut program = Program::new(Mode::Rewrite);
    let sent = program.r.query(UNLISTED);
    let sent = program.r.tell(sent, &["id", "a"]);
    assert!(has(&sent, KEYED), "{sent:?}");
    program.r.answer(&err());
    program.r.output();
    // LAST_INSERT_ID() cannot be put right: that is the answer.
    program.r.query("SELECT LAST_INSERT_ID()");
    program.r.s.on_upstream(&err());
    let update = program.publish(Mode::Rewrite, false);
    assert_eq!(update, RulesUpdate::AfterCommand);
    assert_eq!(program.r.output(), err());
    assert!(program.sent().is_empty());
}

const COMPUTED: &str = "INSERT INTO t (id, a) VALUES (@k + 1, 2)";

/// The server computes a key, and is asked for it: whatever becomes of that, the next statement's table is asked about again.
#[test]
fn a_key_that_was_computed_leaves_nothing_behind() {
    let interrupted = packet(1, b"\xFF\x25\x05#70100Query execution was interrupted");
    for is_interrupted in [false, true] {
        let mut r = rig_of_table(KeyColumnState::Missing);
        let sent = r.query(COMPUTED);
        let sent = r.tell(sent, &[]);
        assert!(has(&sent, "SELECT (@k + 1)"), "{sent:?}");
        if is_interrupted {
            assert!(r.answer(&interrupted).is_empty());
            assert_eq!(r.output(), interrupted);
        } else {
            assert!(has(&r.answer(&rows(&["7"])), "VALUES ( 7 , 2)"));
            assert!(!r.s.is_between_commands());
            r.answer(&ok(1, 7));
            assert_eq!(r.output(), ok(1, 7));
        }
        assert!(has(&r.query(COMPUTED), "SELECT `id` FROM"));
    }
}

/// What holds for all tables of the rule that had its column was not looked at of one that had not: it may be UNSIGNED, where the server makes
/// -5 a 0, and a key of its own of that.
#[test]
fn a_table_that_got_its_key_later_may_be_of_any_type() {
    let mut r = rig_of_table_and_rule(KeyColumnState::Missing, |rule| rule.is_signed = true);
    let sent = r.query("INSERT INTO t (id, a) VALUES (-5, 2)");
    let sent = r.tell(sent, &[]);
    assert!(!has(&sent, "INSERT"), "{sent:?}");
    assert!(has(&r.output(), "may be UNSIGNED"));
}

/// It goes out as it would have without the query, so a failure leaves LAST_INSERT_ID() as native auto-increment does.
#[test]
fn a_query_that_came_to_no_key_leaves_last_insert_id() {
    let mut r = new();
    r.probed("INSERT INTO t (a) VALUES (1)", "1");
    r.answer(&ok(1, 100));
    r.output();
    let sent = r.query("INSERT INTO t (id, a) VALUES ((SELECT k FROM u), 1)");
    assert_eq!(sent.get(4), Some(&COM_STMT_PREPARE), "{sent:?}");
    r.answer(&described(&["k"]));
    let no_key = b"\xFF\x9A\x06#22003BIGINT value is out of range in '(3935559000370003845 * (1))'";
    let sent = r.answer(&packet(1, no_key));
    assert!(has(&sent, "LAST_INSERT_ID(101)"), "{sent:?}");
}

/// Whether rows were left out nobody knows, where the server does not say.
#[test]
fn an_error_in_place_of_warnings_is_the_answer() {
    let mut program = Program::new(Mode::Observe);
    program.r.query("INSERT IGNORE INTO t (a) VALUES (1)");
    let answer = packet(1, &[0, 0, 0, 2, 0, 1, 0]);
    assert!(has(&program.r.answer(&answer), "SHOW WARNINGS"));
    assert!(program.r.answer(&err()).is_empty());
    assert_eq!(program.r.output(), err());
    assert!(has(&program.r.query("SELECT 1"), "SELECT 1"));
}

/// A function may have dropped a temporary table, however the statement that calls it was answered.
#[test]
fn after_a_function_was_called_temporary_tables_are_asked_about() {
    let warned = || packet(1, &[0, 1, 0, 2, 0, 1, 0]);
    let fence = || packet(1, AT_FENCE);
    for (mode, text, answers) in [
        (
            Mode::Observe,
            "INSERT IGNORE INTO t (id, a) VALUES (5, f()), (NULL, 1)",
            vec![warned(), warning("1265")],
        ),
        (
            Mode::Observe,
            "LOAD DATA INFILE 'f' INTO TABLE t (a) SET b = f()",
            vec![warned(), warning("1265")],
        ),
        (
            Mode::Observe,
            "INSERT INTO t (a) VALUES (f())",
            vec![fence()],
        ),
    ] {
        let mut program = Program::new(mode);
        let r = &mut program.r;
        r.query("CREATE TEMPORARY TABLE other.t (a INT)");
        r.answer(&ok(0, 0));
        r.output();
        let sent = r.query(text);
        assert!(!sent.is_empty() && !has(&sent, "SHOW CREATE"), "{text}");
        for answer in &answers {
            r.answer(answer);
        }
        r.s.on_waited();
        r.run();
        assert!(!r.output().is_empty(), "{text}");
        let sent = r.query(INSERT);
        assert!(has(&sent, "SHOW CREATE TABLE"), "{text}: {sent:?}");
    }
}

/// The same of one that is executed as its client wrote it, since its rule gives no keys any more.
#[test]
fn after_a_function_of_a_prepared_statement_they_are_too() {
    let mut program = Program::new(Mode::Rewrite);
    let r = &mut program.r;
    r.query("CREATE TEMPORARY TABLE other.t (a INT)");
    r.answer(&ok(0, 0));
    stmt_prepare(r, "INSERT INTO t (a) VALUES (f(?))", "1");
    r.answer(&prepared(7, 2));
    r.output();
    assert_eq!(program.publish(Mode::Observe, false), RulesUpdate::Taken);
    let r = &mut program.r;
    let sent = r.say(&execute(7, &[0, 1, 253, 0, 1, b'a']));
    assert!(
        has(&sent, "\x16INSERT INTO t (a) VALUES (f(?))"),
        "{sent:?}"
    );
    let sent = r.answer(&prepared(8, 1));
    assert_eq!(sent, packet(0, &execute(8, &[0, 1, 253, 0, 1, b'a'])));
    r.answer(&ok(1, 7));
    assert_eq!(r.output(), ok(1, 7));
    assert!(has(&r.query(INSERT), "SHOW CREATE TABLE"));
}
