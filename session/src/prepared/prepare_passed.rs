//! COM_STMT_PREPARE of statements that are passed on as their clients wrote them: what is noted of them.

use std::sync::Arc;

use keywright_rewrite::{Plan, QueryPlan, StateChange, Unsupported, use_target};
use keywright_wire::answer::Shape;
use keywright_wire::packets::write_command;
use keywright_wire::protocol::COM_STMT_PREPARE;

use crate::answer::after::After;
use crate::answer::reply::{Effect, names_row_count};
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::leaves_out::Native;
use crate::job::{Job, Next};
use crate::judge::decide_unread;
use crate::prepared::passed_statement::{
    ByMode, ByOrder, Changes, Observed, ObservedInsert, Passed,
};
use crate::server::context::is_harmless_set;
use crate::step::{StatementOutcome, Step};

impl Connection {
    /// Prepares a statement that is passed on whenever it is executed.
    pub(crate) fn prepare_passed(&mut self, query: Query<'_>, change: Changes) -> Next {
        let noted = self.passed(query.text, change);
        self.prepare_noted(query, noted)
    }

    /// Prepares an INSERT that brings its own keys; `by_mode` is its rule if they are that because of what sql_mode is, `by_order` what
    /// is kept of it if they are that because of the order of columns.
    pub(crate) fn prepare_explicit(
        &mut self,
        query: Query<'_>,
        (by_mode, by_order): (Option<usize>, Option<ByOrder>),
    ) -> Next {
        let sql_mode = self.sql_mode();
        let noted = Passed {
            by_mode: by_mode.map(|rule| ByMode { rule, sql_mode }),
            by_order,
            ..self.passed(query.text, Changes::Nothing)
        };
        self.prepare_noted(query, noted)
    }

    /// Prepares an INSERT … SELECT whose rows bring their keys, so that it fails for one that brings none.
    pub(crate) fn prepare_guarded(
        &mut self,
        query: Query<'_>,
        rule: usize,
        plan: QueryPlan,
    ) -> Next {
        let Ok(text) = plan.guarded(query.text) else {
            let what = Unsupported::NotAsPlanned;
            return self.unsupported_prepare(query, Some(rule), what);
        };
        let Some(by_order) = self.by_order(rule, query.text, Some(plan)) else {
            return self.refuse_texts(query.header).into();
        };
        let sql_mode = self.sql_mode();
        let noted = Passed {
            by_mode: Some(ByMode { rule, sql_mode }),
            by_order: Some(by_order),
            guarded: Some(rule),
            ..self.passed(query.text, Changes::Nothing)
        };
        write_command(COM_STMT_PREPARE, &text, &mut self.up);
        self.answer.expect(Shape::Prepare);
        self.forget_command();
        let after = After::Prepared(Box::new(noted));
        Job::passing(after).with(Step::Consumed(query.header.total()))
    }

    /// What is noted of a statement that is passed on.
    pub(crate) fn passed(&self, text: &[u8], change: Changes) -> Passed {
        Passed {
            effect: Effect {
                counts: names_row_count(text),
                ..self.effect(text)
            },
            change,
            named: self.rules_named_in(text),
            ..Passed::default()
        }
    }

    /// Prepares an INSERT as it is, whose rule only observes: it may rewrite when the statement is executed.
    pub(crate) fn prepare_observed(
        &mut self,
        query: Query<'_>,
        (rule, plan): (usize, &Plan),
    ) -> Next {
        // An INSERT that needs no key may need one in another order of columns.
        let Some(held) = self.hold(query.text.len().saturating_add(plan.held_bytes())) else {
            return self.refuse_texts(query.header).into();
        };
        let insert = ObservedInsert::Rows {
            text: query.text.to_vec(),
            database: self.context.database.clone(),
            read_in: self.context.text_modes.clone(),
            parameters: usize::try_from(plan.parameters()).unwrap_or(usize::MAX),
            returning: plan.returning(),
            native: Native::of(rule, plan),
            held: Arc::new(held),
        };
        self.note_observed(query, Observed { rule, insert })
    }

    /// Prepares an INSERT as it is, whose rule only observes.
    pub(crate) fn note_observed(&mut self, query: Query<'_>, observed: Observed) -> Next {
        let noted = Passed {
            observed: Some(Arc::new(observed)),
            ..self.passed(query.text, Changes::Nothing)
        };
        self.prepare_noted(query, noted)
    }

    pub(crate) fn prepare_noted(&mut self, query: Query<'_>, noted: Passed) -> Next {
        let after = After::Prepared(Box::new(noted));
        self.pass(query.header, query.bytes, Shape::Prepare, after)
    }

    /// What an execution of a statement that is no INSERT changes.
    pub(crate) fn changes(&self, text: &[u8], changes: StateChange) -> Changes {
        match changes {
            StateChange::Nothing => Changes::Nothing,
            StateChange::Variables if is_harmless_set(text) => Changes::Nothing,
            StateChange::Variables => Changes::Unknown,
            StateChange::Database => {
                let chosen = use_target(text, &self.context.modes);
                chosen.map_or(Changes::Unknown, Changes::Database)
            }
            StateChange::TemporaryMade => match self.tables_named(text) {
                Some(made) => Changes::Tables {
                    dropped: Vec::new(),
                    made,
                },
                None => Changes::Unknown,
            },
            StateChange::TablesDropped => match self.tables_named(text) {
                Some(dropped) => Changes::Tables {
                    dropped,
                    made: Vec::new(),
                },
                None => Changes::Unknown,
            },
            StateChange::Definitions => Changes::Defined,
            // The server prepares no PREPARE.
            StateChange::Texts => Changes::Nothing,
            StateChange::Anything => Changes::Anything,
        }
    }

    pub(crate) fn unsupported_prepare(
        &mut self,
        query: Query<'_>,
        rule: Option<usize>,
        what: Unsupported,
    ) -> Next {
        if let Err(reason) = decide_unread(self.policy(rule), what) {
            return self.refuse_for(query.header, rule, reason).into();
        }
        self.note(rule, StatementOutcome::Passed(what.label()));
        match rule.filter(|rule| !self.rewrites(*rule)) {
            Some(rule) => {
                let insert = ObservedInsert::Unsupported(what);
                self.note_observed(query, Observed { rule, insert })
            }
            None => self.prepare_passed(query, Changes::Nothing),
        }
    }
}
