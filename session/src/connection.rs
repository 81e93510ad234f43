//! What a connection knows: the state of its server, what is prepared there, what LAST_INSERT_ID() is, and the answer that is being read.

use std::collections::BTreeMap;
use std::sync::Arc;

use keywright_core::Cause;
use keywright_wire::answer::{Answer, End};
use keywright_wire::bytes::Header;
use keywright_wire::capability::{DEPRECATE_EOF, MULTI_STATEMENTS};

use crate::answer::errors::write_error;
use crate::answer::reply::PendingLastInsertId;
use crate::budget::{Budget, Held};
use crate::insert::in_place::WritesInPlace;
use crate::insert::plan_cache::PlanCache;
use crate::prepared::statements::Statements;
use crate::rules::Rules;
use crate::rules::traffic::UnderWay;
use crate::server::context::Context;
use crate::server::probe::Probe;
use crate::server::question::TableReport;
use crate::step::{Event, KeyFailure, SessionFacts, StatementOutcome, Step};

/// A command's rest that is still to be passed on, or dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandRest {
    pub(crate) left: usize,
    pub(crate) continues: bool,
    /// The command was answered already: its rest goes nowhere.
    pub(crate) is_refused: bool,
}

impl CommandRest {
    pub(crate) fn new(header: Header) -> Self {
        Self {
            left: header.total(),
            continues: header.continues(),
            is_refused: false,
        }
    }
}

/// What a connection knows. Its job is beside it, in [`crate::Session`].
pub(crate) struct Connection {
    pub(crate) rules: Arc<Rules>,
    pub(crate) facts: SessionFacts,
    pub(crate) context: Context,
    pub(crate) statements: Statements,
    pub(crate) plan_cache: PlanCache,
    /// What the server has said of the table of the command at the front.
    pub(crate) table_report: TableReport,
    /// A question of our own that the server has not answered yet; then it is nobody else's turn.
    pub(crate) probe: Option<Probe>,
    /// A command whose rest is still to be passed on.
    pub(crate) rest: Option<CommandRest>,
    pub(crate) answer: Answer,
    /// The upstream's answer to a statement of our own, or one that is to be corrected, as far as it has come.
    pub(crate) gathered: Vec<u8>,
    /// What LAST_INSERT_ID() is on the server, as far as that is known.
    pub(crate) last_insert_id: Option<u64>,
    /// What LAST_INSERT_ID() has to become before anybody can see it.
    pub(crate) pending_last_insert_id: Option<PendingLastInsertId>,
    /// What ROW_COUNT() is on the server; `None`: -1.
    pub(crate) row_count: Option<u64>,
    /// What it is to the client, whose statements alone count.
    pub(crate) shown_row_count: Option<u64>,
    pub(crate) up: Vec<u8>,
    pub(crate) down: Vec<u8>,
    pub(crate) events: Vec<Event>,
    /// The last status flags.
    pub(crate) last_status: u16,
    /// The server has answered with an error since. An error carries no status flags, so a transaction may have begun or ended.
    pub(crate) is_status_old: bool,
    /// Whether COM_CHANGE_USER must not be missed.
    pub(crate) must_see_change_user: bool,
    /// The driver has no memory to gather the command at the front.
    pub(crate) memory_full: bool,
    /// By rule: the spacing of its last keys, where a prepared text was made for another spacing.
    pub(crate) apart: BTreeMap<usize, u64>,
    /// While the driver shows the client's bytes.
    pub(crate) in_place: WritesInPlace,
    /// The memory that texts of prepared statements may take; without it they have no limit.
    pub(crate) budget: Option<Arc<dyn Budget>>,
    /// The rules whose tables this connection is using.
    pub(crate) under_way: Vec<UnderWay>,
    /// A version of the rules that the open transaction does not follow yet.
    pub(crate) goes_on: Option<u64>,
    /// The command at the front has waited for other rules for too long.
    pub(crate) waited: Option<KeyFailure>,
}

