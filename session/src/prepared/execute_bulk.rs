//! COM_STMT_BULK_EXECUTE of an INSERT on a table with a rule. The server carries out all rows as one statement: its answer shows
//! the first generated key, as that of a text with as many rows.

use keywright_core::KeyBatch;
use keywright_rewrite::{BulkConstruct, LastInsertId, Unsupported, Variant};
use keywright_wire::answer::Shape;
use keywright_wire::bulk::Bulk;
use keywright_wire::bytes::{HEADER_BYTES, Header, Joined, Reader, joined, make_packet};
use keywright_wire::capability::BULK_OPERATIONS;

use crate::connection::Connection;
use crate::job::{Job, Next};
use crate::judge::{Facts, Verdict, decide};
use crate::prepared::bulk_keys::{Asking, Fault, Needs};
use crate::prepared::keyed::KeyedExecution;
use crate::prepared::refresh::Refreshed;
use crate::prepared::statements::{Made, Statement};
use crate::rules::Rule;
use crate::step::{KeyFailure, StatementOutcome, Step};

impl Connection {
    pub(crate) fn bulk_execute(&mut self, header: Header, bytes: &[u8]) -> Next {
        // Number and flags.
        if self.facts.capabilities & BULK_OPERATIONS == 0 || header.len < 7 {
            return self.malformed().into();
        }
        let Some(id) = bytes
            .get(HEADER_BYTES + 1..)
            .and_then(|rest| Reader(rest).u32())
        else {
            return Step::More {
                at_least: HEADER_BYTES + 5,
            }
            .into();
        };
        let number = self.statements.number(id);
        let is_select = self.statements.selects.contains_key(&number);
        if !is_select && !self.statements.ours.contains_key(&number) {
            return self.execute_passed(header, bytes, id);
        }
        let (header, payload) = match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => (header, payload),
            Joined::More(at_least) => return Step::More { at_least }.into(),
            Joined::TooLong => return self.refuse_long_execution().into(),
        };
        if is_select {
            let what = Unsupported::Bulk(BulkConstruct::Query);
            return self.refuse_select_execution(header, number, what).into();
        }
        if !self.context.known {
            return self.ask_context().into();
        }
        match self.refresh(header, number) {
            Refreshed::Ours => {}
            Refreshed::Passed => {
                let what = Unsupported::Bulk(BulkConstruct::TableChanged);
                return self.refuse_execution(header, number, what).into();
            }
            Refreshed::Not(step) => return step.into(),
        }
        let rest = payload.get(4..).unwrap_or_default();
        let rule = self.rule_of_statement(number);
        if let Some(step) = rule.and_then(|rule| self.enter(header, Some(rule))) {
            return step.into();
        }
        if rule.is_some_and(|rule| !self.rewrites(rule)) {
            return self.bulk_as_is(header, number, rest);
        }
        match self.bulk(header, number, rest) {
            Ok(next) => next,
            Err(fault) => self.refuse_bulk(header, number, fault).into(),
        }
    }

    /// The keys are there, or why not.
    pub(crate) fn bulk_with_keys(
        &mut self,
        header: Header,
        id: u32,
        rest: &[u8],
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Next {
        let statement = self.statements.ours.get_mut(&id);
        let bulk = statement
            .ok_or(Fault::Malformed)
            .and_then(|statement| read(statement, rest));
        match bulk.and_then(|bulk| self.bulk_with(header, id, &bulk, keys)) {
            Ok(next) => next,
            Err(fault) => self.refuse_bulk(header, id, fault).into(),
        }
    }

    fn refuse_bulk(&mut self, header: Header, id: u32, fault: Fault) -> Step {
        match fault {
            Fault::Malformed => self.malformed(),
            Fault::Unsupported(what) => self.refuse_execution(header, id, what),
        }
    }

    fn bulk(&mut self, header: Header, id: u32, rest: &[u8]) -> Result<Next, Fault> {
        let Some(statement) = self.statements.ours.get_mut(&id) else {
            return Err(Fault::Malformed);
        };
        let bulk = read(statement, rest)?;
        let unsupported = |what| Err(Fault::Unsupported(Unsupported::Bulk(what)));
        if self.context.insert_id_set {
            return unsupported(BulkConstruct::InsertIdSet);
        }
        if !statement.long_data.is_empty() {
            return unsupported(BulkConstruct::LongData);
        }
        if bulk.wants_unit_results() {
            return unsupported(BulkConstruct::UnitResults);
        }
        let (index, _, needs, total) = self.bulk_needs(id, &bulk)?;
        let Some(statement) = self.statements.ours.get(&id) else {
            return Err(Fault::Malformed);
        };
        if needs.rows == 0 {
            return unsupported(BulkConstruct::NoRows);
        }
        let plan = &statement.plan;
        let last_insert_id = literal(plan.last_insert_id());
        let may_skip =
            last_insert_id != LastInsertId::None && (plan.ignore() || plan.on_duplicate());
        let is_single = needs.rows == 1 && plan.rows() == 1;
        let facts = Facts {
            own_keys: (needs.explicit || plan.explicit()).into(),
            is_id_unsure: may_skip && !is_single,
            ..Facts::of_rows(plan, total > 0)
        };
        match decide(self.policy(Some(index)), &facts) {
            Verdict::Rewrite | Verdict::Pass | Verdict::Observe(_) => {}
            Verdict::Leave(what) => return Err(Fault::Unsupported(what)),
            Verdict::Refuse(reason) => {
                return Ok(self.refuse_for(header, Some(index), reason).into());
            }
        }
        let sees = plan.last_insert_id() == LastInsertId::Literal;
        if self.needs_last_insert_id(sees, last_insert_id, total) {
            let counts = statement.counts;
            return Ok(self.update_last_insert_id(counts).into());
        }
        if made(statement, self.context.increment).is_none() {
            return Ok(self.prepare_variant(header, id, Variant::LITERAL).into());
        }
        if total == 0 {
            let none = KeyBatch::Listed(Vec::new());
            return self.bulk_with(header, id, &bulk, Ok(none));
        }
        Ok(KeyedExecution::begin(self, (id, true), index, total))
    }

    /// The rule, what the rows need, and how many keys that is.
    fn bulk_needs(&self, id: u32, bulk: &Bulk<'_>) -> Result<(usize, Rule, Needs, u64), Fault> {
        let statement = self.statements.ours.get(&id).ok_or(Fault::Malformed)?;
        let index = statement.rule;
        let rule = self.rules.rules().get(index).cloned();
        let rule = rule.ok_or(Fault::Malformed)?;
        let needs = self.asking(statement, &rule)?.needs(bulk)?;
        let written = statement.plan.keys().saturating_mul(needs.rows);
        let total = written.saturating_add(needs.asking);
        Ok((index, rule, needs, total))
    }

    fn asking<'a>(&self, statement: &'a Statement, rule: &Rule) -> Result<Asking<'a>, Unsupported> {
        if self.means_otherwise(statement) {
            return Err(Unsupported::ZeroChanged);
        }
        // A row is one of many.
        let care = statement.plan.care(&self.context.modes, u32::MAX);
        if care.zero_is_value.is_none() {
            return Err(Unsupported::ZeroAmbiguous);
        }
        Ok(Asking {
            keys: statement.plan.key_parameters(),
            form: rule.form,
            care,
            only_null: statement.plan.last_insert_id() == LastInsertId::None,
        })
    }

    /// Sends the rows with their keys.
    fn bulk_with(
        &mut self,
        header: Header,
        id: u32,
        bulk: &Bulk<'_>,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<Next, Fault> {
        self.forget_command();
        let (index, rule, needs, total) = self.bulk_needs(id, bulk)?;
        let keys = match keys.and_then(|keys| match total {
            0 => Ok(keys),
            rows => self.spread(&rule, keys, rows),
        }) {
            Ok(keys) => keys,
            Err(failure) => return Ok(self.refuse(header, failure.cause, &failure.message).into()),
        };
        let statement = self.statements.ours.get(&id).ok_or(Fault::Malformed)?;
        let made = made(statement, self.context.increment).ok_or(Fault::Malformed)?;
        let asking = self.asking(statement, &rule)?;
        let start = self.up.len();
        self.up.extend([0; HEADER_BYTES]);
        let written = asking.write(
            bulk,
            made.number,
            &made.prepared,
            &needs,
            &keys,
            &mut self.up,
        );
        if let Err(fault) = written {
            self.up.truncate(start);
            return Err(fault);
        }
        if make_packet(start, &mut self.up) != header.sequence {
            self.up.truncate(start);
            return Err(Fault::Unsupported(Unsupported::Longer));
        }
        let plan = &statement.plan;
        let rows = plan.rows().saturating_mul(needs.rows);
        let reply = self.reply_of_bulk(plan, literal(plan.last_insert_id()), &keys, rows);
        let returning = plan.returning();
        if total > 0 {
            self.note(Some(index), StatementOutcome::Rewritten);
        }
        self.answer.expect(Shape::Results);
        Ok(Job::of_reply(reply, returning).with(Step::Consumed(header.total())))
    }
}

/// Reads the rows, and remembers their types for the next time.
fn read<'a>(statement: &mut Statement, rest: &'a [u8]) -> Result<Bulk<'a>, Fault> {
    let count = usize::try_from(statement.plan.parameters()).unwrap_or(usize::MAX);
    let bulk = Bulk::read(rest, count, statement.types.as_deref())?;
    statement.types = Some(bulk.types.clone());
    Ok(bulk)
}

/// Each row would put its own key into LAST_INSERT_ID().
fn literal(last_insert_id: LastInsertId) -> LastInsertId {
    match last_insert_id {
        LastInsertId::Wrapped | LastInsertId::Literal => LastInsertId::Literal,
        LastInsertId::None => LastInsertId::None,
    }
}

/// The text for rows with keys.
fn made(statement: &Statement, spacing: u64) -> Option<&Made> {
    let mut variants = statement.variants.iter();
    variants.find(|made| made.is_for(Variant::LITERAL, spacing))
}
