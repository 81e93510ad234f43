//! COM_STMT_PREPARE of an INSERT on a table with a rule: it is prepared with room for its keys. And the commands that only name
//! a statement.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_core::Cause;
use keywright_rewrite::{Kind, Plan, Unread, Unsupported, kind, without_terminator};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::{HEADER_BYTES, Header, Joined, joined};
use keywright_wire::packets::{without_injected, write_close, write_command};
use keywright_wire::protocol::COM_STMT_PREPARE;

use crate::answer::after::After;
use crate::answer::last_insert_id::names_row_count;
use crate::client::attributes::beginning_end;
use crate::client::kinds::is_opaque;
use crate::connection::Connection;
use crate::insert::native::Native;
use crate::insert::plan::Planned;
use crate::insert::refuse::observed;
use crate::job::{Job, Next};
use crate::prepared::by_order::ByOrder;
use crate::prepared::select_prepared::SelectStatement;
use crate::prepared::statements::{
    ByMode, Changes, LAST_PREPARED, Made, Observed, ObservedInsert, Passed, SqlMode, Statement,
};
use crate::rules::{Mode, OnExplicit};
use crate::server::context::is_harmless_set;
use crate::step::{StatementOutcome, Step};

/// A statement whose PREPARE is under way, with room for its keys.
#[derive(Debug)]
pub(crate) enum Preparing {
    /// It has rows.
    Rows(Statement),
    /// Its rows come from a query.
    Query(SelectStatement),
}

impl Preparing {
    /// The upstream's answer has come whole.
    pub(crate) fn on_reply(self, connection: &mut Connection, end: Option<End>, answer: &[u8]) {
        match self {
            Self::Rows(mut statement) => {
                let Some(made) = statement.variants.first_mut() else {
                    return;
                };
                let injected: Vec<u16> = made.prepared.injected.iter().map(|one| one.at).collect();
                if let Some(number) = connection.tell_prepared(end, answer, &injected) {
                    made.number = number;
                    connection.statements.ours.insert(number, statement);
                }
            }
            Self::Query(select) => {
                if let Some(number) = connection.tell_prepared(end, answer, &select.injected()) {
                    connection.statements.selects.insert(number, select);
                }
            }
        }
    }
}

