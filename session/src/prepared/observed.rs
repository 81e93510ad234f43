//! INSERTs that were prepared while their rule only observed: executed as they are, until the rule rewrites. Then the next execution
//! prepares them anew, with room for keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_rewrite::{Prepared, Unsupported, Variant};
use keywright_wire::bulk::bulk_types;
use keywright_wire::bytes::{HEADER_BYTES, Header};
use keywright_wire::params::execution_types;
use keywright_wire::protocol::COM_STMT_BULK_EXECUTE;

use crate::answer::reply::names_row_count;
use crate::budget::Held;
use crate::connection::Connection;
use crate::insert::plan::Planned;
use crate::judge::{Facts, Verdict, decide, decide_unread};
use crate::prepared::passed_statement::{Observed, ObservedInsert};
use crate::prepared::statements::{Made, Statement};
use crate::server::text_modes::TextModes;
use crate::step::Step;

/// What is to be done with an execution.
pub(crate) enum Execution {
    /// It goes out as it is.
    Native,
    /// The statement gets keys now, and is to be looked at again.
    Ours,
    Not(Step),
}

impl Connection {
    /// An execution of a statement whose rule only observed when it was prepared.
    pub(crate) fn execute_observed(
        &mut self,
        header: Header,
        bytes: &[u8],
        id: u32,
        observed: &Observed,
    ) -> Execution {
        let rule = observed.rule;
        if let Some(step) = self.enter(header, Some(rule)) {
            return Execution::Not(step);
        }
        if self.rewrites(rule) {
            return match &observed.insert {
                ObservedInsert::Rows { text, read_in, .. }
                    if self.context.known && self.reads_otherwise(read_in, text) =>
                {
                    self.unread(header, Some(rule), Unsupported::ReadOtherwise)
                }
                ObservedInsert::Rows {
                    text,
                    database,
                    read_in,
                    held,
                    ..
                } => self.take_over(header, id, (text, database.as_deref(), read_in), held),
                ObservedInsert::Query => {
                    let what = Unsupported::TableChanged;
                    Execution::Not(self.refuse_unsupported(header, Some(rule), what))
                }
                ObservedInsert::Unsupported(what) => self.unread(header, Some(rule), *what),
            };
        }
        let count = match &observed.insert {
            ObservedInsert::Rows { parameters, .. } => *parameters,
            ObservedInsert::Query | ObservedInsert::Unsupported(_) => return Execution::Native,
        };
        let there = bytes.get(HEADER_BYTES + 5..).unwrap_or_default();
        let read = match bytes.get(HEADER_BYTES) {
            Some(&COM_STMT_BULK_EXECUTE) => bulk_types(there, count),
            Some(_) | None => execution_types(there, count, self.has_attributes()),
        };
        match read {
            Some(Some(types)) => {
                self.statements.types_of_observed.insert(id, types);
            }
            // Unchanged, or not to be judged here: the server will say.
            Some(None) => {}
            None if bytes.len() < header.total() && !self.memory_full => {
                let at_least = bytes.len().saturating_mul(2).min(header.total());
                return Execution::Not(Step::More { at_least });
            }
            None => {}
        }
        Execution::Native
    }

    /// One that cannot be rewritten.
    fn unread(&mut self, header: Header, rule: Option<usize>, what: Unsupported) -> Execution {
        match decide_unread(self.policy(rule), what) {
            Ok(()) => Execution::Native,
            Err(reason) => Execution::Not(self.refuse_for(header, rule, reason)),
        }
    }

    /// The rule rewrites now.
    fn take_over(
        &mut self,
        header: Header,
        id: u32,
        (text, database, read_in): (&[u8], Option<&[u8]>, &TextModes),
        held: &Arc<Held>,
    ) -> Execution {
        if !self.context.known {
            return Execution::Not(self.ask_context());
        }
        let (index, plan) = match self.plan_in(database, text) {
            Ok(Planned::Plan(index, plan)) => (index, plan),
            Ok(Planned::Ask(question)) => return Execution::Not(self.ask(&question)),
            Ok(Planned::Pass | Planned::Missing(_) | Planned::Keyless(_) | Planned::Query(..)) => {
                self.forget_command();
                return Execution::Native;
            }
            Err((rule, what)) => return self.unread(header, rule, what),
        };
        let schema = self.judged_at();
        self.forget_command();
        let wants_keys = plan.keys() > 0 || !plan.key_parameters().is_empty();
        match decide(self.policy(Some(index)), &Facts::of_rows(&plan, wants_keys)) {
            Verdict::Rewrite => {}
            Verdict::Pass | Verdict::Observe(_) => return Execution::Native,
            Verdict::Leave(what) => return self.unread(header, Some(index), what),
            Verdict::Refuse(reason) => {
                return Execution::Not(self.refuse_for(header, Some(index), reason));
            }
        }
        if self.statements.is_full() {
            return Execution::Not(self.refuse_statement(header));
        }
        let as_prepared = Made {
            variant: Variant::LITERAL,
            spacing: 0,
            number: id,
            prepared: Prepared {
                text: Vec::new(),
                injected: Vec::new(),
                keys_in_text: false,
            },
            // The client knows the statement by its number, and it has no room for keys.
            is_outdated: true,
        };
        self.statements.passed.remove(&id);
        let statement = Statement {
            rule: index,
            text: text.to_vec(),
            database: database.map(<[u8]>::to_vec),
            read_in: read_in.clone(),
            _held: Arc::clone(held),
            plan,
            sql_mode: self.sql_mode(),
            variants: vec![as_prepared],
            types: self.statements.types_of_observed.remove(&id),
            long_data: BTreeSet::new(),
            counts: names_row_count(text),
            schema,
            is_passed: false,
            computed: None,
        };
        self.statements.ours.insert(id, statement);
        Execution::Ours
    }
}
