//! Who may begin a statement on the tables of a rule, and who has begun one.

use std::sync::Arc;

use keywright_wire::bytes::Header;
use keywright_wire::protocol::{AUTOCOMMIT, IN_TRANSACTION};

use crate::connection::Connection;
use crate::rules::Rules;
use crate::rules::admissions::{Admissions, CountedAdmission};
use crate::rules::traffic::UnderWay;
use crate::step::{KeyFailure, Step};

impl Rules {
    /// Which version they are; without traffic there is one only.
    pub fn version(&self) -> u64 {
        self.admissions().map_or(0, |admissions| admissions.version)
    }

    /// The identity of a server on which keys are in force, as all connections share it.
    pub(crate) fn server(&self, identity: &[u8]) -> Option<Arc<[u8]>> {
        let mut admissions = self.admissions()?.admissions.iter();
        admissions.find_map(|admission| admission.servers.as_ref()?.get(identity).cloned())
    }

    /// Whether new statements on those tables wait.
    pub(crate) fn holds(&self, under_way: &UnderWay) -> bool {
        let admissions = self
            .admissions()
            .map_or(&[][..], |admissions| &admissions.admissions);
        admissions
            .iter()
            .any(|admission| admission.is_held && under_way.is_of(&admission.under_way))
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

impl Connection {
    /// A statement on the tables of a rule begins; `None`: any of them. It is under way until its answer has come, and the end of its
    /// transaction. `Some`: it must wait for other rules first.
    pub(crate) fn enter(&mut self, header: Header, rule: Option<usize>) -> Option<Step> {
        self.rules.admissions()?;
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
            admissions.traffic.note_unknown_server();
            return Some(self.keep_back(header));
        }
        // Also where a transaction has touched the table already.
        if inserts && admission.waits_for_store {
            return Some(self.keep_back(header));
        }
        if self
            .under_way
            .iter()
            .any(|is| is.is_of(&admission.under_way))
        {
            return None;
        }
        let under_way = UnderWay::begin(&admission.under_way);
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
        admission.is_some_and(|admission| {
            self.under_way
                .iter()
                .any(|is| is.is_of(&admission.under_way))
        })
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
            admissions.traffic.note_unknown_server();
        }
    }

    /// A native INSERT was refused at the fence.
    pub(crate) fn note_at_fence(&self) {
        if let Some(admissions) = self.rules.admissions() {
            admissions.traffic.note_at_fence();
        }
    }

    /// An answer has ended, or a command was refused: what it had under way ends with it, unless its transaction goes on.
    pub(crate) fn leave(&mut self) {
        if !self.may_be_open() {
            self.under_way.clear();
            self.goes_on = None;
        }
    }

    fn may_be_open(&self) -> bool {
        self.last_status & IN_TRANSACTION != 0
            || (self.is_status_old && self.last_status & AUTOCOMMIT == 0)
    }
}