impl Connection {
    pub(crate) fn prepare(&mut self, header: Header, bytes: &[u8]) -> Next {
        let (header, text) = match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, text) => (header, text),
            Joined::More(at_least) => return Step::More { at_least }.into(),
            Joined::TooLong if self.memory_full => return self.refuse_long("").into(),
            Joined::TooLong => return self.long_prepare(header, bytes),
        };
        let text = without_terminator(&text);
        // Until it has succeeded: a statement that is refused, or fails, also counts as the last one.
        self.statements.last = LAST_PREPARED;
        match self.is_beyond_reading(text) {
            Ok(false) => {}
            Ok(true) => {
                let what = Unsupported::Blank;
                return self.unsupported_prepare(header, bytes, text, None, what);
            }
            Err(step) => return step.into(),
        }
        match kind(text, &self.context.modes) {
            Kind::Insert | Kind::Replace => {}
            Kind::LoadData | Kind::SetStatement if !self.context.known => {
                return self.ask_context().into();
            }
            other => {
                let hidden = self
                    .prepared_load(text)
                    .or_else(|| self.hidden_behind_set(text));
                if let Some((rule, what)) = hidden {
                    return self.unsupported_prepare(header, bytes, text, rule, what);
                }
                let change = self.changes(text, other);
                return self.prepare_passed(header, bytes, text, change);
            }
        }
        if !self.may_be_ruled(text) {
            return self.prepare_passed(header, bytes, text, Changes::Nothing);
        }
        if !self.context.known {
            return self.ask_context().into();
        }
        let (index, plan) = match self.plan(text) {
            Ok(Planned::Plan(index, plan)) => (index, plan),
            Ok(Planned::Query(index, plan)) => {
                return self.prepare_select(header, bytes, text, index, plan);
            }
            Ok(Planned::Pass) => {
                return self.prepare_passed(header, bytes, text, Changes::Nothing);
            }
            Ok(Planned::Keyless(keyless)) => {
                let noted = Passed {
                    keyless: Some(keyless),
                    ..self.passed(text, Changes::Nothing)
                };
                return self.prepare_noted(header, bytes, noted);
            }
            Ok(Planned::Ask(question)) => return self.ask(&question).into(),
            Err((rule, what)) => return self.unsupported_prepare(header, bytes, text, rule, what),
        };
        let Some(rule) = self.rules.rules().get(index).cloned() else {
            return self.prepare_passed(header, bytes, text, Changes::Nothing);
        };
        let nothing = plan.keys() == 0 && plan.key_parameters().is_empty();
        if rule.mode == Mode::Observe {
            if let Some(what) = observed(&rule, &plan) {
                self.note(Some(index), what);
            }
            return self.prepare_observed(header, bytes, text, (index, &plan));
        }
        // By another order of columns its keys would be other values.
        if nothing && rule.on_explicit == OnExplicit::Keep && !plan.by_order() {
            let by_mode = plan.by_mode().then_some(index);
            return self.prepare_explicit(header, bytes, text, (by_mode, None));
        }
        if let Some(step) = self.refuse_plan(header, index, &plan) {
            return step.into();
        }
        if self.statements.is_full() {
            return self.refuse_statement(header).into();
        }
        let variant = plan.variant(None);
        let Some(held) = self.hold(text.len().saturating_add(plan.held_bytes())) else {
            return self.refuse_texts(header).into();
        };
        let mut prepared = match plan.prepare(text, variant, self.spacing_of(index)) {
            Ok(prepared) => prepared,
            Err(Unread::Unsupported(what)) => {
                return self.unsupported_prepare(header, bytes, text, Some(index), what);
            }
            Err(Unread::Refused) => {
                return self.prepare_passed(header, bytes, text, Changes::Nothing);
            }
        };
        write_command(COM_STMT_PREPARE, &prepared.text, &mut self.up);
        prepared.text = Vec::new();
        self.answer.expect(Shape::Prepare);
        let statement = Statement {
            rule: index,
            text: text.to_vec(),
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
            counts: names_row_count(text),
            schema: self.judged_at(),
            is_passed: false,
        };
        self.forget_command();
        Job::Prepare(Box::new(Preparing::Rows(statement))).with(Step::Consumed(header.total()))
    }

    /// A statement that is too long to gather: it is passed on unless it may be for a table with a rule.
    fn long_prepare(&mut self, header: Header, bytes: &[u8]) -> Next {
        let at_least = beginning_end(header);
        if bytes.len() < at_least {
            return Step::More { at_least }.into();
        }
        let head = bytes.get(HEADER_BYTES + 1..at_least).unwrap_or_default();
        let may_bring_rows = match kind(head, &self.context.modes) {
            Kind::Insert | Kind::Replace => self.may_be_ruled(head),
            other => matches!(other, Kind::LoadData | Kind::SetStatement),
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

    /// Prepares a statement that is passed on whenever it is executed.
    pub(crate) fn prepare_passed(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        change: Changes,
    ) -> Next {
        let noted = self.passed(text, change);
        self.prepare_noted(header, bytes, noted)
    }

    /// Prepares an INSERT that brings its own keys; `by_mode` is its rule if they are that because of what sql_mode is, `by_order` what
    /// is kept of it if they are that because of the order of columns.
    pub(crate) fn prepare_explicit(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        (by_mode, by_order): (Option<usize>, Option<ByOrder>),
    ) -> Next {
        let sql_mode = self.sql_mode();
        let noted = Passed {
            by_mode: by_mode.map(|rule| ByMode { rule, sql_mode }),
            by_order,
            ..self.passed(text, Changes::Nothing)
        };
        self.prepare_noted(header, bytes, noted)
    }

    /// What sql_mode says of keys.
    pub(crate) fn sql_mode(&self) -> SqlMode {
        let modes = &self.context.modes;
        (modes.no_auto_value_on_zero, modes.strict)
    }

    /// What is noted of a statement that is passed on.
    fn passed(&self, text: &[u8], change: Changes) -> Passed {
        Passed {
            effect: self.effect(text),
            change,
            named: self.rules_named_in(text),
            ..Passed::default()
        }
    }

    /// Prepares an INSERT as it is, whose rule only observes: it may rewrite when the statement is executed.
    fn prepare_observed(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        (rule, plan): (usize, &Plan),
    ) -> Next {
        // An INSERT that needs no key may need one in another order of columns.
        let Some(held) = self.hold(text.len().saturating_add(plan.held_bytes())) else {
            return self.refuse_texts(header).into();
        };
        let insert = ObservedInsert::Rows {
            text: text.to_vec(),
            database: self.context.database.clone(),
            parameters: usize::try_from(plan.parameters()).unwrap_or(usize::MAX),
            returning: plan.returning(),
            native: Native::of(rule, plan),
            held: Arc::new(held),
        };
        self.note_observed(header, bytes, text, Observed { rule, insert })
    }

    /// Prepares an INSERT as it is, whose rule only observes.
    pub(crate) fn note_observed(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        observed: Observed,
    ) -> Next {
        let noted = Passed {
            observed: Some(Arc::new(observed)),
            ..self.passed(text, Changes::Nothing)
        };
        self.prepare_noted(header, bytes, noted)
    }

    fn prepare_noted(&mut self, header: Header, bytes: &[u8], noted: Passed) -> Next {
        let after = After::Prepared(Box::new(noted));
        self.pass(header, bytes, Shape::Prepare, after)
    }

    /// What an execution of a statement that is no INSERT changes.
    fn changes(&self, text: &[u8], kind: Kind) -> Changes {
        match kind {
            Kind::Set if is_harmless_set(text) => Changes::Nothing,
            Kind::Set | Kind::Use => Changes::Unknown,
            Kind::CreateTemporary => match self.tables_named(text) {
                Some(made) => Changes::Tables {
                    dropped: Vec::new(),
                    made,
                },
                None => Changes::Unknown,
            },
            Kind::DropTable => match self.tables_named(text) {
                Some(dropped) => Changes::Tables {
                    dropped,
                    made: Vec::new(),
                },
                None => Changes::Unknown,
            },
            Kind::Ddl => Changes::Defined,
            other if is_opaque(other) => Changes::Anything,
            _ => Changes::Nothing,
        }
    }

    pub(crate) fn unsupported_prepare(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        rule: Option<usize>,
        what: Unsupported,
    ) -> Next {
        if self.must_refuse(rule, what) {
            return self.refuse_unsupported(header, rule, what).into();
        }
        self.note(rule, StatementOutcome::Passed(what.label()));
        match rule.filter(|rule| !self.rewrites(*rule)) {
            Some(rule) => {
                let insert = ObservedInsert::Unsupported(what);
                self.note_observed(header, bytes, text, Observed { rule, insert })
            }
            None => self.prepare_passed(header, bytes, text, Changes::Nothing),
        }
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
            self.malformed();
            return None;
        }
        self.statements.last = statement;
        Some(statement)
    }
}
