//! What becomes of statements that cannot be done exactly: refused, or passed on where the rule says so or only observes.

use keywright_core::Cause;
use keywright_rewrite::{Plan, Unsupported};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{Header, write_packet};
use keywright_wire::packets::error_payload;

use crate::answer::after::After;
use crate::answer::errors::write_error;
use crate::client::text::Query;
use crate::connection::Connection;
use crate::insert::values::has_ambiguous_id;
use crate::job::Next;
use crate::rules::{Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Rule};
use crate::step::{StatementOutcome, Step};

/// The servers' error for a packet that ends too early, or too late.
const MALFORMED: u16 = 1835;

/// What an observing rule counts for a statement; `None`: nothing would have been done.
pub(crate) fn observed(rule: &Rule, plan: &Plan, wants_keys: bool) -> Option<StatementOutcome> {
    if plan.explicit() && rule.on_explicit == OnExplicit::Refuse {
        Some(StatementOutcome::Passed("explicit"))
    } else if wants_keys && has_ambiguous_id(plan) && rule.on_ambiguous_id == OnAmbiguousId::Refuse
    {
        Some(StatementOutcome::Passed("ambiguous_id"))
    } else {
        wants_keys.then_some(StatementOutcome::Observed)
    }
}

impl Connection {
    /// Whether some rule changes statements. Where none does, none is refused either.
    pub(crate) fn rewrites_any(&self) -> bool {
        let mut rules = self.rules.rules().iter();
        rules.any(|rule| rule.mode == Mode::Rewrite)
    }

    /// Whether a rule changes statements.
    pub(crate) fn rewrites(&self, rule: usize) -> bool {
        let rule = self.rules.rules().get(rule);
        rule.is_some_and(|rule| rule.mode == Mode::Rewrite)
    }

    /// Whether the rule refuses what cannot be rewritten. `None`: it could not be read which rule is concerned.
    pub(crate) fn refuses(&self, rule: Option<usize>) -> bool {
        match rule {
            Some(index) => {
                let rule = self.rules.rules().get(index);
                rule.is_some_and(|rule| {
                    rule.on_unsupported == OnUnsupported::Refuse && rule.mode == Mode::Rewrite
                })
            }
            None => self.rewrites_any(),
        }
    }

    /// The same of one statement: on a table without fence the server would number its rows among the rule's keys.
    pub(crate) fn must_refuse(&self, rule: Option<usize>, what: Unsupported) -> bool {
        self.refuses(rule)
            || what == Unsupported::TableAhead
            || rule.is_some_and(|index| self.rules.has_ahead(index))
    }

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
        if self.must_refuse(rule, what) {
            return self.refuse_unsupported(query.header, rule, what).into();
        }
        if let Some(step) = self.enter(query.header, rule) {
            return step.into();
        }
        if self.pending_last_insert_id.is_some() {
            return self.update_last_insert_id(false).into();
        }
        self.last_insert_id = None;
        self.note(rule, StatementOutcome::Passed(what.label()));
        self.note(rule, StatementOutcome::Native(None));
        if let Some(rule) = rule {
            self.watch_fence(rule);
        }
        self.pass(query.header, query.bytes, Shape::Results, after)
    }

    pub(crate) fn refuse_unsupported(
        &mut self,
        header: Header,
        rule: Option<usize>,
        what: Unsupported,
    ) -> Step {
        if what == Unsupported::TableAhead {
            return self.wait_ahead(header, rule);
        }
        self.note(rule, StatementOutcome::Refused(what.label()));
        let message =
            format!("keywright cannot fill in a key exactly in {what}, on a table with a rule");
        self.refuse(header, Cause::StatementUnsupported, &message)
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
        self.note(
            rule,
            StatementOutcome::Refused(Unsupported::TableAhead.label()),
        );
        let message = "keywright gives this table no keys now: it has no fence, and ids of its own that are still to be given; the \
                       proxy's log says what keeps it from going on above them";
        self.refuse(header, Cause::TableAhead, message)
    }

    pub(crate) fn refuse_ambiguous_id(&mut self, header: Header, rule: usize) -> Step {
        self.note(Some(rule), StatementOutcome::Refused("ambiguous_id"));
        let message = "keywright cannot tell the first id of several rows with IGNORE or ON DUPLICATE KEY UPDATE";
        self.refuse(header, Cause::StatementUnsupported, message)
    }

    /// What a rule refuses of a statement, whatever its parameters are.
    pub(crate) fn refuse_plan(
        &mut self,
        header: Header,
        index: usize,
        plan: &Plan,
    ) -> Option<Step> {
        let rule = self.rules.rules().get(index).cloned()?;
        if plan.explicit() && rule.on_explicit == OnExplicit::Refuse {
            return Some(self.refuse_explicit(header, index));
        }
        let wants_keys = plan.keys() > 0 || !plan.key_parameters().is_empty();
        let is_refused =
            wants_keys && has_ambiguous_id(plan) && rule.on_ambiguous_id == OnAmbiguousId::Refuse;
        is_refused.then(|| self.refuse_ambiguous_id(header, index))
    }

    pub(crate) fn refuse_explicit(&mut self, header: Header, index: usize) -> Step {
        self.note(Some(index), StatementOutcome::Refused("explicit"));
        let message = self.may_not_be_given(index);
        self.refuse(header, Cause::KeyExplicit, &message)
    }

    /// The same, of a statement that was answered already.
    pub(crate) fn tell_explicit(&mut self, index: usize, sequence: u8) {
        self.note(Some(index), StatementOutcome::Refused("explicit"));
        let message = self.may_not_be_given(index);
        write_error(Cause::KeyExplicit, &message, sequence, &mut self.down);
    }

    fn may_not_be_given(&self, index: usize) -> String {
        let rule = self.rules.rules().get(index);
        let column = rule.map_or("", |rule| &rule.column);
        format!("the value of key column \"{column}\" is generated and may not be given")
    }

    /// The server's error for an execution whose values do not fit its statement.
    pub(crate) fn tell_malformed(&mut self, header: Header) -> Step {
        self.forget_command();
        self.leave();
        let payload = error_payload(MALFORMED, "HY000", "Malformed communication packet");
        let sequence = header.sequence.wrapping_add(1);
        write_packet(&payload, sequence, &mut self.down);
        Step::Consumed(header.total())
    }

    /// Answers the command at the front with an error; the upstream never sees it.
    pub(crate) fn refuse(&mut self, header: Header, cause: Cause, message: &str) -> Step {
        self.forget_command();
        self.leave();
        write_error(
            cause,
            message,
            header.sequence.wrapping_add(1),
            &mut self.down,
        );
        Step::Consumed(header.total())
    }
}
