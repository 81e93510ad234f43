//! INSERT … SELECT on a table with a rule. The number of rows is known only afterwards. So a statement with too few keys fails as a
//! whole and is tried again with more.
//!
//! The client's command stays at the front of its bytes until the last try is answered.

use std::sync::Arc;

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{
    LastInsertIdUse, QueryPlan, Unsupported, is_out_of_range, last_insert_id_use,
};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::{Header, write_packet};
use keywright_wire::packets::{error_text, single_ok};
use keywright_wire::protocol::COM_QUERY;

use crate::answer::after::After;
use crate::answer::errors::write_error;
use crate::answer::last_insert_id::{Reply, names_row_count};
use crate::connection::Connection;
use crate::insert::native::{LeavesOut, Native};
use crate::job::{Gather, Job, Next};
use crate::rules::{Mode, OnAmbiguousId, OnExplicit, Rule};
use crate::step::{KeyFailure, StatementOutcome, Step};

/// Rows that the first try has keys for, if so many can be had.
pub(crate) const ROWS_FIRST: u64 = 64;

/// How many times more rows the next try has keys for: from a snowflake's 64 by way of 512 to the 4096 of a tick.
pub(crate) const GROWTH: u64 = 8;

/// Why a statement with an unknown number of rows is not tried twice where a failed try may leave something behind.
pub(crate) const NOT_REPEATABLE: &str = "of an unknown number of rows where a failed try may leave something behind: \
    a trigger, a table not known to be InnoDB, a view that calls functions";

/// A statement and what its next or present try has keys for.
#[derive(Debug)]
pub(crate) struct Attempt {
    rule: usize,
    plan: Arc<QueryPlan>,
    rows: u64,
}

/// What becomes of an INSERT … SELECT.
pub(crate) enum SelectDecision {
    /// It has a key of its own.
    Leave,
    /// It may have none of its own.
    Explicit,
    /// Which rows go in is not known, and the rule refuses that.
    AmbiguousId,
    /// Its rows may be more than the first try has keys for, and it must not be tried twice.
    Once(&'static str),
    Try,
}

impl SelectDecision {
    /// What an observing rule counts.
    pub(crate) fn observed(&self) -> Option<StatementOutcome> {
        match self {
            Self::Leave => None,
            Self::Explicit => Some(StatementOutcome::Passed("explicit")),
            Self::AmbiguousId => Some(StatementOutcome::Passed("ambiguous_id")),
            Self::Once(what) => Some(StatementOutcome::Passed(
                Unsupported::SelectWith(what).label(),
            )),
            Self::Try => Some(StatementOutcome::Observed),
        }
    }
}

pub(crate) fn decision(rule: &Rule, plan: &QueryPlan) -> SelectDecision {
    if plan.explicit() {
        return match rule.on_explicit {
            OnExplicit::Refuse => SelectDecision::Explicit,
            OnExplicit::Keep => SelectDecision::Leave,
        };
    }
    if plan.may_skip() && !plan.is_single() && rule.on_ambiguous_id == OnAmbiguousId::Refuse {
        return SelectDecision::AmbiguousId;
    }
    if plan.rows_max().is_some_and(|rows| rows <= ROWS_FIRST) {
        return SelectDecision::Try;
    }
    if plan.has_effects() {
        SelectDecision::Once("with a call that must not be carried out twice")
    } else if !rule.repeatable {
        SelectDecision::Once(NOT_REPEATABLE)
    } else {
        SelectDecision::Try
    }
}

impl Connection {
    /// An INSERT … SELECT that was read.
    pub(crate) fn select(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        index: usize,
        plan: QueryPlan,
    ) -> Next {
        let Some(rule) = self.rules.rules().get(index).cloned() else {
            return self.pass_query(header, bytes, text, After::Nothing);
        };
        if let Some(step) = self.enter(header, Some(index)) {
            return step.into();
        }
        let decision = decision(&rule, &plan);
        if rule.mode == Mode::Observe {
            if let Some(what) = decision.observed() {
                self.note(Some(index), what);
            }
            let leaves_out = match plan.may_skip() {
                true => LeavesOut::Some,
                false => LeavesOut::Nothing,
            };
            let native = Native {
                rule: index,
                leaves_out,
                rows_max: None,
            };
            return self.pass_native_query(header, bytes, text, native);
        }
        match decision {
            SelectDecision::Leave => return self.pass_query(header, bytes, text, After::Nothing),
            SelectDecision::Explicit => return self.refuse_explicit(header, index, &rule).into(),
            SelectDecision::AmbiguousId => return self.refuse_ambiguous_id(header, index).into(),
            SelectDecision::Once(what) => {
                let what = Unsupported::SelectWith(what);
                return self.unsupported(header, bytes, Some(index), what);
            }
            SelectDecision::Try => {}
        }
        // What is read may be a view of it.
        if self.pending_last_insert_id.is_some()
            && last_insert_id_use(text, &self.context.modes) != LastInsertIdUse::Nothing
        {
            return self.update_last_insert_id(names_row_count(text)).into();
        }
        self.first_attempt(index, Arc::new(plan))
    }

    /// Asks for the keys of the first try.
    pub(crate) fn first_attempt(&mut self, rule: usize, plan: Arc<QueryPlan>) -> Next {
        let rows = self.rows_max(rule, &plan).min(ROWS_FIRST);
        self.stage.query = Some(Attempt { rule, plan, rows });
        self.ask_keys(rule, rows)
    }

