//! `SELECT NEXT VALUE FOR` a table with a rule: keys are put into a SELECT, which the server answers.

use keywright_core::KeyBatch;
use keywright_rewrite::{NEXT_VALUES_MAX, NextValue, Unsupported};
use keywright_wire::answer::{End, Shape};
use keywright_wire::packets::write_query;

use crate::answer::after::After;
use crate::client::decode::Undecoded;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::keys::Awaited;
use crate::job::{Job, Next, Turn, Work};
use crate::judge::{Facts, Verdict, decide};
use crate::rules::KeyColumnState;
use crate::server::question::{KeyThere, Question};
use crate::step::{KeyFailure, KeyRequest, StatementOutcome, Step};

/// One under way, until it goes out.
#[derive(Debug)]
struct NextValueJob {
    rule: usize,
    next: NextValue,
    source: Source,
    keys: Awaited,
}

/// Where the statement comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// It is a text, behind so many bytes of attributes.
    Text { front: usize },
    /// It executes the statement of this number.
    Prepared(u32),
}

/// Where the keys for a table come from.
pub(crate) enum KeysFrom {
    /// This rule.
    Rule(usize),
    /// This rule, if it could.
    Unsupported(usize, Unsupported),
    /// No rule: the server is to answer.
    Server,
    /// This must be known first.
    Ask(Question),
}

impl Connection {
    /// Where the keys for a table come from, now.
    pub(crate) fn next_value_from(&mut self, next: &NextValue) -> KeysFrom {
        self.context.note_defined(self.rules.schema().defined());
        let table = &next.table;
        let index = match self.rule_now(table) {
            Ok(Some(index)) => index,
            Ok(None) => return KeysFrom::Server,
            Err(question) => return KeysFrom::Ask(question),
        };
        let Some(rule) = self.rules.rules().get(index) else {
            return KeysFrom::Server;
        };
        if let Some(what) = self.rules.unsupported(index) {
            return KeysFrom::Unsupported(index, what);
        }
        let (schema, name) = self.named(table);
        let is_seen = self.rules.key_column_state(schema, name) != KeyColumnState::NoTable
            || self.context.has_key(schema, name);
        match self.key_there(table, index, rule) {
            Err(question) => return KeysFrom::Ask(question),
            // A sequence of the server's has no such column either.
            Ok(KeyThere::No) => return KeysFrom::Server,
            // Unlike an INSERT, which brings its key in case that the table comes before it.
            Ok(_) if self.table_report.missing => return KeysFrom::Server,
            Ok(KeyThere::Yes | KeyThere::Untold) if !is_seen => return KeysFrom::Server,
            Ok(KeyThere::Narrow | KeyThere::Text) => {
                return KeysFrom::Unsupported(index, Unsupported::KeyNarrow);
            }
            Ok(KeyThere::Yes | KeyThere::Untold) => {}
        }
        if self.rules.is_ahead(index, schema, name) {
            return KeysFrom::Unsupported(index, Unsupported::TableAhead);
        }
        match self.unshown(table, index) {
            Ok(None) => {}
            Ok(Some(what)) => return KeysFrom::Unsupported(index, what),
            Err(question) => return KeysFrom::Ask(question),
        }
        match decide(self.policy(Some(index)), &Facts::of_next_value()) {
            Verdict::Rewrite if next.count > NEXT_VALUES_MAX => {
                KeysFrom::Unsupported(index, Unsupported::NextValues)
            }
            Verdict::Rewrite => KeysFrom::Rule(index),
            Verdict::Leave(what) => KeysFrom::Unsupported(index, what),
            // While it observes, nothing is changed.
            Verdict::Observe(_) | Verdict::Pass | Verdict::Refuse(_) => KeysFrom::Server,
        }
    }

    /// A statement that asks for keys, sent as text.
    pub(crate) fn next_value(&mut self, query: Query<'_>, next: NextValue) -> Next {
        let rule = match self.next_value_from(&next) {
            KeysFrom::Rule(rule) => rule,
            KeysFrom::Unsupported(rule, what) => return self.unsupported(query, Some(rule), what),
            KeysFrom::Server => return self.pass_query(query, After::Nothing),
            KeysFrom::Ask(question) => return self.ask(&question).into(),
        };
        if let Some(step) = self.enter(query.header, Some(rule)) {
            return step.into();
        }
        let source = Source::Text { front: query.front };
        self.await_next_value(rule, next, source)
    }

    /// The same of one that was prepared with this number.
    pub(crate) fn next_value_of(&self, rule: usize, next: NextValue, id: u32) -> Next {
        self.await_next_value(rule, next, Source::Prepared(id))
    }

    /// Asks for the keys. Nobody computes one from another, so they need not be consecutive.
    fn await_next_value(&self, rule: usize, next: NextValue, source: Source) -> Next {
        let step = Step::Keys(KeyRequest {
            rule: self.rules.configured(rule),
            count: next.count,
            contiguous: false,
        });
        let job = NextValueJob {
            rule,
            next,
            source,
            keys: Awaited::Asked,
        };
        Job::Work(Box::new(job)).with(step)
    }

    /// Sends the text with these keys in it. `Err`: it was refused.
    fn send_next_value_text(
        &mut self,
        query: Query<'_>,
        rule: usize,
        (next, keys): (&NextValue, &KeyBatch),
    ) -> Result<(), Step> {
        let attributes = match query.attributes() {
            // The server numbers its answer as that to one packet.
            Ok(_) if query.header.sequence != 0 => Err(Unsupported::Longer),
            attributes => attributes,
        };
        let attributes =
            attributes.map_err(|what| self.refuse_unsupported(query.header, Some(rule), what))?;
        let text = next.text(keys, &self.context.modes);
        write_query(attributes, &text, &mut self.up);
        self.answer.expect(Shape::Results);
        Ok(())
    }
}

impl NextValueJob {
    /// The keys, if they are as many as were asked for and none is too large for the rule.
    fn checked(
        &self,
        connection: &Connection,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<KeyBatch, KeyFailure> {
        match connection.rules.rules().get(self.rule) {
            Some(rule) => keys.and_then(|keys| connection.in_bits(rule, keys, self.next.count)),
            None => keys,
        }
    }
}

impl Work for NextValueJob {
    fn turn(&self) -> Turn {
        self.keys.turn()
    }

    fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.keys = Awaited::Here(keys);
    }

    /// The command is still at the front: it goes out with its keys.
    fn on_client(
        mut self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        let Some(keys) = self.keys.take() else {
            return Ok(Job::Work(self).with(Step::Blocked));
        };
        let whole = connection.whole_command(bytes)?;
        let header = whole.header;
        connection.forget_command();
        let keys = match self.checked(connection, keys) {
            Ok(keys) => keys,
            Err(failure) => {
                return Ok(connection.refuse_without_keys(header, &failure).into());
            }
        };
        let sent = if keys.len() != self.next.count {
            let what = Unsupported::NotAsPlanned;
            Err(connection.refuse_unsupported(header, Some(self.rule), what))
        } else {
            match self.source {
                Source::Text { front } => {
                    let query = connection.query_of(&whole, front);
                    connection.send_next_value_text(query, self.rule, (&self.next, &keys))
                }
                Source::Prepared(id) => {
                    connection.send_next_value_execution(&whole, (self.rule, id), &keys)
                }
            }
        };
        if let Err(step) = sent {
            return Ok(step.into());
        }
        connection.note(Some(self.rule), StatementOutcome::Rewritten);
        Ok(Job::passing(After::Nothing).with(Step::Consumed(header.total())))
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
