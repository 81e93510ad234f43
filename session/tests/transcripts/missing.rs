//! INSERTs without a column list on tables that are not there when the server is asked for their columns. One that comes a moment later may have no fence:
//! its server would number rows among the rule's keys.

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::{
    KeyColumnState, Mode, RuleAdmission, Rules, RulesUpdate, SchemaChanges, Session, Traffic,
};
use keywright_wire::bytes::BODY_BYTES_MAX;

use super::rig::*;
use super::switched::Program;

const UNLISTED: &str = "INSERT INTO t VALUES (NULL, 1)";
const BOUND: &str = "INSERT INTO t VALUES (?, ?)";
const COLUMNS: [&str; 2] = ["id", "a"];

/// The server's own word, as the answer of this number.
fn no_table(sequence: u8) -> Vec<u8> {
    packet(sequence, b"\xFF\x7A\x04#42S02Table 'd.t' doesn't exist")
}

/// An execution whose first value is NULL.
fn with_null() -> Vec<u8> {
    execute(7, &[1, 1, 8, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0])
}

fn is_executed(sent: &[u8], id: u8) -> bool {
    let execution = [COM_STMT_EXECUTE, id, 0, 0, 0];
    sent.windows(5).any(|part| part == execution)
}

/// The server is asked for the table, which is not there.
fn misses(r: &mut Rig, mut sent: Vec<u8>) -> Vec<u8> {
    while has(&sent, "SELECT `id` FROM") || has(&sent, "SELECT * FROM") {
        sent = r.answer(&no_table(1));
    }
    sent
}

/// Its table is there, and [`BOUND`] was prepared as number 7.
fn with_bound() -> Rig {
    let mut r = rig_of_table(KeyColumnState::Present);
    let asked = stmt_prepare(&mut r, BOUND, "1");
    let sent = r.tell(asked.into_bytes(), &COLUMNS);
    assert!(has(&sent, "INSERT INTO t ("), "{sent:?}");
    r.answer(&prepared(7, 2));
    r.output();
    r
}

#[test]
fn a_text_is_answered_by_the_server_and_does_not_go_out() {
    let mut r = rig_of_table(KeyColumnState::Present);
    let sent = r.probed(UNLISTED, "1");
    assert!(sent.contains("SELECT * FROM"), "{sent}");
    assert_eq!(r.answer(&no_table(1)), b"");
    assert_eq!(r.output(), no_table(1));
    assert!(r.requests.is_empty());
    // Made again past the program.
    let sent = r.query(UNLISTED);
    let sent = r.tell(sent, &COLUMNS);
    assert!(has(&sent, "LAST_INSERT_ID(100)"), "{sent:?}");
}

/// Whatever its rule's keys are.
#[test]
fn so_it_is_with_keys_that_are_text() {
    let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
    let sent = r.probed(UNLISTED, "1");
    assert!(sent.contains("SELECT * FROM"), "{sent}");
    assert_eq!(r.answer(&no_table(1)), b"");
    assert_eq!(r.output(), no_table(1));
}

