//! Other rules while a connection is open: it takes them between two commands, unless what it has under way or has prepared goes by
//! the ones before.

use std::sync::Arc;

use keywright_core::Cause;

use crate::connection::Connection;
use crate::job::Job;
use crate::rules::{Mode, Rules};
use crate::session::Session;
use crate::step::KeyFailure;

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

impl Session {
    /// Asks the server whether a transaction that others wait for is still open, where the last it said was an error: that may have
    /// ended it, and does not say so. Between two commands; false: there is nothing to ask.
    pub fn ask_whether_open(&mut self) -> bool {
        let is_waited_for = self.connection.goes_on.is_some() && self.connection.is_status_old;
        if !is_waited_for || !self.is_at_command() || self.has_several() {
            return false;
        }
        self.connection.ask_status();
        true
    }

    /// After [`crate::Step::Wait`]: what the command at the front waits for, if that is not other rules. The program asks by its own account
    /// about the tables of [`crate::SchemaChanges::tables_to_ask`]; the session is to be asked again once [`crate::SchemaChanges::answers`] is not
    /// this number any more.
    pub fn awaited_answer(&self) -> Option<u64> {
        let awaited = self.connection.table_report.awaited.as_ref();
        awaited.map(|(_, answers)| *answers)
    }

    /// The same later, without a look at the whole command: the number if it still waits for that. Otherwise the session is to be asked again. Where nobody
    /// asks about its table any more, it is among [`crate::SchemaChanges::tables_to_ask`] again.
    pub fn still_awaits(&self) -> Option<u64> {
        self.connection.still_awaits()
    }

    /// After [`crate::Step::Wait`]: nothing has changed for too long. The command at the front is refused.
    pub fn on_waited(&mut self) {
        self.on_waited_for(switching());
    }

    /// The same, where it is known why nothing has changed: a client whose statement gets no keys is told that.
    pub fn on_waited_for(&mut self, failure: KeyFailure) {
        let report = &mut self.connection.table_report;
        if report.awaited.take().is_some() {
            report.is_unanswered = true;
            return;
        }
        if !self.at_hand_mut().on_waited() {
            self.connection.waited = Some(failure);
        }
    }

    /// Which version of the rules it follows.
    pub fn version(&self) -> u64 {
        self.connection.rules.version()
    }

    /// Whether a statement or an open transaction uses tables of rules.
    pub fn is_under_way(&self) -> bool {
        !self.connection.under_way.is_empty()
    }

    /// Whether these rules wait for that.
    pub fn holds_up(&self, rules: &Rules) -> bool {
        self.connection.holds_up(rules)
    }

    /// Whether it is a passthrough, which cannot take rules.
    pub fn is_passthrough(&self) -> bool {
        matches!(self.at_hand(), Job::Passthrough(_))
    }

    /// Takes other rules: between two commands, or while a command waits for them.
    pub fn update_rules(&mut self, rules: &Arc<Rules>) -> RulesUpdate {
        if rules.version() == self.connection.rules.version() {
            return RulesUpdate::Taken;
        }
        if !self.is_at_command() {
            return RulesUpdate::AfterCommand;
        }
        let update = self.connection.follow(rules);
        if update == RulesUpdate::Taken {
            self.at_hand_mut().go_by_other_rules();
        }
        update
    }

    /// Whether the client's next command is waited for, or is at the front and nothing of it went out yet.
    fn is_at_command(&self) -> bool {
        let connection = &self.connection;
        self.at_hand().can_begin_anew() && connection.probe.is_none() && !connection.has_rest()
    }
}

impl Connection {
    fn holds_up(&self, rules: &Rules) -> bool {
        self.under_way.iter().any(|is| rules.holds(is))
    }

    fn follow(&mut self, rules: &Arc<Rules>) -> RulesUpdate {
        if self.holds_up(rules) {
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
        self.forget_command();
        self.goes_on = None;
        RulesUpdate::Taken
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
