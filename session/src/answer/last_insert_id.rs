//! LAST_INSERT_ID() and ROW_COUNT(): what the server has, what the client must see, and how the one becomes the other.
//!
//! A statement that may insert fewer rows than it has, or that fails, can leave another LAST_INSERT_ID() on the server than
//! native auto-increment would. The session corrects it before the next statement that could see it, and leaves ROW_COUNT() as it
//! is, or makes it so again, where that statement asks for it.

use keywright_core::KeyBatch;
use keywright_rewrite::{LastInsertId, Plan, QueryPlan};
use keywright_wire::answer::End;
use keywright_wire::bytes::Reader;
use keywright_wire::capability::FOUND_ROWS;
use keywright_wire::packets::{only_row, single_ok, write_ok_with_id};

use crate::answer::reply::{PendingLastInsertId, Reply, Reported};
use crate::connection::Connection;
use crate::job::Job;
use crate::server::probe::Probe;
use crate::step::Step;

/// Asks what LAST_INSERT_ID() is.
pub(crate) const ASK_LAST_INSERT_ID: &[u8] = b"SELECT LAST_INSERT_ID() LIMIT 1";

impl Connection {
    /// What LAST_INSERT_ID() shows, as far as that is known.
    pub(crate) fn shown_last_insert_id(&self) -> Option<u64> {
        match self.pending_last_insert_id {
            Some(pending) => pending.id(),
            None => self.last_insert_id,
        }
    }

    /// How a statement of so many keys is written. With literals, when its failure would leave its key as LAST_INSERT_ID() and the
    /// value before is not known.
    pub(crate) fn last_insert_id_of(&self, plan: &Plan, keys: u64) -> LastInsertId {
        let may_go_back = plan.ignore() || keys == 1;
        let cannot = self.shown_last_insert_id().is_none() || (plan.ignore() && plan.returning());
        match plan.last_insert_id() {
            LastInsertId::Wrapped if may_go_back && cannot => LastInsertId::Literal,
            last_insert_id => last_insert_id,
        }
    }

    /// Whether LAST_INSERT_ID() must be right before such a statement: it sees it, leaves it when its first row fails, or has
    /// keys that are no numbers, beside which the server may make one of its own.
    pub(crate) fn needs_last_insert_id(
        &self,
        sees: bool,
        last_insert_id: LastInsertId,
        keys: u64,
    ) -> bool {
        self.pending_last_insert_id.is_some()
            && (sees
                || last_insert_id == LastInsertId::None
                || (last_insert_id == LastInsertId::Wrapped && keys > 1))
    }

    /// Whether the key's column is known to be AUTO_INCREMENT in the table of a statement with that rule.
    fn is_auto_increment(&self, rule: usize) -> bool {
        let rule = self.rules.rules().get(rule);
        rule.is_some_and(|rule| rule.is_auto_increment)
    }

    /// What the session must know to correct the answer to a rewritten statement.
    pub(crate) fn reply(
        &self,
        rule: usize,
        plan: &Plan,
        last_insert_id: LastInsertId,
        keys: &KeyBatch,
    ) -> Reply {
        Reply {
            last_insert_id,
            rows: plan.rows(),
            keys: keys.len(),
            first: keys.number(0),
            may_skip: plan.ignore() || plan.on_duplicate(),
            on_duplicate: plan.on_duplicate(),
            may_ignore: plan.ignore(),
            reports_key: self.is_auto_increment(rule),
            may_change: plan.sees_last_insert_id(),
            before: self.shown_last_insert_id(),
        }
    }

    /// Whether an update that changes nothing counts as one row.
    fn counts_found(&self) -> bool {
        self.facts.capabilities & FOUND_ROWS != 0
    }

    /// The same of one that is carried out with many rows of parameters.
    pub(crate) fn reply_of_bulk(
        &self,
        rule: usize,
        (plan, last_insert_id): (&Plan, LastInsertId),
        keys: &KeyBatch,
        rows: u64,
    ) -> Reply {
        Reply {
            rows,
            ..self.reply(rule, plan, last_insert_id, keys)
        }
    }

    /// What is needed to correct the answer to an INSERT … SELECT. If it has more than one row, their number is not known.
    pub(crate) fn reply_of_query(&self, plan: &QueryPlan, keys: &KeyBatch) -> Reply {
        Reply {
            last_insert_id: plan.last_insert_id(),
            rows: u64::from(plan.is_single()),
            keys: keys.len(),
            first: keys.number(0),
            may_skip: plan.may_skip(),
            on_duplicate: plan.on_duplicate(),
            may_ignore: plan.ignore(),
            // Which key it reports of the rows of a SELECT, and whether any, depends on the rows.
            reports_key: false,
            // It is not known what is in the SELECT.
            may_change: true,
            before: self.shown_last_insert_id(),
        }
    }

    /// The answer to a rewritten statement is complete.
    pub(crate) fn answer_insert(&mut self, reply: &Reply, end: Option<End>, answer: &[u8]) {
        self.note_calls(reply);
        let Some((sequence, payload, done)) = single_ok(answer) else {
            if end == Some(End::Error) {
                self.insert_failed(reply);
                self.doubt_tables(answer);
            }
            self.down.extend_from_slice(answer);
            return;
        };
        let id = match reply.reported(done, payload, self.counts_found()) {
            Reported::Before => {
                // The server may have made a number of its own, in another column than the rule's.
                if reply.may_change
                    || (reply.last_insert_id == LastInsertId::None && done.insert_id != 0)
                {
                    self.last_insert_id = None;
                }
                None
            }
            Reported::NotThatKey => {
                (self.pending_last_insert_id, self.last_insert_id) =
                    (reply.before.map(PendingLastInsertId::To), reply.first);
                Some(0)
            }
            Reported::Key(id) => {
                self.inserted(reply, id);
                Some(id)
            }
        };
        let corrected = id
            .filter(|id| *id != done.insert_id)
            .is_some_and(|id| write_ok_with_id(payload, id, sequence, &mut self.down));
        if !corrected {
            self.down.extend_from_slice(answer);
        }
    }

