//! A prepared INSERT … SELECT on a table with a rule: for how many rows there are keys, and which, is said by parameters, so one
//! text serves all its executions and their tries.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_rewrite::{
    LastInsertIdUse, LongDataConstruct, PreparedQuery, QueryPlan, Unread, Unsupported,
    last_insert_id_use,
};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{Header, Joined, joined};
use keywright_wire::packets::write_command;
use keywright_wire::protocol::COM_STMT_PREPARE;

use crate::answer::reply::names_row_count;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::select::Source;
use crate::job::{Job, Next};
use crate::judge::{Facts, Verdict, decide};
use crate::prepared::passed_statement::{Changes, Observed, ObservedInsert};
use crate::prepared::preparing::Preparing;
use crate::prepared::refresh::Refreshed;
use crate::prepared::select_statement::SelectStatement;
use crate::step::Step;

impl Connection {
    /// COM_STMT_PREPARE of an INSERT … SELECT that was read.
    pub(crate) fn prepare_select(
        &mut self,
        query: Query<'_>,
        index: usize,
        plan: QueryPlan,
    ) -> Next {
        match decide(self.policy(Some(index)), &Facts::of_query(&plan)) {
            Verdict::Rewrite if self.statements.is_full() => {
                self.refuse_statement(query.header).into()
            }
            Verdict::Rewrite => self.prepare_keyed_select(query, index, plan),
            Verdict::Pass if plan.is_guarded() => match self.forbids_guard(index) {
                Some(what) => self.unsupported_prepare(query, Some(index), what),
                None => self.prepare_guarded(query, index, plan),
            },
            Verdict::Pass => self.prepare_explicit_select(query, index, &plan),
            Verdict::Observe(what) => {
                if let Some(what) = what {
                    self.note(Some(index), what);
                }
                let insert = ObservedInsert::Query;
                let observed = Observed {
                    rule: index,
                    insert,
                };
                self.note_observed(query, observed)
            }
            Verdict::Leave(what) => self.unsupported_prepare(query, Some(index), what),
            Verdict::Refuse(reason) => self.refuse_for(query.header, Some(index), reason).into(),
        }
    }

    /// One that brings its own keys.
    fn prepare_explicit_select(
        &mut self,
        query: Query<'_>,
        index: usize,
        plan: &QueryPlan,
    ) -> Next {
        let by_mode = plan.by_mode().then_some(index);
        let by_order = match plan.by_order() {
            false => None,
            true => match self.by_order(index, query.text, None) {
                None => return self.refuse_texts(query.header).into(),
                kept => kept,
            },
        };
        self.prepare_explicit(query, (by_mode, by_order))
    }

    /// One that gets keys: the server prepares the session's text in place of the client's.
    fn prepare_keyed_select(&mut self, query: Query<'_>, index: usize, plan: QueryPlan) -> Next {
        let Some(held) = self.hold(query.text.len()) else {
            return self.refuse_texts(query.header).into();
        };
        let PreparedQuery {
            text: ours,
            at,
            injected,
        } = match plan.prepare(query.text) {
            Ok(prepared) => prepared,
            Err(Unread::Unsupported(what)) => {
                return self.unsupported_prepare(query, Some(index), what);
            }
            Err(Unread::Refused) => {
                return self.prepare_passed(query, Changes::Nothing);
            }
        };
        write_command(COM_STMT_PREPARE, &ours, &mut self.up);
        self.answer.expect(Shape::Prepare);
        let schema = self.judged_at();
        self.forget_command();
        let select = SelectStatement {
            rule: index,
            text: query.text.to_vec(),
            database: self.context.database.clone(),
            read_in: self.context.text_modes.clone(),
            _held: held,
            plan: Arc::new(plan),
            schema,
            is_passed: false,
            zero_is_value: self.context.modes.no_auto_value_on_zero,
            at,
            injected,
            types: None,
            long_data: BTreeSet::new(),
            sees: last_insert_id_use(query.text, &self.context.modes) != LastInsertIdUse::Nothing,
            counts: names_row_count(query.text),
        };
        Job::Work(Box::new(Preparing::Query(select))).with(Step::Consumed(query.header.total()))
    }

    /// COM_STMT_EXECUTE of a prepared INSERT … SELECT: asks for the keys of its first try.
    pub(crate) fn execute_select(&mut self, header: Header, bytes: &[u8], id: u32) -> Next {
        let (header, payload) = match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => (header, payload),
            Joined::More(at_least) => return Step::More { at_least }.into(),
            Joined::TooLong => return self.refuse_long_execution().into(),
        };
        if !self.context.known {
            return self.ask_context().into();
        }
        let is_passed = match self.refresh_select(header, id) {
            Refreshed::Ours => false,
            Refreshed::Passed => true,
            Refreshed::Not(step) => return step.into(),
        };
        let execution = match self.read_select_execution(header, &payload, id) {
            Ok(execution) => execution,
            Err(step) => return step.into(),
        };
        let Some(select) = self.statements.selects.get(&id) else {
            return self
                .refuse_select_execution(header, id, Unsupported::NotAsPlanned)
                .into();
        };
        let (rule, plan) = (select.rule, Arc::clone(&select.plan));
        if let Some(step) = self.enter(header, Some(rule)) {
            return step.into();
        }
        let Some(select) = self.statements.selects.get(&id) else {
            return self
                .refuse_select_execution(header, id, Unsupported::NotAsPlanned)
                .into();
        };
        let (has_long_data, sees, counts) =
            (!select.long_data.is_empty(), select.sees, select.counts);
        let zero_is_value = select.zero_is_value;
        if let Some(step) = self.restore_row_count(|| counts) {
            return step.into();
        }
        let is_as_is = is_passed || self.context.insert_id_set || !self.rewrites(rule);
        if is_as_is && !has_long_data {
            return self.execute_as_is(header, id, &execution);
        }
        if is_as_is {
            let what = Unsupported::LongData(LongDataConstruct::AsItIs);
            return self.refuse_select_execution(header, id, what).into();
        }
        if plan.for_zero() && self.context.modes.no_auto_value_on_zero != zero_is_value {
            return self
                .refuse_select_execution(header, id, Unsupported::ZeroChanged)
                .into();
        }
        if has_long_data && !self.is_tried_once(rule, &plan) {
            // The server forgets with the first try what was sent as long data.
            let what = Unsupported::LongData(LongDataConstruct::AnotherText);
            return self.refuse_select_execution(header, id, what).into();
        }
        // What is read may be a view of it.
        if self.pending_last_insert_id.is_some() && sees {
            return self.update_last_insert_id(counts).into();
        }
        self.try_select(rule, plan, Source::Prepared(id))
    }
}
