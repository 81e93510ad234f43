//! COM_STMT_BULK_EXECUTE of an INSERT on a table with a rule. The server carries out all rows as one statement: its answer shows
//! the first generated key, as that of a text with as many rows.

use keywright_core::KeyBatch;
use keywright_rewrite::{BulkConstruct, LastInsertId, Unsupported, Variant};
use keywright_wire::bytes::{Header, Joined, joined};
use keywright_wire::capability::BULK_OPERATIONS;

use crate::client::decode::{self, OutOfOrder, Undecoded};
use crate::connection::Connection;
use crate::job::Next;
use crate::judge::{Facts, Verdict, decide};
use crate::prepared::bulk_keys::Fault;
use crate::prepared::keyed::KeyedExecution;
use crate::prepared::refresh::Refreshed;
use crate::prepared::send_bulk::{GONE, literal, read_bulk, text_of_rows};

impl Connection {
    pub(crate) fn bulk_execute(&mut self, header: Header, bytes: &[u8]) -> Result<Next, Undecoded> {
        if self.facts.capabilities & BULK_OPERATIONS == 0 {
            return Err(Undecoded::OutOfOrder);
        }
        // Number and flags.
        let named = decode::executed(header, bytes, 7)?;
        let id = self.statements.number(named);
        let is_select = self.statements.selects.contains_key(&id);
        if !is_select && !self.statements.ours.contains_key(&id) {
            return self.execute_passed(header, bytes, named);
        }
        let (header, payload) = match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => (header, payload),
            Joined::More(at_least) => return Err(Undecoded::More { at_least }),
            Joined::TooLong => return Ok(self.refuse_long_execution().into()),
        };
        if is_select {
            let what = Unsupported::Bulk(BulkConstruct::Query);
            return Ok(self.refuse_select_execution(header, id, what).into());
        }
        Ok(self.bulk_of_ours(header, &payload, id)?)
    }

    /// One, which has come whole, of a statement that was prepared with room for keys.
    fn bulk_of_ours(
        &mut self,
        header: Header,
        payload: &[u8],
        id: u32,
    ) -> Result<Next, OutOfOrder> {
        if !self.context.known {
            return Ok(self.ask_context().into());
        }
        match self.refresh(header, id) {
            Refreshed::Ours => {}
            Refreshed::Passed => {
                let what = Unsupported::Bulk(BulkConstruct::TableChanged);
                return Ok(self.refuse_execution(header, id, what).into());
            }
            Refreshed::Not(step) => return Ok(step.into()),
        }
        let rest = payload.get(4..).unwrap_or_default();
        let rule = self.rule_of_statement(id);
        if let Some(step) = rule.and_then(|rule| self.enter(header, Some(rule))) {
            return Ok(step.into());
        }
        let counts = self.statements.ours.get(&id).is_some_and(|of| of.counts);
        if let Some(step) = self.restore_row_count(|| counts) {
            return Ok(step.into());
        }
        if rule.is_some_and(|rule| !self.rewrites(rule)) {
            return Ok(self.bulk_as_is(header, id, rest));
        }
        self.bulk(header, id, rest)
            .or_else(|fault| self.refuse_bulk(header, id, fault))
    }

    fn bulk(&mut self, header: Header, id: u32, rest: &[u8]) -> Result<Next, Fault> {
        let Some(statement) = self.statements.ours.get_mut(&id) else {
            return Err(GONE);
        };
        let bulk = read_bulk(statement, rest)?;
        let unsupported = |what| Err(Fault::Unsupported(Unsupported::Bulk(what)));
        if self.context.insert_id_set {
            return unsupported(BulkConstruct::InsertIdSet);
        }
        if !statement.long_data.is_empty() {
            return unsupported(BulkConstruct::LongData);
        }
        // It would have to be asked for each row.
        if statement.computed.is_some() {
            return unsupported(BulkConstruct::Computed);
        }
        if bulk.wants_unit_results() {
            return unsupported(BulkConstruct::UnitResults);
        }
        let (index, _, needs, total) = self.bulk_needs(id, &bulk)?;
        let Some(statement) = self.statements.ours.get(&id) else {
            return Err(GONE);
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
            keys: total.into(),
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
        if text_of_rows(statement, self.context.increment).is_none() {
            return Ok(self.prepare_variant(header, id, Variant::LITERAL).into());
        }
        if total == 0 {
            let none = KeyBatch::Listed(Vec::new());
            return self.bulk_with(header, id, &bulk, Ok(none));
        }
        Ok(KeyedExecution::begin(self, (id, true), index, total))
    }
}