#[test]
fn the_answer_to_a_command_of_two_packets_is_numbered_as_that() {
    let mut r = rig_of_table(KeyColumnState::Present);
    let mut text = b"\x03INSERT INTO t VALUES (NULL, '".to_vec();
    text.resize(BODY_BYTES_MAX + 5, b'x');
    text.extend(b"')");
    let (first, last) = text.split_at(BODY_BYTES_MAX);
    r.client.extend(packet(0, first));
    let sent = r.say_numbered(1, last);
    assert!(has(&sent, "@@session.sql_mode"));
    assert!(has(&r.answer(&probe("1")), "SELECT * FROM"));
    assert_eq!(r.answer(&no_table(1)), b"");
    assert_eq!(r.output(), no_table(2));
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn nor_is_it_prepared() {
    let mut r = rig_of_table(KeyColumnState::Present);
    let asked = stmt_prepare(&mut r, BOUND, "1");
    assert!(asked.contains("SELECT * FROM"), "{asked}");
    assert_eq!(r.answer(&no_table(1)), b"");
    assert_eq!(r.output(), no_table(1));
    let asked = stmt_prepare(&mut r, BOUND, "1");
    let sent = r.tell(asked.into_bytes(), &COLUMNS);
    assert!(
        has(&sent, "INSERT INTO t ("),
        "with room for keys: {sent:?}"
    );
}

/// That it was not there is not remembered: nobody tells when it is made again past the program.
#[test]
fn an_execution_is_answered_by_the_server_and_the_next_gets_a_key() {
    let mut r = with_bound();
    r.schema.note_defined();
    let sent = r.say(&with_null());
    assert!(has(&sent, "SELECT `id` FROM"), "{sent:?}");
    assert_eq!(misses(&mut r, sent), b"");
    assert_eq!(r.output(), no_table(1));
    let sent = r.say(&with_null());
    let sent = r.tell(sent, &COLUMNS);
    assert!(has(&sent, "LAST_INSERT_ID(?)"), "{sent:?}");
    let sent = r.answer(&prepared(8, 2));
    assert!(is_executed(&sent, 8), "{sent:?}");
    assert_eq!(r.requests.len(), 1);
}

/// As after any execution that fails.
#[test]
fn its_long_data_is_over() {
    let mut r = with_bound();
    r.schema.note_defined();
    r.say(&[COM_STMT_SEND_LONG_DATA, 7, 0, 0, 0, 1, 0, b'x']);
    let sent = r.say(&execute(7, &[1, 1, 8, 0, 252, 0]));
    let sent = misses(&mut r, sent);
    assert_eq!(sent, packet(0, &[COM_STMT_RESET, 7, 0, 0, 0]));
    assert_eq!(r.output(), no_table(1));
    r.answer(&ok(0, 0));
    assert!(r.output().is_empty());
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

/// Until it gives keys, all that goes out is as it was.
#[test]
fn a_rule_that_observes_passes_it_on() {
    let mut program = Program::new(Mode::Observe);
    let r = &mut program.r;
    let sent = r.query(UNLISTED);
    assert!(has(&sent, "SELECT * FROM"), "{sent:?}");
    assert!(has(&r.answer(&no_table(1)), UNLISTED));
    r.answer(&no_table(1));
    assert_eq!(r.output(), no_table(1));
    // It comes before the server prepares this.
    let asked = stmt_prepare(r, UNLISTED, "1");
    assert!(asked.contains("SELECT * FROM"), "{asked}");
    assert!(has(&r.answer(&no_table(1)), UNLISTED));
    r.answer(&prepared(7, 0));
    r.output();
    assert!(is_executed(&r.say(&execute(7, &[])), 7));
    r.answer(&ok(1, 5));
    r.output();
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    let r = &mut program.r;
    let sent = r.say(&execute(7, &[]));
    let sent = r.tell(sent, &COLUMNS);
    assert!(!is_executed(&sent, 7), "{sent:?}");
    assert!(has(&r.output(), "whose columns are not known"));
}

/// Rules of one table, which was seen.
fn rules(r: &Rig, (traffic, version): (&Arc<Traffic>, u64), mode: Mode) -> Arc<Rules> {
    let admission = RuleAdmission {
        name: "t".to_owned(),
        is_held: false,
        waits_for_store: false,
        is_switched: true,
        servers: None,
    };
    let rules = Rules::new(vec![r.rule_in(mode)], false);
    let rules = rules.with_schema(Arc::<SchemaChanges>::clone(&r.schema));
    Arc::new(rules.with_traffic(traffic, version, &[admission]))
}

/// What was found while it observed does not hold once it gives keys again.
#[test]
fn what_an_observing_rule_has_passed_on_gets_keys_later() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let traffic = Arc::<Traffic>::default();
    r.s = Session::new(rules(&r, (&traffic, 0), Mode::Rewrite), r.facts());
    let asked = stmt_prepare(&mut r, BOUND, "1");
    r.tell(asked.into_bytes(), &COLUMNS);
    r.answer(&prepared(7, 2));
    r.output();
    let publish = |r: &mut Rig, mode: Mode| {
        let version = traffic.version() + 1;
        traffic.publish(version);
        let update = r.s.update_rules(&rules(r, (&traffic, version), mode));
        assert_eq!(update, RulesUpdate::Taken);
    };
    publish(&mut r, Mode::Observe);
    r.schema.note_defined();
    let sent = r.say(&with_null());
    let sent = misses(&mut r, sent);
    assert!(has(&sent, BOUND), "as its client wrote it: {sent:?}");
    r.answer(&no_table(1));
    assert_eq!(r.output(), no_table(1));
    publish(&mut r, Mode::Rewrite);
    let sent = r.say(&with_null());
    let sent = r.tell(sent, &COLUMNS);
    assert!(has(&sent, "LAST_INSERT_ID(?)"), "{sent:?}");
}
