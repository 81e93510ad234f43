//! Rules that change while a connection is open.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_core::KeyBatch;
use keywright_rewrite::KeyForm;
use keywright_session::{
    Mode, Pattern, Rule, RuleAdmission, Rules, RulesUpdate, Session, Step, Traffic,
};

use super::rig::*;

pub(super) const INSERT: &str = "INSERT INTO t (a) VALUES (1)";
/// Its key, in whatever form.
pub(super) const KEYED: &str = "100";
/// MariaDB's answer where it cannot make another key.
pub(super) const AT_FENCE: &[u8] = b"\xff\xa7\x00#22003Out of range value for column 'id' at row 1";

/// A program: what its connections have under way, and the versions of its rules.
pub(super) struct Program {
    pub(super) traffic: Arc<Traffic>,
    /// Where keys are in force.
    servers: Option<BTreeSet<String>>,
    waits_for_store: bool,
    pub(super) r: Rig,
}

impl Program {
    /// With one connection that knows its server's state.
    pub(super) fn new(mode: Mode) -> Program {
        Program::with(mode, DEPRECATE_EOF)
    }

    pub(super) fn with(mode: Mode, capabilities: u64) -> Program {
        let mut program = Program {
            traffic: Arc::default(),
            servers: None,
            waits_for_store: false,
            r: rig(KeyForm::Integer, capabilities),
        };
        let rules = program.rules(0, mode, false);
        program.r.s = Session::new(rules, program.r.facts());
        program.r.probed("INSERT INTO t (id, a) VALUES (5, 1)", "1");
        program.r.answer(&ok(1, 0));
        program.r.output();
        program
    }

    fn rules(&self, version: u64, mode: Mode, is_held: bool) -> Arc<Rules> {
        self.rules_of(self.r.rule_in(mode), version, is_held)
    }

    fn rules_of(&self, rule: Rule, version: u64, is_held: bool) -> Arc<Rules> {
        let admission = RuleAdmission {
            name: "t".to_owned(),
            is_held,
            waits_for_store: self.waits_for_store,
            is_switched: true,
            servers: self.servers.clone(),
        };
        let rules = Rules::new(vec![rule], false);
        Arc::new(rules.with_traffic(&self.traffic, version, &[admission]))
    }

    /// Another version of the rules is in force; what the connection makes of it.
    pub(super) fn publish(&mut self, mode: Mode, is_held: bool) -> RulesUpdate {
        let version = self.traffic.version() + 1;
        self.traffic.publish(version);
        self.follow(mode, is_held)
    }

    pub(super) fn follow(&mut self, mode: Mode, is_held: bool) -> RulesUpdate {
        let rules = self.rules(self.traffic.version(), mode, is_held);
        let update = self.r.s.update_rules(&rules);
        self.r.run();
        update
    }

    /// Rules are in force that leave its table out.
    pub(super) fn leave_out(&mut self) -> RulesUpdate {
        let version = self.traffic.version() + 1;
        self.traffic.publish(version);
        let mut rule = self.r.rule_in(Mode::Rewrite);
        rule.table = Pattern::parse("*.another").unwrap();
        let rules = self.rules_of(rule, version, false);
        let update = self.r.s.update_rules(&rules);
        self.r.run();
        update
    }

    pub(super) fn sent(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.r.to_server)).into_owned()
    }
}

/// Its OK packet, with these status flags.
pub(super) fn ok_in(status: u8) -> Vec<u8> {
    packet(1, &[0, 1, 7, status, 0, 0, 0])
}

/// After a failover, until the switch was repeated there.
#[test]
fn a_server_on_which_the_keys_are_not_in_force_gets_none() {
    let mut program = Program::new(Mode::Observe);
    program.servers = Some(["uuid=before".to_owned()].into());
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.r.query(INSERT).is_empty());
    assert_eq!(
        (
            program.traffic.under_way("t"),
            program.traffic.on_unknown_server()
        ),
        (0, 1)
    );
    program.servers = Some(["uuid=before".to_owned(), SERVER.to_owned()].into());
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.sent().contains(KEYED));
}

/// Nor does one that was not asked yet who it is.
#[test]
fn a_new_connection_to_such_a_server_gets_no_key() {
    let mut program = Program::new(Mode::Observe);
    program.servers = Some(["uuid=before".to_owned()].into());
    let rules = program.rules(0, Mode::Rewrite, false);
    program.r.s = Session::new(rules, program.r.facts());
    let sent = program.r.probed(INSERT, "1");
    assert!(!sent.contains("INSERT"), "{sent}");
    program.r.s.on_waited();
    program.r.run();
    assert!(has(&program.r.output(), "are being switched"));
}