    /// A rewritten statement was answered with rows. Where none came none went in, which leaves what a failure leaves.
    pub(crate) fn insert_returned(&mut self, reply: &Reply, succeeded: bool) {
        self.note_calls(reply);
        let went_in = succeeded && self.answer.has_rows();
        match reply.first {
            Some(id) if went_in => self.inserted(reply, id),
            None if succeeded => self.last_insert_id = None,
            Some(_) | None => self.insert_failed(reply),
        }
    }

    /// A function that a rewritten statement calls may drop a temporary table.
    fn note_calls(&mut self, reply: &Reply) {
        if reply.may_change && !self.context.temporary.is_empty() {
            self.context.doubt();
        }
    }

    fn inserted(&mut self, reply: &Reply, id: u64) {
        match reply.last_insert_id {
            LastInsertId::Literal => {
                self.pending_last_insert_id = Some(PendingLastInsertId::To(id))
            }
            LastInsertId::Wrapped => {
                (self.pending_last_insert_id, self.last_insert_id) = (None, Some(id))
            }
            LastInsertId::None => {}
        }
    }

    /// Native auto-increment keeps LAST_INSERT_ID() when the first row failed, and else shows the first key. So does the server
    /// of several keys; of one it may have been left behind.
    fn insert_failed(&mut self, reply: &Reply) {
        match reply.last_insert_id {
            // None of its keys is ours: it is left, on the server too.
            LastInsertId::Wrapped if reply.keys == 0 => {}
            LastInsertId::Wrapped => {
                self.last_insert_id = None;
                let before = reply.before.filter(|_| reply.keys == 1 || reply.may_skip);
                self.pending_last_insert_id = before.map(PendingLastInsertId::To);
            }
            LastInsertId::Literal if !reply.may_change => {}
            LastInsertId::Literal | LastInsertId::None => self.last_insert_id = None,
        }
    }

    /// An INSERT before which LAST_INSERT_ID() was left has reported that number.
    pub(crate) fn note_reported(&mut self, insert_id: u64) {
        // Of a key that the server has made, which nothing tells from what was there.
        if let Some(PendingLastInsertId::ToWhile { server, .. }) = self.pending_last_insert_id
            && server == insert_id
            && insert_id != 0
        {
            self.pending_last_insert_id = None;
        }
    }

    /// Brings LAST_INSERT_ID() up to date before the command, which is read again afterwards. `counts`: the command asks for
    /// ROW_COUNT(), which a statement of ours sets; then one is chosen that leaves its value.
    pub(crate) fn update_last_insert_id(&mut self, counts: bool) -> Step {
        let pending = self
            .pending_last_insert_id
            .unwrap_or(PendingLastInsertId::To(0));
        let id = pending.expression();
        let text = match self.row_count {
            None if counts => format!("SELECT LAST_INSERT_ID({id}) LIMIT 1"),
            // Behind its table MariaDB would warn of INTO.
            Some(1) if counts => {
                format!("SELECT LAST_INSERT_ID({id}) INTO @keywright FROM DUAL LIMIT 1")
            }
            // Unlike DO it leaves FOUND_ROWS().
            _ => format!("SET last_insert_id={id}"),
        };
        self.ask_by_text(text.as_bytes(), Probe::SetLastInsertId)
    }

    /// Makes ROW_COUNT() what it is to the client, where a question of ours has changed it and the command at the front may ask for it;
    /// that is read again afterwards. `None`: it is so, or was more than 1, which nothing but writing rows makes it.
    pub(crate) fn restore_row_count(&mut self, counts: impl FnOnce() -> bool) -> Option<Step> {
        if self.row_count == self.shown_row_count || !counts() {
            return None;
        }
        let text: &[u8] = match self.shown_row_count {
            None => b"SELECT 0 LIMIT 1",
            // It leaves FOUND_ROWS().
            Some(0) => b"SET @keywright=0",
            Some(1) => b"SELECT 0 INTO @keywright FROM DUAL LIMIT 1",
            Some(_) => return None,
        };
        Some(self.ask_by_text(text, Probe::RestoreRowCount))
    }

    /// Asks what it is.
    pub(crate) fn ask_last_insert_id(&mut self) -> Step {
        self.ask_by_text(ASK_LAST_INSERT_ID, Probe::ReadLastInsertId)
    }

    /// LAST_INSERT_ID() was asked for.
    pub(crate) fn learn_last_insert_id(&mut self, answer: &[u8]) -> Job {
        let row = only_row(answer, 1, self.deprecates_eof());
        let id = row.and_then(|row| std::str::from_utf8(Reader(row).text()?).ok()?.parse().ok());
        match id {
            Some(id) => {
                self.last_insert_id = Some(id);
                Job::Idle
            }
            None => self.fail_own(answer),
        }
    }

    /// LAST_INSERT_ID() was brought up to date, or could not be.
    pub(crate) fn answer_last_insert_id(&mut self, end: Option<End>, answer: &[u8]) -> Job {
        if end == Some(End::Error) {
            self.fail_own(answer)
        } else {
            self.last_insert_id = self.shown_last_insert_id();
            self.pending_last_insert_id = None;
            Job::Idle
        }
    }
}
