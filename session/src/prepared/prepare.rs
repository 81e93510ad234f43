//! COM_STMT_PREPARE of an INSERT on a table with a rule: it is prepared with room for its keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_core::Cause;
use keywright_rewrite::{Kind, Plan, RowsFrom, StateChange, Unread, Unsupported, kind};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::{HEADER_BYTES, Header, Joined, joined};
use keywright_wire::packets::{without_injected, write_close, write_command};
use keywright_wire::protocol::COM_STMT_PREPARE;

use crate::answer::after::After;
use crate::answer::reply::names_row_count;
use crate::client::attributes::beginning_end;
use crate::client::decode::Undecoded;
use crate::client::text::{Query, Whole};
use crate::connection::Connection;
use crate::insert::plan::Planned;
use crate::job::{Job, Next, Turn, Work};
use crate::judge::{Facts, Verdict, decide};
use crate::prepared::passed_statement::{Changes, Passed, SqlMode};
use crate::prepared::select_statement::SelectStatement;
use crate::prepared::statements::{
    ComputedStatement, LAST_PREPARED, Made, NextValueStatement, Statement,
};
use crate::step::Step;

/// A statement whose PREPARE is under way, with room for its keys.
#[derive(Debug)]
pub(crate) enum Preparing {
    /// It has rows.
    Rows(Statement),
    /// Its rows come from a query.
    Query(SelectStatement),
    /// It asks for keys.
    NextValue(NextValueStatement),
}

impl Work for Preparing {
    fn turn(&self) -> Turn {
        Turn::Upstream
    }

    fn on_client(
        self: Box<Self>,
        _connection: &mut Connection,
        _bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        Ok(Job::Work(self).with(Step::Blocked))
    }

    /// The upstream's answer has come whole.
    fn on_reply(
        self: Box<Self>,
        connection: &mut Connection,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        match *self {
            Self::Rows(mut statement) => {
                let hidden = statement.hidden();
                let Some(made) = statement.variants.first_mut() else {
                    return Job::Idle;
                };
                if let Some(number) = connection.tell_prepared(end, answer, &hidden) {
                    made.number = number;
                    connection.statements.ours.insert(number, statement);
                }
            }
            Self::Query(select) => {
                if let Some(number) = connection.tell_prepared(end, answer, &select.injected()) {
                    connection.statements.selects.insert(number, select);
                }
            }
            Self::NextValue(next) => {
                if let Some(number) = connection.tell_prepared(end, answer, &next.injected()) {
                    connection.statements.next_values.insert(number, next);
                }
            }
        }
        Job::Idle
    }
}

