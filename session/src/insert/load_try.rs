//! One try of a LOAD DATA after another: the keys that it needs, the text that goes out, and what its answer comes to. How far a statement
//! is with them: [`crate::insert::loading`].

use keywright_core::KeyBatch;
use keywright_rewrite::{
    LoadConstruct, LoadPlan, Unsupported, is_cut_off, is_given_key, is_out_of_range,
};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{Header, write_as_many};
use keywright_wire::packets::{error_text, last_packet, single_ok};
use keywright_wire::protocol::COM_QUERY;

use crate::answer::reply::PendingLastInsertId;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::select::GROWTH;
use crate::judge::{ROWS_FIRST, Reason};
use crate::rules::OnExplicit;
use crate::step::{KeyFailure, KeyRequest, StatementOutcome, Step};

/// The next or present try.
#[derive(Debug)]
pub(crate) struct LoadTry {
    pub(crate) rule: usize,
    pub(crate) plan: LoadPlan,
    /// Rows that it has keys for.
    pub(crate) rows: u64,
    /// What LAST_INSERT_ID() showed before the first.
    pub(crate) before: u64,
}

impl LoadTry {
    /// The first.
    pub(crate) fn first(connection: &Connection, rule: usize, plan: LoadPlan, before: u64) -> Self {
        let rows_max = connection.facts.limits.select_rows_max;
        Self {
            rule,
            plan,
            rows: ROWS_FIRST.min(rows_max).max(1),
            before,
        }
    }

    /// More keys for the next; false if there may be no more.
    pub(crate) fn grow(&mut self, connection: &Connection) -> bool {
        let most = connection.facts.limits.select_rows_max;
        let before = self.rows;
        self.rows = before.saturating_mul(GROWTH).min(most);
        self.rows > before
    }

    /// Asks for the keys of its rows. No driver computes them from the first, so they need not be consecutive.
    pub(crate) fn keys_step(&self, connection: &Connection) -> Step {
        Step::Keys(KeyRequest {
            rule: connection.rules.configured(self.rule),
            count: self.rows,
            contiguous: false,
        })
    }

    /// The rows' keys, if the column has room for them.
    pub(crate) fn fits(
        &self,
        connection: &Connection,
        keys: KeyBatch,
    ) -> Result<KeyBatch, KeyFailure> {
        match connection.rules.rules().get(self.rule) {
            Some(rule) => connection.in_bits(rule, keys, self.rows),
            None => Ok(keys),
        }
    }

    /// Sends it with these keys. Returns the first of them.
    pub(crate) fn send(
        &self,
        connection: &mut Connection,
        query: Query<'_>,
        keys: &KeyBatch,
    ) -> Result<u64, Unsupported> {
        let rule = connection.rules.rules().get(self.rule);
        let may_give = rule.is_some_and(|rule| rule.on_explicit == OnExplicit::Keep);
        let attributes = query.attributes()?;
        let mut sent = Vec::with_capacity(query.text.len().saturating_add(256));
        sent.push(COM_QUERY);
        sent.extend_from_slice(attributes);
        let spliced = self.plan.splice(query.text, keys, may_give, &mut sent);
        let (Ok(()), Some(first)) = (spliced, keys.number(0)) else {
            return Err(Unsupported::LoadWith(LoadConstruct::Ranges));
        };
        if !write_as_many(&sent, query.header.sequence, &mut connection.up) {
            return Err(Unsupported::Longer);
        }
        connection.answer.expect(Shape::Results);
        Ok(first)
    }

    /// Tells the client how the last one was answered, whose first key this was.
    pub(crate) fn tell(&self, connection: &mut Connection, answer: &[u8], first: u64) {
        let last = last_packet(answer);
        let error = error_text(last);
        let is_given = error.is_some_and(|(number, message)| is_given_key(number, message));
        let sequence = Header::read(last).map_or(1, |header| header.sequence);
        if has_too_few(last) {
            let rows_max = connection.facts.limits.select_rows_max;
            connection.tell_refused(Some(self.rule), Reason::LoadRows { rows_max }, sequence);
        } else if is_given {
            connection.tell_refused(Some(self.rule), Reason::Explicit, sequence);
        } else if error.is_some_and(|(number, message)| is_cut_off(number, message)) {
            connection.tell_cut_off(Some(self.rule), last);
        } else {
            connection.note(Some(self.rule), StatementOutcome::Rewritten);
            connection.down.extend_from_slice(answer);
            let went_in = single_ok(last).is_some_and(|(_, _, done)| done.affected_rows > 0);
            let shown = self.shown_after(first, error.is_some(), went_in);
            connection.pending_last_insert_id = Some(shown);
        }
    }

    /// What LAST_INSERT_ID() is to show: the first key, if its row went in. If a row failed, that was another one if a second
    /// key was made.
    fn shown_after(&self, first: u64, failed: bool, went_in: bool) -> PendingLastInsertId {
        let before = self.before;
        let if_above = |above| PendingLastInsertId::ToIfAbove {
            above,
            id: first,
            before,
        };
        match (failed, went_in) {
            (true, _) => if_above(first),
            (false, true) if self.plan.may_be_given() => if_above(0),
            (false, true) => PendingLastInsertId::To(first),
            (false, false) => PendingLastInsertId::To(before),
        }
    }
}

/// Whether this is the error for too few keys.
pub(crate) fn has_too_few(packet: &[u8]) -> bool {
    error_text(packet).is_some_and(|(number, message)| is_out_of_range(number, message))
}
