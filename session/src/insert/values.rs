//! An INSERT or REPLACE of rows on a table with a rule: whether it gets keys, and the job that puts them in.

use std::sync::Arc;

use keywright_core::KeyBatch;
use keywright_rewrite::{
    LastInsertId, LastInsertIdUse, Plan, QueryPlan, Unsupported, last_insert_id_use,
};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{HEADER_BYTES, make_packet};
use keywright_wire::protocol::COM_QUERY;

use crate::answer::after::After;
use crate::answer::last_insert_id::names_row_count;
use crate::client::text::Query;
use crate::connection::Connection;
use crate::insert::native::Native;
use crate::insert::plan::Planned;
use crate::insert::refuse::observed;
use crate::job::{Job, Next, Turn};
use crate::rules::{Mode, OnAmbiguousId, OnExplicit};
use crate::step::{KeyFailure, StatementOutcome, Step};

/// An INSERT of rows under way, until it goes out.
#[derive(Debug)]
pub(crate) struct Insert {
    rule: usize,
    plan: Plan,
    /// Bytes of attributes before its text.
    front: usize,
    phase: Phase,
}

/// What is next.
#[derive(Debug)]
enum Phase {
    /// The driver looks for keys.
    Keys,
    /// It has them, or knows why there are none.
    Ready(Result<KeyBatch, KeyFailure>),
}

/// What is to become of an INSERT.
pub(crate) enum Decided {
    /// It gets keys for its rows.
    Keys(usize, Plan),
    /// Its rows come from a query.
    Query(usize, QueryPlan),
    /// Something else.
    Not(Next),
}

impl From<Next> for Decided {
    fn from(next: Next) -> Self {
        Self::Not(next)
    }
}

impl From<Step> for Decided {
    fn from(step: Step) -> Self {
        Self::Not(step.into())
    }
}

impl Connection {
    /// An INSERT or REPLACE, sent as text.
    pub(crate) fn insert(&mut self, query: Query<'_>) -> Next {
        match self.decide(query, query.text) {
            Decided::Keys(rule, plan) => {
                let step = self.keys_step(rule, plan.keys());
                let insert = Insert {
                    rule,
                    plan,
                    front: query.front,
                    phase: Phase::Keys,
                };
                Job::Insert(insert).with(step)
            }
            Decided::Query(rule, plan) => self.select(query, rule, plan),
            Decided::Not(next) => next,
        }
    }

    /// What becomes of an INSERT for which the client sent this text: the INSERT itself, or an EXECUTE of it.
    pub(crate) fn decide(&mut self, query: Query<'_>, insert: &[u8]) -> Decided {
        let (index, plan) = match self.plan(insert) {
            Ok(Planned::Plan(index, plan)) => (index, plan),
            Ok(Planned::Query(index, plan)) => return Decided::Query(index, plan),
            Ok(Planned::Pass | Planned::Keyless(..)) => {
                return self.pass_query(query, After::Nothing).into();
            }
            Ok(Planned::Ask(question)) => return self.ask(&question).into(),
            Err((rule, what)) => return self.unsupported(query, rule, what).into(),
        };
        let rules = Arc::clone(&self.rules);
        let Some(rule) = rules.rules().get(index) else {
            return self.pass_query(query, After::Nothing).into();
        };
        if let Some(step) = self.enter(query.header, Some(index)) {
            return step.into();
        }
        if rule.mode == Mode::Observe {
            if let Some(what) = observed(rule, &plan) {
                self.note(Some(index), what);
            }
            let next = match plan.returning() {
                true => {
                    self.note_native(index, Native::of(index, &plan).rows_max);
                    self.watch_fence(index);
                    self.pass_query(query, After::Nothing)
                }
                false => self.pass_native_query(query, Native::of(index, &plan)),
            };
            return next.into();
        }
        if plan.explicit() && rule.on_explicit == OnExplicit::Refuse {
            return self.refuse_explicit(query.header, index, rule).into();
        }
        if plan.keys() == 0 {
            return self.pass_query(query, After::Nothing).into();
        }
        if has_ambiguous_id(&plan) && rule.on_ambiguous_id == OnAmbiguousId::Refuse {
            return self.refuse_ambiguous_id(query.header, index).into();
        }
        // This reads the whole query.text, so it is asked last.
        let sees = self.pending_last_insert_id.is_some()
            && last_insert_id_use(insert, &self.context.modes) == LastInsertIdUse::Sees;
        let count = plan.keys();
        let last_insert_id = self.last_insert_id_of(&plan, count);
        if self.needs_last_insert_id(sees, last_insert_id, count) {
            return self
                .update_last_insert_id(sees && names_row_count(insert))
                .into();
        }
        let plan = match last_insert_id {
            LastInsertId::Literal => plan.unwrapped(),
            LastInsertId::Wrapped | LastInsertId::None => plan,
        };
        Decided::Keys(index, plan)
    }