/// Others are no way for an id to come twice.
#[test]
fn only_inserts_wait_while_nobody_knows_where_keys_come_from() {
    for is_unknown_server in [false, true] {
        let mut program = Program::new(Mode::Observe);
        program.waits_for_store = !is_unknown_server;
        program.servers = is_unknown_server.then(|| ["uuid=before".to_owned()].into());
        assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
        program.r.query("BEGIN");
        program.r.answer(&ok_in(3));
        let select = "SELECT a FROM t";
        assert!(has(&program.r.query(select), select));
        program.r.answer(&ok_in(3));
        assert!(
            program
                .r
                .query("INSERT INTO t (a, b) VALUES (1, 2)")
                .is_empty()
        );
    }
}

#[test]
fn a_statement_waits_while_its_table_is_held() {
    let mut program = Program::new(Mode::Observe);
    assert_eq!(program.publish(Mode::Observe, true), RulesUpdate::Taken);
    assert!(program.r.query(INSERT).is_empty());
    assert_eq!(program.traffic.under_way("t"), 0);
    // It goes out by whatever comes then.
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.sent().contains(KEYED));
    assert_eq!(program.traffic.under_way("t"), 1);
    program.r.answer(&ok(1, 100));
    assert_eq!(program.traffic.under_way("t"), 0);
}

#[test]
fn who_has_not_heard_of_the_hold_waits_too() {
    let mut program = Program::new(Mode::Observe);
    let version = program.traffic.version() + 1;
    program.traffic.publish(version);
    assert!(program.r.query(INSERT).is_empty());
    assert_eq!(program.follow(Mode::Observe, true), RulesUpdate::Taken);
    assert!(program.sent().is_empty());
    assert_eq!(program.publish(Mode::Observe, false), RulesUpdate::Taken);
    assert!(program.sent().contains(INSERT));
}

#[test]
fn what_the_fence_refuses_goes_out_again_by_newer_rules() {
    let mut program = Program::new(Mode::Observe);
    assert!(has(&program.r.query(INSERT), INSERT));
    program.r.answer(&packet(1, AT_FENCE));
    assert!(program.r.output().is_empty());
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    assert!(program.sent().contains(KEYED));
    program.r.answer(&ok(1, 100));
    assert_eq!(program.r.output(), ok(1, 100));
}

#[test]
fn what_the_fence_refuses_is_told_if_there_are_no_newer_rules() {
    let mut program = Program::new(Mode::Observe);
    program.r.query(INSERT);
    program.r.answer(&packet(1, AT_FENCE));
    program.r.s.on_waited();
    program.r.run();
    assert_eq!(program.r.output(), packet(1, AT_FENCE));
    // Once.
    assert!(has(&program.r.query(INSERT), INSERT));
    program.r.answer(&ok(1, 7));
    assert_eq!(program.r.output(), ok(1, 7));
}

