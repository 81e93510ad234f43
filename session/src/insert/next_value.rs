//! `SELECT NEXT VALUE FOR` a table with a rule: keys are put into a SELECT, which the server answers.

use keywright_core::KeyBatch;
use keywright_rewrite::{NEXT_VALUES_MAX, NextValue, Unsupported};
use keywright_wire::answer::{End, Shape};
use keywright_wire::packets::write_query;

use crate::answer::after::After;
use crate::client::decode::Undecoded;
use crate::client::text::Query;
use crate::connection::Connection;
use crate::job::{Job, Next, Turn, Work};
use crate::judge::{Facts, Verdict, decide};
use crate::rules::KeyColumnState;
use crate::server::question::{KeyThere, Question};
use crate::step::{KeyFailure, KeyRequest, StatementOutcome, Step};

/// One under way, until it goes out.
#[derive(Debug)]
struct Asked {
    rule: usize,
    next: NextValue,
    /// Bytes of attributes before its text, and of the text.
    front: usize,
    text_bytes: usize,
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

/// Who gives what is asked for.
pub(crate) enum Giver {
    /// This rule.
    Rule(usize),
    /// This rule, if it could.
    Not(usize, Unsupported),
    /// No rule: the server is to answer.
    Server,
    /// This must be known first.
    Ask(Question),
}

impl Connection {
    /// Who gives the keys for a table, now.
    pub(crate) fn giver(&self, next: &NextValue) -> Giver {
        let table = &next.table;
        let index = match self.rule_now(table) {
            Ok(Some(index)) => index,
            Ok(None) => return Giver::Server,
            Err(question) => return Giver::Ask(question),
        };
        let Some(rule) = self.rules.rules().get(index) else {
            return Giver::Server;
        };
        if let Some(what) = self.rules.unsupported(index) {
            return Giver::Not(index, what);
        }
        let (schema, name) = self.named(table);
        let is_seen = self.rules.key_column_state(schema, name) != KeyColumnState::NoTable
            || self.context.has_key(schema, name);
        match self.key_there(table, index, rule) {
            Err(question) => return Giver::Ask(question),
            // A sequence of the server's has no such column either.
            Ok(KeyThere::No) => return Giver::Server,
            Ok(KeyThere::Yes | KeyThere::Untold) if !is_seen => return Giver::Server,
            Ok(KeyThere::Narrow) => return Giver::Not(index, Unsupported::KeyNarrow),
            Ok(KeyThere::Yes | KeyThere::Untold) => {}
        }
        if self.rules.is_ahead(index, schema, name) {
            return Giver::Not(index, Unsupported::TableAhead);
        }
        let verdict = decide(self.policy(Some(index)), &Facts::of_next_value());
        match verdict {
            Verdict::Rewrite if next.count > NEXT_VALUES_MAX => {
                Giver::Not(index, Unsupported::NextValues)
            }
            Verdict::Rewrite => Giver::Rule(index),
            Verdict::Leave(what) => Giver::Not(index, what),
            // While it observes, nothing is changed.
            Verdict::Observe(_) | Verdict::Pass | Verdict::Refuse(_) => Giver::Server,
        }
    }

    /// A statement that asks for keys, sent as text.
    pub(crate) fn next_value(&mut self, query: Query<'_>, next: NextValue) -> Next {
        let rule = match self.giver(&next) {
            Giver::Rule(rule) => rule,
            Giver::Not(rule, what) => return self.unsupported(query, Some(rule), what),
            Giver::Server => return self.pass_query(query, After::Nothing),
            Giver::Ask(question) => return self.ask(&question).into(),
        };
        if let Some(step) = self.enter(query.header, Some(rule)) {
            return step.into();
        }
        let step = self.next_keys_step(rule, &next);
        let asked = Asked {
            rule,
            next,
            front: query.front,
            text_bytes: query.text.len(),
            phase: Phase::Keys,
        };
        Job::Work(Box::new(asked)).with(step)
    }

    /// Asks for the keys. Nobody computes one from another, so they need not be consecutive.
    pub(crate) fn next_keys_step(&self, rule: usize, next: &NextValue) -> Step {
        Step::Keys(KeyRequest {
            rule: self.rules.configured(rule),
            count: next.count,
            contiguous: false,
        })
    }

    /// The keys, if they are as many as were asked for and none is too large for the rule.
    pub(crate) fn next_keys(
        &self,
        rule: usize,
        next: &NextValue,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<KeyBatch, KeyFailure> {
        let keys = keys?;
        match self.rules.rules().get(rule) {
            Some(rule) => self.in_bits(rule, keys, next.count),
            None => Ok(keys),
        }
    }
}

impl Work for Asked {
    fn turn(&self) -> Turn {
        match self.phase {
            Phase::Keys => Turn::Keys,
            Phase::Ready(_) => Turn::Command,
        }
    }

    fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.phase = Phase::Ready(keys);
    }

    /// The command is still at the front: it goes out with its keys.
    fn on_client(
        mut self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        let keys = match std::mem::replace(&mut self.phase, Phase::Keys) {
            Phase::Keys => return Ok(Job::Work(self).with(Step::Blocked)),
            Phase::Ready(keys) => keys,
        };
        // It came whole before; only where there is no memory any more it cannot be sent.
        let Some(whole) = connection.whole_command(bytes) else {
            return connection.command(bytes);
        };
        let query = whole.query(self.front, self.text_bytes);
        connection.forget_command();
        let rule = Some(self.rule);
        let keys = match connection.next_keys(self.rule, &self.next, keys) {
            Ok(keys) => keys,
            Err(failure) => {
                let step = connection.refuse(query.header, failure.cause, &failure.message);
                return Ok(step.into());
            }
        };
        let attributes = match query.attributes() {
            // The server numbers its answer as that to one packet.
            Ok(_) if query.header.sequence != 0 => Err(Unsupported::Longer),
            Ok(_) if keys.len() != self.next.count => Err(Unsupported::NotAsPlanned),
            attributes => attributes,
        };
        let attributes = match attributes {
            Ok(attributes) => attributes,
            Err(what) => {
                let step = connection.refuse_unsupported(query.header, rule, what);
                return Ok(step.into());
            }
        };
        let text = self.next.text(&keys, &connection.context.modes);
        write_query(attributes, &text, &mut connection.up);
        connection.answer.expect(Shape::Results);
        connection.note(rule, StatementOutcome::Rewritten);
        Ok(Job::Passing(After::Nothing).with(Step::Consumed(query.header.total())))
    }

    fn on_reply(
        self: Box<Self>,
        _connection: &mut Connection,
        _end: Option<End>,
        _answer: &[u8],
    ) -> Job {
        Job::Work(self)
    }
}
