//! INSERT … SELECT on a table with a rule. The number of rows is known only afterwards. So a statement with too few keys fails as a
//! whole and is tried again with more.
//!
//! The client's command stays at the front of its bytes until the last try is answered.

use std::sync::Arc;

use keywright_core::KeyBatch;
use keywright_rewrite::{
    LastInsertIdUse, QueryPlan, SelectConstruct, Unsupported, is_cut_off, is_out_of_range, kind,
    last_insert_id_use,
};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::{Header, write_as_many};
use keywright_wire::packets::{error_text, single_ok};
use keywright_wire::protocol::COM_QUERY;

use crate::answer::after::After;
use crate::answer::reply::{Reply, names_row_count};
use crate::client::decode::Undecoded;
use crate::client::query::{Query, Whole};
use crate::connection::Connection;
use crate::insert::leaves_out::{LeavesOut, Native};
use crate::job::{Job, Next, Turn, Work};
use crate::judge::{Facts, ROWS_FIRST, Reason, Verdict, decide, decide_unread};
use crate::step::{KeyFailure, StatementOutcome, Step};

/// How many times more rows the next try has keys for: from a snowflake's 64 by way of 512 to the 4096 of a tick.
pub(crate) const GROWTH: u64 = 8;

/// An INSERT … SELECT under way.
#[derive(Debug)]
pub(crate) struct Select {
    rule: usize,
    plan: Arc<QueryPlan>,
    source: Source,
    /// Rows that the next or present try has keys for.
    rows: u64,
    phase: Phase,
}

/// Where the statement comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// It is a text, behind so many bytes of attributes.
    Text { front: usize },
    /// It executes the statement of this number.
    Prepared(u32),
}

/// What is next, or under way.
#[derive(Debug)]
enum Phase {
    /// The driver looks for the keys of a try.
    Keys,
    /// It has them, or knows why there are none.
    Ready(Result<KeyBatch, KeyFailure>),
    /// The try went out.
    Sent(Reply),
    /// It had too few keys.
    Again,
}

impl Connection {
    /// An INSERT … SELECT that was read.
    pub(crate) fn select(&mut self, query: Query<'_>, index: usize, plan: QueryPlan) -> Next {
        if let Some(step) = self.enter(query.header, Some(index)) {
            return step.into();
        }
        match decide(self.policy(Some(index)), &Facts::of_query(&plan)) {
            Verdict::Rewrite => {}
            Verdict::Pass if plan.is_guarded() => {
                if let Some(what) = self.forbids_guard(index) {
                    return self.unsupported(query, Some(index), what);
                }
                let kind = kind(query.text, &self.context.modes);
                return self.guarded_query((kind, query), index, &plan);
            }
            Verdict::Pass => return self.pass_query(query, After::Nothing),
            Verdict::Observe(what) => {
                if let Some(what) = what {
                    self.note(Some(index), what);
                }
                let native = Native {
                    rule: index,
                    leaves_out: match plan.may_skip() {
                        true => LeavesOut::Some,
                        false => LeavesOut::Nothing,
                    },
                    rows_max: None,
                };
                return self.pass_native_query(query, native);
            }
            Verdict::Leave(what) => return self.unsupported(query, Some(index), what),
            Verdict::Refuse(reason) => {
                return self.refuse_for(query.header, Some(index), reason).into();
            }
        }
        // What is read may be a view of it.
        if self.pending_last_insert_id.is_some()
            && last_insert_id_use(query.text, &self.context.modes) != LastInsertIdUse::Nothing
        {
            return self
                .update_last_insert_id(names_row_count(query.text))
                .into();
        }
        let source = Source::Text { front: query.front };
        self.try_select(index, Arc::new(plan), source)
    }

    /// What keeps a statement from going out with a guard: a row without a key may be found after others have gone in, or the rule says
    /// that it goes out as it is.
    pub(crate) fn forbids_guard(&self, rule: usize) -> Option<Unsupported> {
        let missing = Unsupported::SelectWith(SelectConstruct::KeyMissing);
        let of = self.rules.rules().get(rule);
        if decide_unread(self.policy(Some(rule)), missing).is_ok() {
            return Some(missing);
        }
        match of.is_some_and(|rule| rule.repeatable) {
            true => None,
            false => Some(Unsupported::SelectWith(SelectConstruct::NotRepeatable)),
        }
    }

    /// Asks for the keys of the first try.
    pub(crate) fn try_select(&mut self, rule: usize, plan: Arc<QueryPlan>, source: Source) -> Next {
        let rows = self.rows_max(rule, &plan).min(ROWS_FIRST);
        let phase = Phase::Keys;
        let select = Select {
            rule,
            plan,
            source,
            rows,
            phase,
        };
        Box::new(select).ask_keys(self)
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
}

impl Work for Select {
    fn turn(&self) -> Turn {
        match self.phase {
            Phase::Keys => Turn::Keys,
            Phase::Ready(_) | Phase::Again => Turn::Command,
            Phase::Sent(_) => Turn::Upstream,
        }
    }

    fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.phase = Phase::Ready(keys);
    }

    /// The command is still at the front: the next try.
    fn on_client(
        mut self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        let whole = connection.whole_command(bytes)?;
        Ok(match std::mem::replace(&mut self.phase, Phase::Again) {
            Phase::Again => self.ask_keys(connection),
            Phase::Ready(keys) => self.send(connection, &whole, keys),
            phase @ (Phase::Keys | Phase::Sent(_)) => {
                self.phase = phase;
                Job::Work(self).with(Step::Blocked)
            }
        })
    }

    /// A try was answered: with the error for too few keys, or with the answer that the client gets.
    fn on_reply(
        mut self: Box<Self>,
        connection: &mut Connection,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        let error = error_text(answer);
        let too_few = error.is_some_and(|(number, message)| is_out_of_range(number, message));
        if too_few && self.grow(connection) {
            self.phase = Phase::Again;
            return Job::Work(self);
        }
        connection.forget_command();
        if too_few {
            self.refuse_rows(connection, answer);
            return Job::Answered;
        }
        if error.is_some_and(|(number, message)| is_cut_off(number, message)) {
            connection.tell_cut_off(Some(self.rule), answer);
            return Job::Answered;
        }
        connection.note(Some(self.rule), StatementOutcome::Rewritten);
        match (single_ok(answer), &self.phase) {
            // No row went in, so there is no id, but the SELECT may have set LAST_INSERT_ID() itself.
            (Some((_, _, done)), _) if done.affected_rows == 0 => {
                connection.last_insert_id = None;
                connection.down.extend_from_slice(answer);
            }
            (_, Phase::Sent(reply)) => connection.answer_insert(reply, end, answer),
            (_, Phase::Keys | Phase::Ready(_) | Phase::Again) => {}
        }
        Job::Answered
    }

    fn is_half_way(&self) -> bool {
        true
    }
}

impl Select {
    fn ask_keys(mut self: Box<Self>, connection: &Connection) -> Next {
        self.phase = Phase::Keys;
        let step = connection.keys_step(self.rule, self.rows);
        Job::Work(self).with(step)
    }

    fn send(
        mut self: Box<Self>,
        connection: &mut Connection,
        whole: &Whole<'_>,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Next {
        let keys = match connection.rules.rules().get(self.rule) {
            Some(rule) => keys.and_then(|keys| connection.spread(rule, keys, self.rows)),
            None => keys,
        };
        let sent = match self.source {
            Source::Text { front } => {
                let query = connection.query_of(whole, front);
                connection.send_select_text(query, self.rule, &self.plan, keys)
            }
            Source::Prepared(id) => connection.send_select_execution(whole, id, keys),
        };
        match sent {
            Ok(keys) => {
                self.phase = Phase::Sent(connection.reply_of_query(&self.plan, &keys));
                Job::Work(self).with(Step::Blocked)
            }
            Err(step) => step.into(),
        }
    }

    /// More keys for the next try; false if there may be no more.
    fn grow(&mut self, connection: &Connection) -> bool {
        let most = connection.rows_max(self.rule, &self.plan);
        let before = self.rows;
        self.rows = before.saturating_mul(GROWTH).min(most);
        self.rows > before
    }

    /// In place of the server's error.
    fn refuse_rows(&self, connection: &mut Connection, error: &[u8]) {
        let sequence = Header::read(error).map_or(1, |header| header.sequence);
        let rows = self.rows;
        let is_limit = rows >= connection.facts.limits.select_rows_max;
        connection.tell_refused(
            Some(self.rule),
            Reason::SelectRows { rows, is_limit },
            sequence,
        );
    }
}

impl Connection {
    /// Sends a try of a statement that came as text. `Err`: it was refused.
    fn send_select_text(
        &mut self,
        query: Query<'_>,
        rule: usize,
        plan: &QueryPlan,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<KeyBatch, Step> {
        let keys = keys.map_err(|failure| self.refuse_without_keys(query.header, &failure))?;
        let attributes = query
            .attributes()
            .map_err(|what| self.refuse_unsupported(query.header, Some(rule), what))?;
        let mut sent = Vec::with_capacity(query.text.len().saturating_add(256));
        sent.push(COM_QUERY);
        sent.extend_from_slice(attributes);
        if plan.splice(query.text, &keys, &mut sent).is_err() {
            let what = Unsupported::SelectWith(SelectConstruct::UnevenKeys);
            return Err(self.refuse_unsupported(query.header, Some(rule), what));
        }
        if !write_as_many(&sent, query.header.sequence, &mut self.up) {
            return Err(self.refuse_unsupported(query.header, Some(rule), Unsupported::Longer));
        }
        self.answer.expect(Shape::Results);
        Ok(keys)
    }
}
