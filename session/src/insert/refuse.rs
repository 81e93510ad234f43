//! What becomes of statements that cannot be done exactly: refused, or passed on where the rule says so or only observes.

use keywright_rewrite::Unsupported;
use keywright_wire::answer::Shape;
use keywright_wire::bytes::Header;

use crate::answer::after::After;
use crate::answer::errors::write_error;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::job::Next;
use crate::judge::{Reason, decide_unread};
use crate::step::{StatementOutcome, Step};

impl Connection {
    pub(crate) fn unsupported(
        &mut self,
        query: Query<'_>,
        rule: Option<usize>,
        what: Unsupported,
    ) -> Next {
        self.unsupported_then(query, rule, what, After::Unknown)
    }

    /// The same; where the statement is passed on it changes that.
    pub(crate) fn unsupported_then(
        &mut self,
        query: Query<'_>,
        rule: Option<usize>,
        what: Unsupported,
        after: After,
    ) -> Next {
        match decide_unread(self.policy(rule), what) {
            Ok(()) => self.leave_as_it_is(query, rule, what, after),
            Err(reason) => self.refuse_for(query.header, rule, reason).into(),
        }
    }

    /// Passes a statement on although this forbids keys.
    fn leave_as_it_is(
        &mut self,
        query: Query<'_>,
        rule: Option<usize>,
        what: Unsupported,
        after: After,
    ) -> Next {
        if let Some(step) = self.enter(query.header, rule) {
            return step.into();
        }
        if self.pending_last_insert_id.is_some() {
            return self.update_last_insert_id(false).into();
        }
        self.last_insert_id = None;
        self.note(rule, StatementOutcome::Passed(what.label()));
        self.note(rule, StatementOutcome::Native(None));
        let next = self.pass(query.header, query.bytes, Shape::Results, after);
        match rule {
            Some(rule) => self.watch_fence(next, rule),
            None => next,
        }
    }

    pub(crate) fn refuse_unsupported(
        &mut self,
        header: Header,
        rule: Option<usize>,
        what: Unsupported,
    ) -> Step {
        self.refuse_for(header, rule, Reason::Unsupported(what))
    }

    /// Refuses the command at the front, and counts why.
    pub(crate) fn refuse_for(
        &mut self,
        header: Header,
        rule: Option<usize>,
        reason: Reason,
    ) -> Step {
        if reason == Reason::Unsupported(Unsupported::TableAhead) {
            return self.wait_ahead(header, rule);
        }
        let message = self.note_refused(rule, reason);
        self.refuse(header, reason.cause(), &message)
    }

    /// The same of a statement that was answered already.
    pub(crate) fn tell_refused(&mut self, rule: Option<usize>, reason: Reason, sequence: u8) {
        let message = self.note_refused(rule, reason);
        write_error(reason.cause(), &message, sequence, &mut self.down);
    }

    /// In place of an error of which the server does not say enough: perhaps the statement was made to fail.
    pub(crate) fn tell_cut_off(&mut self, rule: Option<usize>, error: &[u8]) {
        let sequence = Header::read(error).map_or(1, |header| header.sequence);
        self.tell_refused(
            rule,
            Reason::Unsupported(Unsupported::ErrorCutOff),
            sequence,
        );
    }

    /// Counts it. Returns what the client is told.
    fn note_refused(&mut self, rule: Option<usize>, reason: Reason) -> String {
        self.note(rule, StatementOutcome::Refused(reason.label()));
        let rule = rule.and_then(|index| self.rules.rules().get(index));
        reason.message(rule.map(|rule| rule.column.as_str()))
    }

    /// A table whose ids are ahead of the rule's keys: the statement waits until the keys continue above them. In a transaction that has
    /// touched another table of the rule it is refused at once, since the switch would wait for that transaction.
    pub(crate) fn wait_ahead(&mut self, header: Header, rule: Option<usize>) -> Step {
        self.leave();
        let is_waited_for = rule.is_some_and(|rule| self.has_touched(rule));
        if self.waited.take().is_none() && !is_waited_for {
            self.note_unknown_server();
            return Step::Wait;
        }
        let reason = Reason::Unsupported(Unsupported::TableAhead);
        let told = self.note_refused(rule, reason);
        let why = rule.and_then(|rule| self.rules.reason_ahead(rule));
        let message = why.map_or(told, no_keys);
        self.refuse(header, reason.cause(), &message)
    }
}

/// No switch puts it right: somebody has to.
fn no_keys(why: &str) -> String {
    format!("keywright gives this table no keys now: {why}")
}