impl Connection {
    pub(crate) fn prepare(&mut self, header: Header, bytes: &[u8]) -> Next {
        let whole = match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => Whole::new(header, bytes, payload),
            Joined::More(at_least) => return Step::More { at_least }.into(),
            Joined::TooLong if self.memory_full => return self.refuse_long("").into(),
            Joined::TooLong => return self.long_prepare(header, bytes),
        };
        let query = whole.to_prepare();
        // Until it has succeeded: a statement that is refused, or fails, also counts as the last one.
        self.statements.last = LAST_PREPARED;
        match self.is_beyond_reading(query.text) {
            Ok(false) => {}
            Ok(true) => return self.unsupported_prepare(query, None, Unsupported::Blank),
            Err(step) => return step.into(),
        }
        let kind = kind(query.text, &self.context.modes);
        if kind == Kind::NextValue {
            match self.read_next_value(query.text) {
                Err(()) => return self.ask_context().into(),
                Ok(Some(next)) => return self.prepare_next_value(query, &next),
                Ok(None) => {}
            }
        }
        let facts = kind.facts();
        match facts.rows {
            RowsFrom::Written if !self.may_be_ruled(query.text) => {
                self.prepare_passed(query, Changes::Nothing)
            }
            RowsFrom::Written | RowsFrom::File | RowsFrom::BehindSet if !self.context.known => {
                self.ask_context().into()
            }
            RowsFrom::Written => self.prepare_insert(query),
            RowsFrom::Never
            | RowsFrom::File
            | RowsFrom::BehindSet
            | RowsFrom::OfText
            | RowsFrom::Prepared
            | RowsFrom::Block
            | RowsFrom::Unseen
            | RowsFrom::Blank => self.prepare_other(query, facts.changes),
        }
    }

    /// COM_STMT_PREPARE of a statement that is no INSERT, but may have one in it.
    fn prepare_other(&mut self, query: Query<'_>, changes: StateChange) -> Next {
        let hidden = self
            .prepared_load(query.text)
            .or_else(|| self.hidden_behind_set(query.text));
        match hidden {
            Some((rule, what)) => self.unsupported_prepare(query, rule, what),
            None => {
                let change = self.changes(query.text, changes);
                self.prepare_passed(query, change)
            }
        }
    }

    fn prepare_insert(&mut self, query: Query<'_>) -> Next {
        match self.plan(query.text) {
            Ok(Planned::Plan(index, plan)) => self.prepare_rows(query, (index, plan), None),
            Ok(Planned::Query(index, plan)) => self.prepare_select(query, index, plan),
            Ok(Planned::Pass) => self.prepare_passed(query, Changes::Nothing),
            Ok(Planned::Keyless(keyless)) => {
                let noted = Passed {
                    keyless: Some(keyless),
                    ..self.passed(query.text, Changes::Nothing)
                };
                self.prepare_noted(query, noted)
            }
            Ok(Planned::Ask(question)) => self.ask(&question).into(),
            Err((rule, what)) => self.prepare_computed(query, rule, what),
        }
    }

    /// COM_STMT_PREPARE of an INSERT of rows that was read. `computed`: its text is the session's own.
    pub(crate) fn prepare_rows(
        &mut self,
        query: Query<'_>,
        (index, plan): (usize, Plan),
        computed: Option<Box<ComputedStatement>>,
    ) -> Next {
        let wants_keys = plan.keys() > 0 || !plan.key_parameters().is_empty();
        let facts = Facts::of_rows(&plan, wants_keys);
        match decide(self.policy(Some(index)), &facts) {
            Verdict::Rewrite => {}
            // By another order of columns its keys would be other values.
            Verdict::Pass if plan.by_order() => {}
            Verdict::Pass => {
                let by_mode = plan.by_mode().then_some(index);
                return self.prepare_explicit(query, (by_mode, None));
            }
            Verdict::Observe(what) => {
                if let Some(what) = what {
                    self.note(Some(index), what);
                }
                return self.prepare_observed(query, (index, &plan));
            }
            Verdict::Leave(what) => return self.unsupported_prepare(query, Some(index), what),
            Verdict::Refuse(reason) => {
                return self.refuse_for(query.header, Some(index), reason).into();
            }
        }
        if self.statements.is_full() {
            return self.refuse_statement(query.header).into();
        }
        self.send_prepare(query, (index, plan), computed)
    }

    /// Prepares it with room for its keys.
    fn send_prepare(
        &mut self,
        query: Query<'_>,
        (index, plan): (usize, Plan),
        computed: Option<Box<ComputedStatement>>,
    ) -> Next {
        let variant = plan.variant(None);
        let own = computed
            .as_ref()
            .map_or(0, |computed| computed.held_bytes());
        let bytes = query.text.len().saturating_add(plan.held_bytes());
        let Some(held) = self.hold(bytes.saturating_add(own)) else {
            return self.refuse_texts(query.header).into();
        };
        let mut prepared = match plan.prepare(query.text, variant, self.spacing_of(index)) {
            Ok(prepared) => prepared,
            Err(Unread::Unsupported(what)) => {
                return self.unsupported_prepare(query, Some(index), what);
            }
            Err(Unread::Refused) => {
                return self.prepare_passed(query, Changes::Nothing);
            }
        };
        write_command(COM_STMT_PREPARE, &prepared.text, &mut self.up);
        prepared.text = Vec::new();
        self.answer.expect(Shape::Prepare);
        let statement = Statement {
            rule: index,
            text: query.text.to_vec(),
            database: self.context.database.clone(),
            _held: Arc::new(held),
            plan,
            sql_mode: self.sql_mode(),
            variants: vec![Made {
                variant,
                spacing: self.spacing_of(index),
                number: 0,
                prepared,
                is_outdated: false,
            }],
            types: None,
            long_data: BTreeSet::new(),
            counts: names_row_count(query.text),
            schema: self.judged_at(),
            is_passed: false,
            computed,
        };
        self.forget_command();
        Job::Work(Box::new(Preparing::Rows(statement))).with(Step::Consumed(query.header.total()))
    }

    /// A statement that is too long to gather: it is passed on unless it may be for a table with a rule.
    fn long_prepare(&mut self, header: Header, bytes: &[u8]) -> Next {
        let at_least = beginning_end(header);
        if bytes.len() < at_least {
            return Step::More { at_least }.into();
        }
        let head = bytes.get(HEADER_BYTES + 1..at_least).unwrap_or_default();
        let may_bring_rows = match kind(head, &self.context.modes).facts().rows {
            RowsFrom::Written => self.may_be_ruled(head),
            RowsFrom::File | RowsFrom::BehindSet => true,
            // The server prepares none of these.
            RowsFrom::OfText | RowsFrom::Prepared | RowsFrom::Block => false,
            RowsFrom::Never | RowsFrom::Unseen | RowsFrom::Blank => false,
        };
        if may_bring_rows && self.rewrites_any() {
            return self.refuse_long(
                "keywright: statement to be prepared on a table with a rule is longer than rewrite_bytes_max",
            ).into();
        }
        let after = After::Prepared(Box::default());
        self.pass(header, bytes, Shape::Prepare, after)
    }

    pub(crate) fn refuse_statement(&mut self, header: Header) -> Step {
        let message = "keywright: too many prepared statements on tables with rules";
        self.refuse(header, Cause::MemoryFull, message)
    }

    pub(crate) fn refuse_texts(&mut self, header: Header) -> Step {
        let message = "keywright: statement buffer limit reached by texts of prepared statements (memory_bytes_max)";
        self.refuse(header, Cause::MemoryFull, message)
    }

    /// What sql_mode says of keys.
    pub(crate) fn sql_mode(&self) -> SqlMode {
        let modes = &self.context.modes;
        (modes.no_auto_value_on_zero, modes.strict)
    }

    /// Sends the client the answer to its PREPARE, without the parameters that were put in. Returns the statement's number if it
    /// succeeded.
    fn tell_prepared(&mut self, end: Option<End>, answer: &[u8], injected: &[u16]) -> Option<u32> {
        let Some(End::Prepared { statement, .. }) = end else {
            self.down.extend_from_slice(answer);
            return None;
        };
        let deprecates = self.deprecates_eof();
        if injected.is_empty() {
            self.down.extend_from_slice(answer);
        } else if without_injected(answer, injected, deprecates, &mut self.down).is_none() {
            write_close(statement, &mut self.up);
            self.tell_out_of_order();
            return None;
        }
        self.statements.last = statement;
        Some(statement)
    }
}