#[test]
fn a_prepared_statement_goes_over_with_the_types_it_had() {
    let mut program = Program::new(Mode::Observe);
    let sent = stmt_prepare(&mut program.r, "INSERT INTO t (a) VALUES (?)", "1");
    assert!(sent.ends_with("INSERT INTO t (a) VALUES (?)"), "{sent}");
    program.r.answer(&prepared(7, 1));
    // LONGLONG, and its value.
    let first = execute(7, &[0, 1, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    assert!(has(&program.r.say(&first), "\x09\0\0\0\0\0\0\0"));
    program.r.answer(&ok(1, 7));
    program.r.output();
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    // Types are sent once.
    let again = execute(7, &[0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    let sent = program.r.say(&again);
    assert!(
        has(&sent, "INSERT INTO t (`id`,a) VALUES (?,?)"),
        "{sent:?}"
    );
    let sent = program.r.answer(&prepared(8, 2));
    assert!(has(&sent, "\x17\x08\0\0\0"), "{sent:?}");
    program.r.answer(&ok(1, 100));
    assert_eq!(program.r.output(), ok(1, 100));
    // And back.
    assert_eq!(program.publish(Mode::Observe, false), RulesUpdate::Taken);
    let sent = program.r.say(&again);
    assert!(has(&sent, "INSERT INTO t (a) VALUES (?)"), "{sent:?}");
}

#[test]
fn one_that_cannot_go_over_ends_its_connection() {
    let mut program = Program::new(Mode::Observe);
    stmt_prepare(&mut program.r, "INSERT INTO t (a) SELECT a FROM u", "1");
    program.r.answer(&prepared(7, 0));
    assert_eq!(program.publish(Mode::Observe, true), RulesUpdate::Taken);
    assert_eq!(
        program.publish(Mode::Rewrite, false),
        RulesUpdate::Impossible
    );
}

/// COM_STMT_BULK_EXECUTE of a statement, with what follows its number.
fn bulk(id: u32, rest: &[u8]) -> Vec<u8> {
    [&[0xFA], id.to_le_bytes().as_slice(), rest].concat()
}

#[test]
fn rows_of_parameters_go_back_with_the_types_they_had() {
    const TYPED: &[u8] = b"\x80\x00\xfd\x00\x00\x01x";
    const UNTYPED: &[u8] = b"\x00\x00\x00\x01x";
    let mut program = Program::with(Mode::Rewrite, DEPRECATE_EOF | BULK);
    stmt_prepare(&mut program.r, "INSERT INTO t (a) VALUES (?)", "1");
    program.r.answer(&prepared(7, 2));
    // Nobody knows them yet, and the server says so.
    program.publish(Mode::Observe, false);
    program.r.say(&bulk(7, UNTYPED));
    let sent = program.r.answer(&prepared(8, 1));
    assert_eq!(sent, packet(0, &bulk(8, UNTYPED)));
    program.r.answer(&ok(1, 7));
    // They are sent once, while there are keys.
    program.publish(Mode::Rewrite, false);
    program.r.say(&bulk(7, TYPED));
    program.r.answer(&prepared(9, 2));
    program.r.answer(&ok(1, 100));
    program.publish(Mode::Observe, false);
    let sent = program.r.say(&bulk(7, UNTYPED));
    assert!(has(&sent, "SET last_insert_id=100"), "{sent:?}");
    let sent = program.r.answer(&ok(0, 0));
    assert_eq!(sent, packet(0, &bulk(8, TYPED)));
    program.r.answer(&ok(1, 8));
    // Or while there are none.
    let other = b"\x80\x00\xfc\x00\x00\x01x";
    let sent = program.r.say(&bulk(7, other));
    assert_eq!(sent, packet(0, &bulk(8, other)));
    program.r.answer(&ok(1, 9));
    program.publish(Mode::Rewrite, false);
    let sent = program.r.say(&bulk(7, UNTYPED));
    let of_key_and_value = [0x08, 0x80, 0xfc, 0x00];
    assert!(
        sent.windows(4).any(|part| part == of_key_and_value),
        "{sent:?}"
    );
}

/// What is refused before it has come whole is dropped in all its packets, in whatever parts they come.
#[test]
fn nothing_of_a_refused_command_of_two_packets_goes_out() {
    let mut program = Program::new(Mode::Observe);
    stmt_prepare(&mut program.r, "INSERT INTO t (a) VALUES (?)", "1");
    program.r.answer(&prepared(7, 1));
    program.r.output();
    assert_eq!(program.publish(Mode::Observe, true), RulesUpdate::Taken);
    let mut first = execute(7, &[0, 1, 252, 0]);
    first.resize(0xFF_FF_FF, b'x');
    let first = packet(0, &first);
    let (front, rest) = first.split_at(1_000);
    program.r.client.extend(front);
    program.r.run();
    assert!(program.r.output().is_empty(), "it waits");
    program.r.s.on_waited();
    program.r.run();
    assert!(has(&program.r.output(), "are being switched"));
    for part in [rest, &packet(1, b"\x03DROP TABLE t")] {
        program.r.client.extend(part);
        program.r.run();
        assert_eq!(program.sent(), "");
    }
    assert!(program.r.output().is_empty());
    assert!(has(&program.r.query("SELECT 1"), "SELECT 1"));
}

#[test]
fn keys_that_came_by_the_rules_before_are_not_sent_by_others() {
    let mut program = Program::new(Mode::Rewrite);
    let r = &mut program.r;
    r.client = packet(0, &[b"\x03", INSERT.as_bytes()].concat());
    assert!(matches!(r.s.on_client(&r.client), Step::Keys(_)));
    r.s.on_keys(Ok(KeyBatch::Numbers {
        first: 100,
        spacing: 1,
        count: 1,
    }));
    // Nothing of it went out.
    assert_eq!(program.publish(Mode::Observe, false), RulesUpdate::Taken);
    let sent = program.sent();
    assert!(sent.ends_with(INSERT), "{sent}");
}

#[test]
fn a_native_insert_without_an_id_leaves_the_last_one_known() {
    // The one that the program begins with.
    let mut program = Program::new(Mode::Observe);
    assert_eq!(program.publish(Mode::Rewrite, false), RulesUpdate::Taken);
    let sent = program.r.query("LOAD DATA INFILE 'f' INTO TABLE t (a)");
    assert!(has(&sent, "SET last_insert_id=0"), "{sent:?}");
}

#[test]
fn a_statement_is_under_way_between_its_tries() {
    let mut program = Program::new(Mode::Rewrite);
    let sent = program.r.query("INSERT INTO t (a) SELECT a FROM u");
    assert!(has(&sent, "99+ROWNUM()"), "{sent:?}");
    assert_eq!(program.traffic.under_way("t"), 1);
    let sent = program.r.answer(&super::select::too_few());
    assert!(has(&sent, "INSERT"), "another try: {sent:?}");
    assert_eq!(program.traffic.under_way("t"), 1);
    program.r.answer(&ok(70, 0));
    assert_eq!(program.traffic.under_way("t"), 0);
}