impl Connection {
    /// Of a session whose authentication has just succeeded.
    pub(crate) fn new(rules: Arc<Rules>, facts: SessionFacts) -> Self {
        let last_status = facts.status;
        let mut context = Context::new(&facts);
        context.defined = rules.schema().looked();
        Self {
            context,
            answer: Answer::new(facts.capabilities & DEPRECATE_EOF != 0),
            statements: Statements::new(facts.limits.statements_max, facts.server.flavour),
            rules,
            facts,
            plan_cache: PlanCache::default(),
            table_report: TableReport::default(),
            probe: None,
            rest: None,
            gathered: Vec::new(),
            last_insert_id: Some(0),
            pending_last_insert_id: None,
            row_count: Some(0),
            shown_row_count: Some(0),
            up: Vec::new(),
            down: Vec::new(),
            events: Vec::new(),
            last_status,
            is_status_old: false,
            must_see_change_user: false,
            memory_full: false,
            apart: BTreeMap::new(),
            in_place: WritesInPlace::No,
            budget: None,
            under_way: Vec::new(),
            goes_on: None,
            waited: None,
        }
    }

    /// The command at the front is done with.
    pub(crate) fn forget_command(&mut self) {
        self.table_report = TableReport::default();
    }

    /// Memory for a text that is kept, and what was read in it.
    pub(crate) fn hold(&self, bytes: usize) -> Option<Held> {
        Held::new(self.budget.as_ref(), bytes)
    }

    /// Gives memory back that only saves time.
    pub(crate) fn release(&mut self) {
        self.plan_cache = PlanCache::default();
        for buffer in [&mut self.up, &mut self.down, &mut self.gathered] {
            if buffer.is_empty() {
                *buffer = Vec::new();
            }
        }
        if self.events.is_empty() {
            self.events = Vec::new();
        }
        if self.under_way.is_empty() {
            self.under_way = Vec::new();
        }
    }

    /// Longest command that can be gathered now.
    pub(crate) fn gather_bytes_max(&self) -> usize {
        match self.memory_full {
            true => 0,
            false => self.facts.limits.rewrite_bytes_max,
        }
    }

    /// Refuses a command that is needed whole and exceeds the limit or the memory. The session does not wait for its rest.
    pub(crate) fn refuse_long(&mut self, too_long: &str) -> Step {
        let (cause, message) = match self.memory_full {
            true => (
                Cause::MemoryFull,
                "keywright: statement buffer limit reached (memory_bytes_max)",
            ),
            false => (Cause::PacketTooLarge, too_long),
        };
        write_error(cause, message, 1, &mut self.down);
        Step::Close
    }

    pub(crate) fn note(&mut self, rule: Option<usize>, outcome: StatementOutcome) {
        if outcome == StatementOutcome::Rewritten {
            let of = rule.and_then(|rule| self.rules.rules().get(rule));
            self.context
                .note_rows(of.is_none_or(|rule| !rule.repeatable));
        }
        let rule = rule.map(|index| self.rules.configured(index));
        self.events.push(Event { rule, outcome });
    }

    /// Takes in how the answer to the client's command has ended.
    pub(crate) fn note_answered(&mut self, end: Option<End>) {
        self.note_status(end);
        match end {
            Some(End::Ok(_) | End::Error) => self.shown_row_count = self.row_count,
            Some(End::Prepared { .. }) | None => {}
        }
    }

    /// Takes in how any answer has ended.
    pub(crate) fn note_status(&mut self, end: Option<End>) {
        match end {
            Some(End::Ok(done)) => {
                self.last_status = done.status;
                self.is_status_old = false;
                self.row_count = (!done.ends_rows).then_some(done.affected_rows);
            }
            Some(End::Error) => {
                self.is_status_old = true;
                self.row_count = None;
            }
            Some(End::Prepared { .. }) | None => {}
        }
    }

    /// Whether one text may hold several statements.
    pub(crate) fn allows_several(&self) -> bool {
        self.facts.capabilities & MULTI_STATEMENTS != 0
    }

    /// Whether one text may hold several statements, and this one does.
    pub(crate) fn is_several(&self, text: &[u8]) -> bool {
        self.allows_several()
            && memchr::memchr_iter(b';', text).any(|at| {
                text.get(at + 1..)
                    .is_some_and(|rest| !rest.iter().all(u8::is_ascii_whitespace))
            })
    }

    /// Whether answers end without EOF packets.
    pub(crate) fn deprecates_eof(&self) -> bool {
        self.facts.capabilities & DEPRECATE_EOF != 0
    }

    /// The packets make no sense, nor does what follows: the connection ends.
    pub(crate) fn end_out_of_order(&mut self) -> Step {
        self.tell_out_of_order();
        Step::Close
    }

    /// Tells the client of such packets.
    pub(crate) fn tell_out_of_order(&mut self) {
        let message = "keywright: got packets out of order";
        write_error(Cause::PacketMalformed, message, 1, &mut self.down);
    }
}