    /// Whether the first try is the last one, however it ends.
    pub(crate) fn is_tried_once(&self, rule: usize, plan: &QueryPlan) -> bool {
        self.rows_max(rule, plan) <= ROWS_FIRST
    }

    /// Rows that the last try has keys for; one at least, as the statement needs a text.
    fn rows_max(&self, rule: usize, plan: &QueryPlan) -> u64 {
        let limit = self.facts.limits.select_rows_max;
        let limit = match self.rows_at_once(rule, plan) {
            Some(rows) => rows.min(limit),
            None => limit,
        };
        plan.rows_max().map_or(limit, |rows| rows.min(limit)).max(1)
    }

    /// The most rows that can get keys at the spacing that the client expects. `None` where a try must not fail: there the source
    /// refuses too many before anything is executed.
    fn rows_at_once(&self, rule: usize, plan: &QueryPlan) -> Option<u64> {
        let rule = self.rules.rules().get(rule)?;
        let may_fail = rule.repeatable && !plan.has_effects();
        let between = rule.keys_max.saturating_sub(1) / self.context.increment.max(1);
        may_fail.then(|| between.saturating_add(1))
    }

    /// The next try: asks for its keys, or carries it out with them.
    pub(crate) fn attempt(&mut self, header: Header, bytes: &[u8], text: &[u8]) -> Next {
        let Some(keys) = self.stage.keys.take() else {
            return self.ask_attempt_keys();
        };
        match self.attempt_keys(keys) {
            Ok(keys) => self.send_attempt(header, bytes, text, &keys),
            Err(failure) => self.refuse(header, failure.cause, &failure.message).into(),
        }
    }

    /// Asks for the keys of the next try.
    pub(crate) fn ask_attempt_keys(&mut self) -> Next {
        let Some(attempt) = &self.stage.query else {
            return self.malformed().into();
        };
        let (index, rows) = (attempt.rule, attempt.rows);
        self.ask_keys(index, rows)
    }

    /// The keys of the next try.
    pub(crate) fn attempt_keys(
        &mut self,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<KeyBatch, KeyFailure> {
        match &self.stage.query {
            Some(attempt) => self.spread_over(attempt.rule, attempt.rows, keys),
            None => keys,
        }
    }

    fn spread_over(
        &self,
        index: usize,
        rows: u64,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<KeyBatch, KeyFailure> {
        match self.rules.rules().get(index) {
            Some(rule) => keys.and_then(|keys| self.spread(rule, keys, rows)),
            None => keys,
        }
    }

    fn send_attempt(&mut self, header: Header, bytes: &[u8], text: &[u8], keys: &KeyBatch) -> Next {
        let Some(attempt) = &self.stage.query else {
            return self.malformed().into();
        };
        let index = attempt.rule;
        let attributes = match self.attributes(bytes) {
            Ok(attributes) => attributes,
            Err(what) => return self.refuse_unsupported(header, Some(index), what).into(),
        };
        let mut payload = Vec::with_capacity(text.len().saturating_add(256));
        payload.push(COM_QUERY);
        payload.extend_from_slice(attributes);
        if attempt.plan.splice(text, keys, &mut payload).is_err() {
            let what = Unsupported::SelectWith("with keys that are not evenly spaced");
            return self.refuse_unsupported(header, Some(index), what).into();
        }
        let reply = self.reply_of_query(&attempt.plan, keys);
        write_packet(&payload, 0, &mut self.up);
        self.answer.expect(Shape::Results);
        Job::Gathering(Gather::Select(reply)).with(Step::Consumed(0))
    }

    /// A try was answered: with the error for too few keys, or with the answer that the client gets.
    pub(crate) fn answer_select(&mut self, reply: &Reply, end: Option<End>, answer: &[u8]) -> Job {
        let too_few =
            error_text(answer).is_some_and(|(number, message)| is_out_of_range(number, message));
        if too_few && self.grow() {
            return Job::Idle;
        }
        let stage = self.take_stage();
        let rule = stage.query.as_ref().map(|attempt| attempt.rule);
        if too_few {
            self.note(rule, StatementOutcome::Refused("insert_select_rows"));
            let rows = stage.query.map_or(0, |attempt| attempt.rows);
            let why = match rows < self.facts.limits.select_rows_max {
                true => "as many as can have keys at once",
                false => "select_rows_max",
            };
            let message = format!(
                "keywright: INSERT … SELECT of more than {rows} rows on a table with a rule ({why})"
            );
            write_error(Cause::StatementUnsupported, &message, 1, &mut self.down);
            return Job::Answered;
        }
        self.note(rule, StatementOutcome::Rewritten);
        match single_ok(answer) {
            // No row went in, so there is no id, but the SELECT may have set LAST_INSERT_ID() itself.
            Some((_, _, done)) if done.affected_rows == 0 => {
                self.last_insert_id = None;
                self.down.extend_from_slice(answer);
            }
            Some(_) | None => {
                self.answer_insert(reply, end, answer);
            }
        }
        Job::Answered
    }

    /// More keys for the next try; false if there may be no more.
    fn grow(&mut self) -> bool {
        let Some(mut attempt) = self.stage.query.take() else {
            return false;
        };
        let most = self.rows_max(attempt.rule, &attempt.plan);
        let before = attempt.rows;
        attempt.rows = before.saturating_mul(GROWTH).min(most);
        let grown = attempt.rows > before;
        self.stage.query = Some(attempt);
        grown
    }
}
