//! COM_STMT_PREPARE of an INSERT of rows: whether it gets room for keys, and how it is sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_rewrite::{Plan, Unread};
use keywright_wire::answer::Shape;
use keywright_wire::packets::write_command;
use keywright_wire::protocol::COM_STMT_PREPARE;

use crate::answer::reply::names_row_count;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::job::{Job, Next};
use crate::judge::{Facts, Verdict, decide};
use crate::prepared::passed_statement::Changes;
use crate::prepared::preparing::Preparing;
use crate::prepared::statements::{ComputedStatement, Made, Statement};
use crate::step::Step;

impl Connection {
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
            // By another order of columns its keys would be other values, and in a column that is not NOT NULL any more they could be NULL.
            Verdict::Pass if plan.by_order() || plan.by_not_null() => {}
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
            read_in: self.context.text_modes.clone(),
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
}