    fn splice(
        &mut self,
        query: Query<'_>,
        (index, plan): (usize, Plan),
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Next {
        self.forget_command();
        let rules = Arc::clone(&self.rules);
        let Some(rule) = rules.rules().get(index) else {
            return self.malformed().into();
        };
        let keys = keys.and_then(|keys| self.spread(rule, keys, plan.keys()));
        let keys = match keys {
            Ok(keys) => keys,
            Err(failure) => {
                return self
                    .refuse(query.header, failure.cause, &failure.message)
                    .into();
            }
        };
        let in_place = self.in_place(query, &plan, &keys);
        if in_place.is_none()
            && let Err(what) = self.write_spliced(query, (&plan, &keys))
        {
            return self
                .refuse_unsupported(query.header, Some(index), what)
                .into();
        }
        self.answer.expect(Shape::Results);
        self.note(Some(index), StatementOutcome::Rewritten);
        let reply = self.reply(&plan, plan.last_insert_id(), &keys);
        let job = Job::of_reply(reply, plan.returning());
        if let Some(how) = in_place {
            self.rewrite_in_place(query, plan, how);
        }
        job.with(Step::Consumed(query.header.total()))
    }

    /// Writes the command with its keys to the upstream's output.
    fn write_spliced(
        &mut self,
        query: Query<'_>,
        (plan, keys): (&Plan, &KeyBatch),
    ) -> Result<(), Unsupported> {
        let attributes = query.attributes()?;
        let start = self.up.len();
        self.up
            .reserve(HEADER_BYTES + 1 + plan.spliced_bytes(query.text));
        self.up.extend([0; HEADER_BYTES]);
        self.up.push(COM_QUERY);
        self.up.extend_from_slice(attributes);
        if plan.splice(query.text, keys, &mut self.up).is_err() {
            self.up.truncate(start);
            return Err(Unsupported::Unknown("the statement's head"));
        }
        if make_packet(start, &mut self.up) != query.header.sequence {
            self.up.truncate(start);
            return Err(Unsupported::Longer);
        }
        Ok(())
    }
}

impl Insert {
    pub(crate) fn turn(&self) -> Turn {
        match self.phase {
            Phase::Keys => Turn::Keys,
            Phase::Ready(_) => Turn::Command,
        }
    }

    pub(crate) fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.phase = Phase::Ready(keys);
    }

    /// The command is still at the front: it goes out with its keys.
    pub(crate) fn on_client(self, connection: &mut Connection, bytes: &[u8]) -> Next {
        let Phase::Ready(keys) = self.phase else {
            return Job::Insert(self).with(Step::Blocked);
        };
        // It came whole before; only where there is no memory any more it cannot be sent.
        let Some(whole) = connection.whole_command(bytes) else {
            return connection.command(bytes);
        };
        let query = connection.query_of(&whole, self.front);
        connection.splice(query, (self.rule, self.plan), keys)
    }
}

/// Whether it may stay unknown which rows go in, and so which id to report.
pub(crate) fn has_ambiguous_id(plan: &Plan) -> bool {
    plan.rows() > 1
        && plan.last_insert_id() != LastInsertId::None
        && (plan.ignore() || plan.on_duplicate())
}
