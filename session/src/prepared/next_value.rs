//! `SELECT NEXT VALUE FOR` a table with a rule as a prepared statement: each key is a parameter of a SELECT, which the server answers.

use std::collections::BTreeSet;

use keywright_core::KeyBatch;
use keywright_rewrite::{KeyForm, NextValue, TableName, Unsupported};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{Header, Joined, joined, write_packet};
use keywright_wire::packets::write_command;
use keywright_wire::params::{Execution, Param};
use keywright_wire::protocol::COM_STMT_PREPARE;
use keywright_wire::values::BadValue;

use crate::client::attributes::UNKNOWN_TYPE;
use crate::client::decode::Undecoded;
use crate::client::text::{Query, Whole};
use crate::connection::Connection;
use crate::insert::next_value::KeysFrom;
use crate::job::{Job, Next};
use crate::prepared::param_keys::KeyValues;
use crate::prepared::passed_statement::Changes;
use crate::prepared::prepare::Preparing;
use crate::prepared::statements::NextValueStatement;
use crate::step::Step;

impl Connection {
    /// COM_STMT_PREPARE of a statement that asks for keys.
    pub(crate) fn prepare_next_value(&mut self, query: Query<'_>, next: &NextValue) -> Next {
        let rule = match self.next_value_from(next) {
            KeysFrom::Rule(rule) => rule,
            KeysFrom::Unsupported(rule, what) => {
                return self.unsupported_prepare(query, Some(rule), what);
            }
            KeysFrom::Server => return self.prepare_passed(query, Changes::Nothing),
            KeysFrom::Ask(question) => return self.ask(&question).into(),
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
        let statement = NextValueStatement {
            next,
            form,
            _held: held,
        };
        Job::Work(Box::new(Preparing::NextValue(statement)))
            .with(Step::Consumed(query.header.total()))
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
        let Some(statement) = self.statements.next_values.get(&id) else {
            let what = Unsupported::NotAsPlanned;
            return Ok(self.refuse_unsupported(header, None, what).into());
        };
        let (next, form) = (statement.next.clone(), statement.form);
        let rule = match self.next_value_from(&next) {
            KeysFrom::Rule(rule) if self.form_of(rule) == form => rule,
            KeysFrom::Unsupported(rule, what) => {
                return Ok(self.refuse_unsupported(header, Some(rule), what).into());
            }
            KeysFrom::Ask(question) => return Ok(self.ask(&question).into()),
            KeysFrom::Rule(_) | KeysFrom::Server => {
                let what = Unsupported::TableChanged;
                return Ok(self.refuse_unsupported(header, None, what).into());
            }
        };
        if let Some(step) = self.enter(header, Some(rule)) {
            return Ok(step.into());
        }
        Ok(self.next_value_of(rule, next, id))
    }

    /// Sends an execution with these keys as parameters. `Err`: it was refused.
    pub(crate) fn send_next_value_execution(
        &mut self,
        whole: &Whole<'_>,
        (rule, id): (usize, u32),
        keys: &KeyBatch,
    ) -> Result<(), Step> {
        let header = whole.header;
        let rest = whole.payload.get(4..).unwrap_or_default();
        let has_attributes = self.has_attributes();
        let execution = match Execution::read(rest, 0, None, &BTreeSet::new(), has_attributes) {
            Ok(execution) => execution,
            Err(BadValue::Malformed) => return Err(self.tell_malformed(header)),
            Err(BadValue::Type) => {
                return Err(self.refuse_unsupported(header, Some(rule), UNKNOWN_TYPE));
            }
        };
        let values = KeyValues::new(keys);
        let count = usize::try_from(keys.len()).unwrap_or(usize::MAX);
        let mut params: Vec<Param<'_>> = (0..count).map_while(|at| values.param(at)).collect();
        // Attributes come behind parameters.
        params.extend(execution.params.iter().cloned());
        let mut sent = Vec::new();
        execution.write(id, &params, &mut sent);
        write_packet(&sent, 0, &mut self.up);
        self.answer.expect(execution.shape());
        Ok(())
    }
}
