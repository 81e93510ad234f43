//! Statements and transactions under way on the tables of rules, counted over all connections of one program, so that rules can change
//! for all of them at once.
//!
//! A change is published as a new version. A statement on a rule's table first counts itself and then compares the version; the
//! publisher first raises the version and then reads the count. So either the statement sees the new version, or the publisher
//! sees the statement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keywright_core::Cause;
use keywright_wire::answer::Shape;
use keywright_wire::bytes::Header;
use keywright_wire::packets::write_command;
use keywright_wire::protocol::{AUTOCOMMIT, COM_SET_OPTION, IN_TRANSACTION};
use memchr::memmem::Finder;

use crate::insert::values::Stage;
use crate::rules::{Mode, Rules};
use crate::session::{Gather, Session, Turn};
use crate::step::{KeyFailure, Step};

/// What all connections of one program have under way, by rule.
#[derive(Debug, Default)]
pub struct Traffic {
    version: AtomicU64,
    /// By the rule's name. Those that were in force earlier stay: a statement may still go by them.
    rules: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    passthrough: Arc<AtomicU64>,
    unknown_server: AtomicU64,
    at_fence: AtomicU64,
}

/// A connection in passthrough, until this is dropped.
#[derive(Debug)]
pub struct PassthroughConnection(Arc<AtomicU64>);

impl Drop for PassthroughConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Traffic {
    /// The next version of the rules: from now on nothing enters by an older one.
    pub fn publish(&self, version: u64) {
        self.version.store(version, Ordering::SeqCst);
    }

    /// The version that is in force.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// How many connections have something under way on the tables of a rule.
    pub fn under_way(&self, rule: &str) -> u64 {
        self.count(rule).load(Ordering::SeqCst)
    }

    /// A connection in passthrough: what it has under way is not known.
    pub fn count_passthrough(&self) -> PassthroughConnection {
        self.passthrough.fetch_add(1, Ordering::SeqCst);
        PassthroughConnection(Arc::clone(&self.passthrough))
    }

    /// How many of these there are.
    pub fn passthrough(&self) -> u64 {
        self.passthrough.load(Ordering::SeqCst)
    }

    /// How often a statement was kept back because its keys are not in force on the server that it was for, or its table has ids that
    /// are still to be given.
    pub fn on_unknown_server(&self) -> u64 {
        self.unknown_server.load(Ordering::SeqCst)
    }

    /// How often a native INSERT was refused at the fence.
    pub fn at_fence(&self) -> u64 {
        self.at_fence.load(Ordering::SeqCst)
    }

    fn count(&self, rule: &str) -> Arc<AtomicU64> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(rules.entry(rule.to_owned()).or_default())
    }
}

/// How one version of the rules takes part in it.
pub(crate) struct Admissions {
    traffic: Arc<Traffic>,
    version: u64,
    /// By configured rule.
    admissions: Vec<CountedAdmission>,
}

struct CountedAdmission {
    is_held: bool,
    waits_for_store: bool,
    is_switched: bool,
    servers: Option<BTreeSet<Vec<u8>>>,
    under_way: Arc<AtomicU64>,
    /// What a statement that names one of its tables has in its text; `None`: no single name.
    table: Option<Finder<'static>>,
}

/// A configured rule, as it takes part in a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleAdmission {
    /// Its name.
    pub name: String,
    /// New statements on its tables wait.
    pub is_held: bool,
    /// INSERTs on its tables wait.
    pub waits_for_store: bool,
    /// Its tables may go over to keys and back.
    pub is_switched: bool,
    /// The servers on which its keys are in force; `None`: on any.
    pub servers: Option<BTreeSet<String>>,
}

impl Admissions {
    pub(crate) fn new<'a>(
        traffic: &Arc<Traffic>,
        version: u64,
        rules: impl Iterator<Item = (&'a RuleAdmission, Option<&'a [u8]>)>,
    ) -> Self {
        let admissions = rules.map(|(admission, table)| CountedAdmission {
            is_held: admission.is_held,
            waits_for_store: admission.waits_for_store,
            is_switched: admission.is_switched,
            servers: admission.servers.as_ref().map(|servers| {
                let servers = servers.iter().map(|server| server.as_bytes().to_vec());
                servers.collect()
            }),
            under_way: traffic.count(&admission.name),
            table: table.map(|table| Finder::new(table).into_owned()),
        });
        Self {
            version,
            admissions: admissions.collect(),
            traffic: Arc::clone(traffic),
        }
    }
}

/// One connection has something under way on the tables of a rule. Which one its count says: a reload may give the rule another place.
pub(crate) struct UnderWay {
    count: Arc<AtomicU64>,
}

