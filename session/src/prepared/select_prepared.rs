//! A prepared INSERT … SELECT on a table with a rule: for how many rows there are keys, and which, is said by parameters, so one
//! text serves all its executions and their tries.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_core::KeyBatch;
use keywright_rewrite::{
    InQuery, LastInsertIdUse, LongDataConstruct, PreparedQuery, QueryPlan, SelectConstruct, Unread,
    Unsupported, last_insert_id_use,
};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{Header, Joined, joined, write_packet};
use keywright_wire::packets::write_command;
use keywright_wire::params::{Execution, Param, Type};
use keywright_wire::protocol::COM_STMT_PREPARE;
use keywright_wire::values::BadValue;

use crate::answer::reply::names_row_count;
use crate::client::attributes::UNKNOWN_TYPE;
use crate::client::text::{Query, Whole};
use crate::connection::Connection;
use crate::insert::select::Source;
use crate::job::{Job, Next};
use crate::judge::{Facts, Verdict, decide};
use crate::prepared::param_keys::KeyValues;
use crate::prepared::passed_statement::{Changes, Observed, ObservedInsert};
use crate::prepared::prepare::Preparing;
use crate::prepared::refresh::Refreshed;
use crate::prepared::select_statement::SelectStatement;
use crate::step::{KeyFailure, Step};

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
                return self.refuse_statement(query.header).into();
            }
            Verdict::Rewrite => {}
            Verdict::Pass if plan.is_guarded() => {
                return match self.forbids_guard(index) {
                    Some(what) => self.unsupported_prepare(query, Some(index), what),
                    None => self.prepare_guarded(query, index, plan),
                };
            }
            Verdict::Pass => {
                let by_mode = plan.by_mode().then_some(index);
                let by_order = match plan.by_order() {
                    false => None,
                    true => match self.by_order(index, query.text, None) {
                        None => return self.refuse_texts(query.header).into(),
                        kept => kept,
                    },
                };
                return self.prepare_explicit(query, (by_mode, by_order));
            }
            Verdict::Observe(what) => {
                if let Some(what) = what {
                    self.note(Some(index), what);
                }
                let insert = ObservedInsert::Query;
                let observed = Observed {
                    rule: index,
                    insert,
                };
                return self.note_observed(query, observed);
            }
            Verdict::Leave(what) => return self.unsupported_prepare(query, Some(index), what),
            Verdict::Refuse(reason) => {
                return self.refuse_for(query.header, Some(index), reason).into();
            }
        }
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

    /// Reads the parameters, and remembers their types for the next time. `Err`: it was refused.
    fn read_select_execution<'a>(
        &mut self,
        header: Header,
        payload: &'a [u8],
        id: u32,
    ) -> Result<Execution<'a>, Step> {
        let named = self.has_attributes();
        let Some(select) = self.statements.selects.get_mut(&id) else {
            return Err(self.refuse_select_execution(header, id, Unsupported::NotAsPlanned));
        };
        let count = usize::try_from(select.plan.parameters()).unwrap_or(usize::MAX);
        let (rest, known) = (
            payload.get(4..).unwrap_or_default(),
            select.types.as_deref(),
        );
        match Execution::read(rest, count, known, &select.long_data, named) {
            Ok(execution) => {
                if let Some(types) = &execution.types {
                    select.types = Some(types.clone());
                }
                Ok(execution)
            }
            Err(BadValue::Malformed) => {
                self.forget_long_data_of_select(id);
                Err(self.tell_malformed(header))
            }
            Err(BadValue::Type) => Err(self.refuse_select_execution(header, id, UNKNOWN_TYPE)),
        }
    }

    /// Sends a try with these keys. `Err`: it was refused.
    pub(crate) fn send_select_execution(
        &mut self,
        whole: &Whole<'_>,
        id: u32,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<KeyBatch, Step> {
        let header = whole.header;
        let execution = self.read_select_execution(header, &whole.payload, id)?;
        let keys = match keys {
            Ok(keys) => keys,
            Err(failure) => {
                self.forget_long_data_of_select(id);
                return Err(self.refuse(header, failure.cause, &failure.message));
            }
        };
        let Some(select) = self.statements.selects.get_mut(&id) else {
            return Err(self.refuse_select_execution(header, id, Unsupported::NotAsPlanned));
        };
        let Some(range) = Range::of(&keys, select.injected) else {
            let what = Unsupported::SelectWith(SelectConstruct::UnevenKeys);
            return Err(self.refuse_select_execution(header, id, what));
        };
        let mut params = execution.params.clone();
        let at = usize::from(select.at).min(params.len());
        let Some(injected) = range.params(select.injected) else {
            return Err(self.refuse_select_execution(header, id, Unsupported::NotAsPlanned));
        };
        params.splice(at..at, injected);
        select.long_data.clear();
        let mut sent = Vec::new();
        execution.write(id, &params, &mut sent);
        write_packet(&sent, 0, &mut self.up);
        self.answer.expect(execution.shape());
        Ok(keys)
    }
}

/// The keys of one try as values of parameters.
enum Range {
    Key(KeyValues),
    /// Rows, first key, spacing.
    Numbers([[u8; 8]; 3]),
}

const LONGLONG: Type = [8, 0];

impl Range {
    /// `None`: a range is wanted, and these keys are none.
    fn of(keys: &KeyBatch, injected: &[InQuery]) -> Option<Self> {
        if injected == [InQuery::Key] {
            return Some(Self::Key(KeyValues::new(keys)));
        }
        match *keys {
            KeyBatch::Numbers {
                first,
                spacing,
                count,
            } => Some(Self::Numbers([count, first, spacing].map(u64::to_le_bytes))),
            KeyBatch::Listed(_) | KeyBatch::Texts(_) | KeyBatch::Bytes(_) => None,
        }
    }

    /// The parameters that were put in, in their order.
    fn params(&self, injected: &[InQuery]) -> Option<Vec<Param<'_>>> {
        let param = |what: &InQuery| {
            let [rows, first, spacing] = match self {
                Self::Key(key) => return key.param(0),
                Self::Numbers(numbers) => numbers,
            };
            let value = match what {
                InQuery::Key => return None,
                InQuery::Rows => rows,
                InQuery::First => first,
                InQuery::Spacing => spacing,
            };
            Some(Param {
                of_type: LONGLONG,
                value: Some(value.as_slice()),
                null: false,
                name: &[],
            })
        };
        injected.iter().map(param).collect()
    }
}
