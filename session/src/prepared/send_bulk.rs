//! COM_STMT_BULK_EXECUTE as it goes out, with its keys.

use keywright_core::KeyBatch;
use keywright_rewrite::{LastInsertId, Unsupported, Variant};
use keywright_wire::answer::Shape;
use keywright_wire::bulk::Bulk;
use keywright_wire::bytes::{HEADER_BYTES, Header, replace_packet};

use crate::client::decode::OutOfOrder;
use crate::connection::Connection;
use crate::job::{Job, Next};
use crate::prepared::bulk_keys::{Asking, Fault, Needs};
use crate::prepared::statements::{Made, Statement};
use crate::rules::Rule;
use crate::step::{KeyFailure, StatementOutcome, Step};

/// A statement, or its text, that is not there any more.
pub(super) const GONE: Fault = Fault::Unsupported(Unsupported::NotAsPlanned);

impl Connection {
    /// The keys are there, or why not.
    pub(crate) fn bulk_with_keys(
        &mut self,
        header: Header,
        id: u32,
        rest: &[u8],
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<Next, OutOfOrder> {
        let statement = self.statements.ours.get_mut(&id);
        let bulk = statement
            .ok_or(GONE)
            .and_then(|statement| read_bulk(statement, rest));
        bulk.and_then(|bulk| self.bulk_with(header, id, &bulk, keys))
            .or_else(|fault| self.refuse_bulk(header, id, fault))
    }

    pub(super) fn refuse_bulk(
        &mut self,
        header: Header,
        id: u32,
        fault: Fault,
    ) -> Result<Next, OutOfOrder> {
        match fault {
            Fault::Malformed => Err(OutOfOrder),
            Fault::Unsupported(what) => Ok(self.refuse_execution(header, id, what).into()),
        }
    }

    /// The rule, what the rows need, and how many keys that is.
    pub(super) fn bulk_needs(
        &self,
        id: u32,
        bulk: &Bulk<'_>,
    ) -> Result<(usize, Rule, Needs, u64), Fault> {
        let statement = self.statements.ours.get(&id).ok_or(GONE)?;
        let index = statement.rule;
        let rule = self.rules.rules().get(index).cloned();
        let rule = rule.ok_or(GONE)?;
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
        let care = self.care_of(statement, u32::MAX);
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
    pub(super) fn bulk_with(
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
            Err(failure) => return Ok(self.refuse_without_keys(header, &failure).into()),
        };
        let statement = self.statements.ours.get(&id).ok_or(GONE)?;
        let made = text_of_rows(statement, self.context.increment).ok_or(GONE)?;
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
        if !replace_packet(start, header.sequence, &mut self.up) {
            return Err(Fault::Unsupported(Unsupported::Longer));
        }
        let plan = &statement.plan;
        let rows = plan.rows().saturating_mul(needs.rows);
        let reply = self.reply_of_bulk(index, (plan, literal(plan.last_insert_id())), &keys, rows);
        let returning = plan.returning();
        if total > 0 {
            self.note(Some(index), StatementOutcome::Rewritten);
        }
        self.answer.expect(Shape::Results);
        Ok(Job::of_reply(reply, returning).with(Step::Consumed(header.total())))
    }
}

/// Reads the rows, and remembers their types for the next time.
pub(super) fn read_bulk<'a>(statement: &mut Statement, rest: &'a [u8]) -> Result<Bulk<'a>, Fault> {
    let count = statement.parameters();
    let bulk = Bulk::read(rest, count, statement.types.as_deref())?;
    statement.types = Some(bulk.types.clone());
    Ok(bulk)
}

/// Each row would put its own key into LAST_INSERT_ID().
pub(super) fn literal(last_insert_id: LastInsertId) -> LastInsertId {
    match last_insert_id {
        LastInsertId::Wrapped | LastInsertId::Literal => LastInsertId::Literal,
        LastInsertId::None => LastInsertId::None,
    }
}

/// The text for rows with keys.
pub(super) fn text_of_rows(statement: &Statement, spacing: u64) -> Option<&Made> {
    let mut variants = statement.variants.iter();
    variants.find(|made| made.is_for(Variant::LITERAL, spacing))
}