impl UnderWay {
    fn is_of(&self, admission: &CountedAdmission) -> bool {
        Arc::ptr_eq(&self.count, &admission.under_way)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What became of an attempt to take other rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesUpdate {
    /// They are in force.
    Taken,
    /// They hold a table that the open transaction has touched: it goes on under the old rules.
    AfterTransaction,
    /// A command is under way.
    AfterCommand,
    /// The connection cannot take them: one of its prepared statements depends on the old ones.
    Impossible,
}

impl Rules {
    /// Which version they are; without traffic there is one only.
    pub fn version(&self) -> u64 {
        self.admissions().map_or(0, |admissions| admissions.version)
    }

    fn holds(&self, under_way: &UnderWay) -> bool {
        let admissions = self
            .admissions()
            .map_or(&[][..], |admissions| &admissions.admissions);
        admissions
            .iter()
            .any(|admission| admission.is_held && under_way.is_of(admission))
    }

    /// Whether a rule's tables may go over to keys and back.
    pub(crate) fn is_switched(&self, rule: usize) -> bool {
        let rule = self.configured(rule);
        let admission = self
            .admissions()
            .and_then(|admissions| admissions.admissions.get(rule));
        admission.is_some_and(|admission| admission.is_switched)
    }

    /// The configured rules whose tables a text may name.
    fn named_in(&self, text: &[u8]) -> Vec<usize> {
        let admissions = self
            .admissions()
            .map_or(&[][..], |admissions| &admissions.admissions);
        let names = |admission: &CountedAdmission| {
            let table = admission.table.as_ref();
            admission.is_switched && table.is_none_or(|table| table.find(text).is_some())
        };
        let admissions = admissions.iter().enumerate();
        admissions
            .filter(|(_, admission)| names(admission))
            .map(|(rule, _)| rule)
            .collect()
    }
}

impl Session {
    /// A statement on the tables of a rule begins; `None`: any of them. It is under way until its answer has come, and the end of its
    /// transaction. `Some`: it must wait for other rules first.
    pub(crate) fn enter(&mut self, header: Header, rule: Option<usize>) -> Option<Step> {
        if let Some(step) = self.answer_at_fence(header) {
            return Some(step);
        }
        let rules = Arc::clone(&self.rules);
        let admissions = rules.admissions()?;
        match rule {
            Some(rule) => self.enter_one(header, admissions, (rules.configured(rule), true)),
            None => {
                let mut all = 0..admissions.admissions.len();
                all.find_map(|rule| self.enter_one(header, admissions, (rule, true)))
            }
        }
    }

    /// The same of any other statement, where it is part of a transaction: what it locks it keeps.
    pub(crate) fn enter_named(&mut self, header: Header, text: &[u8]) -> Option<Step> {
        if self.rules.admissions().is_none() || !self.keeps_locks() {
            return None;
        }
        let rules = self.rules.named_in(text);
        self.enter_all(header, &rules)
    }

    /// Of statements that were prepared.
    pub(crate) fn enter_all(&mut self, header: Header, rules: &[usize]) -> Option<Step> {
        if let Some(step) = self.answer_at_fence(header) {
            return Some(step);
        }
        let own = Arc::clone(&self.rules);
        let admissions = own.admissions()?;
        rules
            .iter()
            .find_map(|rule| self.enter_one(header, admissions, (own.configured(*rule), false)))
    }

    /// The rules whose tables a statement to be prepared may name.
    pub(crate) fn rules_named_in(&self, text: &[u8]) -> Vec<usize> {
        self.rules.named_in(text)
    }

    /// Whether a statement's locks outlive it.
    pub(crate) fn keeps_locks(&self) -> bool {
        let flags = IN_TRANSACTION | AUTOCOMMIT;
        self.last_status & flags != AUTOCOMMIT
    }

    /// `inserts`: rows may go into its tables; others only lock them.
    fn enter_one(
        &mut self,
        header: Header,
        admissions: &Admissions,
        (rule, inserts): (usize, bool),
    ) -> Option<Step> {
        let admission = admissions.admissions.get(rule)?;
        if inserts && self.is_unknown_server(admission) {
            admissions
                .traffic
                .unknown_server
                .fetch_add(1, Ordering::SeqCst);
            return Some(self.keep_back(header));
        }
        // Also where a transaction has touched the table already.
        if inserts && admission.waits_for_store {
            return Some(self.keep_back(header));
        }
        if self.under_way.iter().any(|is| is.is_of(admission)) {
            return None;
        }
        admission.under_way.fetch_add(1, Ordering::SeqCst);
        let under_way = UnderWay {
            count: Arc::clone(&admission.under_way),
        };
        let version = admissions.traffic.version();
        let may_enter = version == admissions.version && !admission.is_held;
        if may_enter || self.goes_on == Some(version) {
            self.under_way.push(under_way);
            return None;
        }
        drop(under_way);
        Some(self.keep_back(header))
    }

    /// Waits for other rules, within a limit.
    fn keep_back(&mut self, header: Header) -> Step {
        match self.waited.take() {
            Some(KeyFailure { cause, message }) => self.refuse(header, cause, &message),
            None => Step::Wait,
        }
    }

    /// Whether a transaction that is open has touched a table of a rule.
    pub(crate) fn has_touched(&self, rule: usize) -> bool {
        let admissions = self
            .rules
            .admissions()
            .map_or(&[][..], |admissions| &admissions.admissions);
        let admission = admissions.get(self.rules.configured(rule));
        admission.is_some_and(|admission| self.under_way.iter().any(|is| is.is_of(admission)))
    }

    /// Whether the server is none of those on which the rule's keys are in force. One that was not asked yet is asked before anything
    /// is rewritten, and then the statement comes here again.
    fn is_unknown_server(&self, admission: &CountedAdmission) -> bool {
        let known = self
            .context
            .identity
            .as_ref()
            .zip(admission.servers.as_ref());
        known.is_some_and(|(server, servers)| !servers.contains(server))
    }

    /// A statement waits until the servers were inspected.
    pub(crate) fn note_unknown_server(&self) {
        if let Some(admissions) = self.rules.admissions() {
            admissions
                .traffic
                .unknown_server
                .fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A native INSERT was refused at the fence.
    pub(crate) fn note_at_fence(&self) {
        if let Some(admissions) = self.rules.admissions() {
            admissions.traffic.at_fence.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// An answer has ended, or a command was refused: what it had under way ends with it, unless its transaction goes on.
    pub(crate) fn leave(&mut self) {
        if !self.may_be_open() && !self.stage.is_half_way() {
            self.under_way.clear();
            self.goes_on = None;
        }
    }

    fn may_be_open(&self) -> bool {
        self.last_status & IN_TRANSACTION != 0
            || (self.is_status_old && self.last_status & AUTOCOMMIT == 0)
    }

    /// Asks the server whether a transaction that others wait for is still open, where the last it said was an error: that may have
    /// ended it, and does not say so. Between two commands; false: there is nothing to ask.
    pub fn ask_whether_open(&mut self) -> bool {
        let is_waited_for = self.goes_on.is_some() && self.is_status_old;
        if !is_waited_for || !self.is_at_command() || self.multi_statement.is_some() {
            return false;
        }
        // What is in force already: unlike others' its answer leaves ROW_COUNT() as it is after an error, and warnings.
        let option = u16::from(!self.allows_several());
        write_command(COM_SET_OPTION, &option.to_le_bytes(), &mut self.up);
        self.answer.expect(Shape::Simple);
        self.turn = Turn::Gather(Gather::Status);
        true
    }

    /// After [`Step::Wait`]: nothing has changed for too long. The command at the front is refused.
    pub fn on_waited(&mut self) {
        match &mut self.at_fence {
            Some(at_fence) => at_fence.is_final = true,
            None => self.waited = Some(switching()),
        }
    }

    /// Which version of the rules it follows.
    pub fn version(&self) -> u64 {
        self.rules.version()
    }

    /// Whether it is a passthrough, which cannot take rules.
    pub fn is_passthrough(&self) -> bool {
        matches!(self.turn, Turn::Passthrough)
    }

    /// Takes other rules: between two commands, or while a command waits for them.
    pub fn update_rules(&mut self, rules: &Arc<Rules>) -> RulesUpdate {
        if rules.version() == self.rules.version() {
            return RulesUpdate::Taken;
        }
        if !self.is_at_command() {
            return RulesUpdate::AfterCommand;
        }
        let mut under_way = self.under_way.iter();
        if under_way.any(|is| rules.holds(is)) {
            self.goes_on = Some(rules.version());
            return RulesUpdate::AfterTransaction;
        }
        if !self.can_follow(rules) {
            return RulesUpdate::Impossible;
        }
        if !self.rules.is_same_list(rules) {
            // By the rule's place in the list.
            self.apart.clear();
        }
        if self.rules.has_others_ahead(rules) {
            // Prepared statements are checked again.
            self.context.note_renamed();
        }
        self.rules = Arc::clone(rules);
        self.stage = Stage::default();
        self.goes_on = None;
        RulesUpdate::Taken
    }

    /// Whether the client's next command is waited for, or is at the front and nothing of it went out yet.
    fn is_at_command(&self) -> bool {
        matches!(self.turn, Turn::Command)
            && self.passing.is_none()
            && !self.drop_command
            && self.stage.load.is_none()
    }

    /// Whether what was prepared can go by other rules.
    fn can_follow(&self, rules: &Rules) -> bool {
        let has_same_list = self.rules.is_same_list(rules);
        let is_bound =
            !has_same_list && (self.statements.has_inserts() || !self.context.texts.is_empty());
        !is_bound
            && !self
                .statements
                .keeps_native(|rule| is_rewriting(rules, rule))
    }
}

fn switching() -> KeyFailure {
    KeyFailure {
        cause: Cause::StoreUnavailable,
        message: "keywright: tables are being switched, and how that ends is not known yet"
            .to_owned(),
    }
}

fn is_rewriting(rules: &Rules, rule: usize) -> bool {
    let rule = rules.rules().get(rule);
    rule.is_some_and(|rule| rule.mode == Mode::Rewrite)
}
