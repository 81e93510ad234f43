//! `SELECT NEXT VALUE FOR` a table with a rule as a prepared statement: each key is a parameter of a SELECT, which the server answers.

use std::collections::BTreeSet;

use keywright_core::KeyBatch;
use keywright_rewrite::{KeyForm, NextValue, TableName, Unsupported};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::{Header, Joined, joined, write_packet};
use keywright_wire::packets::write_command;
use keywright_wire::params::{Execution, Param};
use keywright_wire::protocol::COM_STMT_PREPARE;
use keywright_wire::values::BadValue;

use crate::answer::after::After;
use crate::client::attributes::UNKNOWN_TYPE;
use crate::client::decode::Undecoded;
use crate::client::text::Query;
use crate::connection::Connection;
use crate::insert::next_value::Giver;
use crate::job::{Job, Next, Turn, Work};
use crate::prepared::param_keys::KeyValues;
use crate::prepared::prepare::Preparing;
use crate::prepared::statements::{Changes, NextStatement};
use crate::step::{KeyFailure, StatementOutcome, Step};

/// An execution under way, until it goes out.
#[derive(Debug)]
struct Asked {
    /// The statement's number.
    id: u32,
    rule: usize,
    next: NextValue,
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

impl Connection {
    /// COM_STMT_PREPARE of a statement that asks for keys.
    pub(crate) fn prepare_next_value(&mut self, query: Query<'_>, next: &NextValue) -> Next {
        let rule = match self.giver(next) {
            Giver::Rule(rule) => rule,
            Giver::Not(rule, what) => return self.unsupported_prepare(query, Some(rule), what),
            Giver::Server => return self.prepare_passed(query, Changes::Nothing),
            Giver::Ask(question) => return self.ask(&question).into(),
        };
        if self.statements.is_full() {
            return self.refuse_statement(query.header).into();
        }
        let Some(held) = self.hold(query.text.len()) else {
            return self.refuse_texts(query.header).into();
        };
        let form = self.form_of(rule);
        write_command(COM_STMT_PREPARE, &next.prepared(form), &mut self.up);
        self.answer.expect(Shape::Prepare);
        self.forget_command();
        let (schema, table) = self.named(&next.table);
        let mut next = next.clone();
        next.table = TableName {
            schema: Some(schema.to_vec()),
            table: table.to_vec(),
        };
        let statement = NextStatement {
            next,
            form,
            _held: held,
        };
        Job::Work(Box::new(Preparing::Next(statement))).with(Step::Consumed(query.header.total()))
    }

    fn form_of(&self, rule: usize) -> KeyForm {
        let rule = self.rules.rules().get(rule);
        rule.map_or(KeyForm::Integer, |rule| rule.form)
    }

    /// COM_STMT_EXECUTE of one.
    pub(crate) fn execute_next_value(
        &mut self,
        header: Header,
        bytes: &[u8],
        id: u32,
    ) -> Result<Next, Undecoded> {
        let header = match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, _) => header,
            Joined::More(at_least) => return Err(Undecoded::More { at_least }),
            Joined::TooLong => return Ok(self.refuse_long_execution().into()),
        };
        if !self.context.known {
            return Ok(self.ask_context().into());
        }
        let Some(statement) = self.statements.nexts.get(&id) else {
            let what = Unsupported::NotAsPlanned;
            return Ok(self.refuse_unsupported(header, None, what).into());
        };
        let (next, form) = (statement.next.clone(), statement.form);
        let rule = match self.giver(&next) {
            Giver::Rule(rule) if self.form_of(rule) == form => rule,
            Giver::Not(rule, what) => {
                return Ok(self.refuse_unsupported(header, Some(rule), what).into());
            }
            Giver::Ask(question) => return Ok(self.ask(&question).into()),
            Giver::Rule(_) | Giver::Server => {
                let what = Unsupported::TableChanged;
                return Ok(self.refuse_unsupported(header, None, what).into());
            }
        };
        if let Some(step) = self.enter(header, Some(rule)) {
            return Ok(step.into());
        }
        let step = self.next_keys_step(rule, &next);
        let phase = Phase::Keys;
        let asked = Asked {
            id,
            rule,
            next,
            phase,
        };
        Ok(Job::Work(Box::new(asked)).with(step))
    }
}

impl Asked {
    /// Sends it with its keys. `Err`: it was refused.
    fn send(
        &self,
        connection: &mut Connection,
        (header, rest): (Header, &[u8]),
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<(), Step> {
        let rule = Some(self.rule);
        let keys = connection
            .next_keys(self.rule, &self.next, keys)
            .map_err(|failure| connection.refuse(header, failure.cause, &failure.message))?;
        let has_attributes = connection.has_attributes();
        let execution = match Execution::read(rest, 0, None, &BTreeSet::new(), has_attributes) {
            Ok(execution) => execution,
            Err(BadValue::Malformed) => return Err(connection.tell_malformed(header)),
            Err(BadValue::Type) => {
                return Err(connection.refuse_unsupported(header, rule, UNKNOWN_TYPE));
            }
        };
        let values = KeyValues::new(&keys);
        let count = usize::try_from(self.next.count).unwrap_or(usize::MAX);
        let params: Option<Vec<Param<'_>>> = (0..count).map(|index| values.param(index)).collect();
        let Some(mut params) = params else {
            let what = Unsupported::NotAsPlanned;
            return Err(connection.refuse_unsupported(header, rule, what));
        };
        // Attributes come behind parameters.
        params.extend(execution.params.iter().cloned());
        let mut sent = Vec::new();
        execution.write(self.id, &params, &mut sent);
        write_packet(&sent, 0, &mut connection.up);
        connection.answer.expect(execution.shape());
        Ok(())
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
        let header = whole.header;
        connection.forget_command();
        let rest = whole.payload.get(4..).unwrap_or_default();
        if let Err(step) = self.send(connection, (header, rest), keys) {
            return Ok(step.into());
        }
        connection.note(Some(self.rule), StatementOutcome::Rewritten);
        Ok(Job::Passing(After::Nothing).with(Step::Consumed(header.total())))
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
