//! The state machine: what a connection knows, and what becomes of the bytes of both sides.

mod follow;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use keywright_core::{Cause, KeyBatch};
use keywright_wire::answer::{Answer, End, Outcome};
use keywright_wire::bytes::{HEADER_BYTES, Header};
use keywright_wire::capability::{DEPRECATE_EOF, MULTI_STATEMENTS};
use keywright_wire::protocol::IN_TRANSACTION;

use crate::answer::last_insert_id::PendingLastInsertId;
use crate::answer::passing::Passing;
use crate::budget::{Budget, Held};
use crate::client::multi_statement::MultiStatement;
use crate::client::show::Show;
use crate::flow::Flow;
use crate::insert::in_place::Rewriting;
use crate::insert::native::AtFence;
use crate::insert::plan::PlanCache;
use crate::insert::values::Stage;
use crate::prepared::statements::Statements;
use crate::rules::Rules;
use crate::rules::traffic::UnderWay;
use crate::server::context::Context;
use crate::server::probe::Probe;
use crate::server::question::Told;
use crate::step::{Event, KeyFailure, SessionFacts, StatementOutcome, Step};

pub use follow::RulesUpdate;
pub(crate) use turn::{Gather, Turn};

/// One connection after its authentication.
pub struct Session {
    pub(crate) rules: Arc<Rules>,
    pub(crate) facts: SessionFacts,
    pub(crate) context: Context,
    pub(crate) statements: Statements,
    pub(crate) plan_cache: PlanCache,
    /// What is known of the command that is at the front of the client's bytes.
    pub(crate) stage: Stage,
    /// What the server has said of its table.
    pub(crate) told: Told,
    pub(crate) turn: Turn,
    /// A question of our own that the server has not answered yet; then it is nobody else's turn.
    pub(crate) probe: Option<Probe>,
    /// For passthrough.
    pub(crate) flow: Flow,
    /// A command whose rest is still to be passed on.
    pub(crate) passing: Option<Passing>,
    pub(crate) answer: Answer,
    /// The upstream's answer to a statement of our own, or one that is to be corrected, as far as it has come.
    pub(crate) gathered: Vec<u8>,
    /// What LAST_INSERT_ID() is on the server, as far as that is known.
    pub(crate) last_insert_id: Option<u64>,
    /// What LAST_INSERT_ID() has to become before anybody can see it.
    pub(crate) pending_last_insert_id: Option<PendingLastInsertId>,
    /// What ROW_COUNT() is on the server; `None`: -1.
    pub(crate) row_count: Option<u64>,
    pub(crate) up: Vec<u8>,
    pub(crate) down: Vec<u8>,
    events: Vec<Event>,
    /// The last status flags.
    pub(crate) last_status: u16,
    /// The server has answered with an error since. An error carries no status flags, so a transaction may have begun or ended.
    pub(crate) is_status_old: bool,
    /// Whether the client gets an answer to SHOW KEYWRIGHT.
    pub(crate) sees_status: bool,
    /// The list that the client has asked for.
    pub(crate) show: Option<Box<Show>>,
    /// The command at the front was answered already: a question of ours to the server failed, and the client got that error.
    pub(crate) drop_command: bool,
    /// Statements of one text that are sent one by one.
    pub(crate) multi_statement: Option<MultiStatement>,
    /// Whether COM_CHANGE_USER must not be missed.
    pub(crate) must_see_change_user: bool,
    /// The driver has no memory to gather the command at the front.
    pub(crate) memory_full: bool,
    /// Bytes of query attributes before the text at the front.
    pub(crate) front: usize,
    /// By rule: the spacing of its last keys, where a prepared text was made for another spacing.
    pub(crate) apart: BTreeMap<usize, u64>,
    /// Whether the client's bytes may be written to.
    pub(crate) writes_in_place: bool,
    /// A statement that is rewritten where it lies.
    pub(crate) rewriting: Option<Rewriting>,
    /// The memory that texts of prepared statements may take; without it they have no limit.
    pub(crate) budget: Option<Arc<dyn Budget>>,
    /// The rules whose tables this connection is using.
    pub(crate) under_way: Vec<UnderWay>,
    /// A version of the rules that the open transaction does not follow yet.
    pub(crate) goes_on: Option<u64>,
    /// The server has refused the command at the front at the fence.
    pub(crate) at_fence: Option<AtFence>,
    /// The command that is passed on may be an INSERT whose rows the server leaves out at the fence.
    pub(crate) watches_fence: bool,
    /// The command at the front has waited for other rules for too long.
    pub(crate) waited: Option<KeyFailure>,
}

impl Session {
    /// A session whose authentication has just succeeded. Without rules it is a passthrough.
    pub fn new(rules: Arc<Rules>, facts: SessionFacts) -> Self {
        let turn = if rules.is_empty() {
            Turn::Passthrough
        } else {
            Turn::Command
        };
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
            stage: Stage::default(),
            told: Told::default(),
            turn,
            probe: None,
            flow: Flow::new(last_status),
            passing: None,
            gathered: Vec::new(),
            last_insert_id: Some(0),
            pending_last_insert_id: None,
            row_count: Some(0),
            up: Vec::new(),
            down: Vec::new(),
            events: Vec::new(),
            last_status,
            is_status_old: false,
            sees_status: false,
            show: None,
            drop_command: false,
            multi_statement: None,
            must_see_change_user: false,
            memory_full: false,
            front: 0,
            apart: BTreeMap::new(),
            writes_in_place: false,
            rewriting: None,
            budget: None,
            under_way: Vec::new(),
            goes_on: None,
            at_fence: None,
            watches_fence: false,
            waited: None,
        }
    }

    /// The same, but never a passthrough: whoever authenticates on this connection does so through the driver.
    #[must_use]
    pub fn must_see_change_user(self) -> Self {
        Self {
            turn: Turn::Command,
            must_see_change_user: true,
            ..self
        }
    }

    /// The same, whose prepared statements take their memory from there.
    #[must_use]
    pub fn with_budget(self, budget: Arc<dyn Budget>) -> Self {
        Self {
            budget: Some(budget),
            ..self
        }
    }

    /// Memory for a text that is kept, and what was read in it.
    pub(crate) fn hold(&self, bytes: usize) -> Option<Held> {
        Held::new(self.budget.as_ref(), bytes)
    }

    /// The driver has no memory for the bytes that the session asked for. The client's command is passed on if its beginning
    /// suffices to judge it, and refused otherwise.
    pub fn memory_full(&mut self) {
        self.memory_full = true;
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
        crate::answer::errors::write_error(cause, message, 1, &mut self.down);
        Step::Close
    }

    /// Starts over after COM_CHANGE_USER, which the driver has carried out. An earlier COM_SET_OPTION stays in force.
    pub fn reset(&mut self, facts: SessionFacts) {
        let several = self.facts.capabilities & MULTI_STATEMENTS;
        let facts = SessionFacts {
            capabilities: facts.capabilities & !MULTI_STATEMENTS | several,
            ..facts
        };
        let fresh = Self {
            budget: self.budget.take(),
            ..Self::new(Arc::clone(&self.rules), facts)
        };
        *self = if self.must_see_change_user {
            fresh.must_see_change_user()
        } else {
            fresh
        };
    }

    /// Starts over after the server has refused COM_CHANGE_USER: user and database stay, everything else has to be asked for.
    pub fn refused(&mut self) {
        let sees_status = self.sees_status;
        let facts = SessionFacts {
            database: self.context.database.clone(),
            ..self.facts.clone()
        };
        self.reset(facts);
        self.sees_status = sees_status;
        self.last_insert_id = None;
    }

    /// Bytes to be sent to the upstream before anything else.
    pub fn to_upstream(&mut self) -> &mut Vec<u8> {
        &mut self.up
    }

    /// Bytes to be sent to the client before anything else.
    pub fn to_client(&mut self) -> &mut Vec<u8> {
        &mut self.down
    }

    /// What happened since the driver last emptied it.
    pub fn events(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    pub(crate) fn note(&mut self, rule: Option<usize>, outcome: StatementOutcome) {
        let rule = rule.map(|index| self.rules.configured(index));
        self.events.push(Event { rule, outcome });
    }

    /// Whether neither a command nor a transaction is under way, so that the connection can be ended here.
    pub fn is_between_commands(&self) -> bool {
        self.is_clients_turn()
            && self.passing.is_none()
            && self.multi_statement.is_none()
            && self.last_status & IN_TRANSACTION == 0
    }

    /// Whether the next command is waited for, or the one at the front is to be looked at.
    pub(crate) fn is_clients_turn(&self) -> bool {
        matches!(self.turn, Turn::Command) && self.probe.is_none()
    }

    /// Keys, or why there are none; afterwards the client's side is asked again.
    pub fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        if matches!(self.turn, Turn::Keys) {
            self.turn = Turn::Command;
            self.stage.keys = Some(keys);
        }
    }

    /// What to do with the client's bytes that were not consumed yet.
    pub fn on_client(&mut self, bytes: &[u8]) -> Step {
        match self.multi_statement.take() {
            Some(multi_statement) => self.on_client_of_multi(multi_statement),
            None => match self.show_asked(bytes) {
                Some(step) => step,
                None => self.on_client_plain(bytes),
            },
        }
    }

    pub(crate) fn on_client_plain(&mut self, bytes: &[u8]) -> Step {
        if self.passing.is_some() {
            return self.pass_on(bytes);
        }
        if self.probe.is_some() {
            return Step::Blocked;
        }
        match self.turn {
            Turn::Passthrough if bytes.is_empty() => Step::More { at_least: 1 },
            Turn::Passthrough => {
                self.flow.on_client(bytes);
                Step::Forward(bytes.len())
            }
            Turn::Command => match (self.drop_command, self.command(bytes)) {
                (false, Step::Consumed(count)) => self.drop_rest(count, bytes),
                (_, step) => step,
            },
            Turn::Answer(_) if self.answer.wants_local_file() => self.local_file(bytes),
            Turn::Gather(Gather::Load) if self.answer.wants_local_file() => self.send_file(bytes),
            Turn::File => self.take_file(bytes),
            Turn::Answer(_) | Turn::Gather(_) | Turn::Keys => Step::Blocked,
        }
    }

    /// What to do with the upstream's bytes that were not consumed yet.
    pub fn on_upstream(&mut self, bytes: &[u8]) -> Step {
        if bytes.is_empty() {
            return Step::More { at_least: 1 };
        }
        match self.multi_statement.take() {
            Some(multi_statement) => self.on_upstream_of_multi(multi_statement, bytes),
            None => self.on_upstream_plain(bytes),
        }
    }

    pub(crate) fn on_upstream_plain(&mut self, bytes: &[u8]) -> Step {
        if self.probe.is_some() {
            return self.gather(bytes);
        }
        match self.turn {
            // Nobody asked: the server says why it is about to close.
            Turn::Command | Turn::File | Turn::Keys => Step::Forward(bytes.len()),
            Turn::Passthrough => {
                self.flow.on_upstream(bytes);
                Step::Forward(bytes.len())
            }
            Turn::Answer(_) => self.pass_answer(bytes),
            Turn::Gather(_) => self.gather(bytes),
        }
    }

    fn pass_answer(&mut self, bytes: &[u8]) -> Step {
        let walked = self.answer.walk(bytes);
        match walked.outcome {
            Outcome::Going if walked.bytes == 0 => Step::More {
                at_least: wanted(bytes),
            },
            Outcome::Going | Outcome::LocalFile => Step::Forward(walked.bytes),
            Outcome::Ended(end) => {
                self.note_status(end);
                if let Turn::Answer(after) = std::mem::replace(&mut self.turn, Turn::Command) {
                    if self.may_have_left_out(end) {
                        let answer = bytes.get(..walked.bytes).unwrap_or_default();
                        let (before, last) =
                            answer.split_at_checked(walked.last).unwrap_or_default();
                        self.down.extend_from_slice(before);
                        self.ask_what_was_left_out((after, end), last);
                        return Step::Consumed(walked.bytes);
                    }
                    self.finish(after, end);
                    self.leave();
                }
                Step::Forward(walked.bytes)
            }
            Outcome::Endless => {
                self.turn = Turn::Passthrough;
                Step::Forward(bytes.len())
            }
            Outcome::Malformed => self.malformed(),
        }
    }

    fn gather(&mut self, bytes: &[u8]) -> Step {
        let walked = self.answer.walk(bytes);
        let now = bytes.get(..walked.bytes).unwrap_or_default();
        match walked.outcome {
            Outcome::Going if walked.bytes == 0 => Step::More {
                at_least: wanted(bytes),
            },
            Outcome::Going => {
                self.gathered.extend_from_slice(now);
                if self.gathered.len() > GATHERED_BYTES_MAX {
                    return self.malformed();
                }
                Step::Consumed(walked.bytes)
            }
            Outcome::Ended(end) => {
                self.note_status(end);
                let mut before = std::mem::take(&mut self.gathered);
                // Mostly it comes whole.
                let answer = match before.is_empty() {
                    true => now,
                    false => {
                        before.extend_from_slice(now);
                        &before
                    }
                };
                if let Some(probe) = self.probe.take() {
                    self.answer_probe(probe, end, answer);
                    self.leave();
                    return Step::Consumed(walked.bytes);
                }
                match std::mem::replace(&mut self.turn, Turn::Command) {
                    Turn::Gather(gather) => {
                        self.gathered(gather, end, answer);
                        self.leave();
                    }
                    Turn::Command
                    | Turn::Answer(_)
                    | Turn::File
                    | Turn::Keys
                    | Turn::Passthrough => {}
                }
                Step::Consumed(walked.bytes)
            }
            Outcome::LocalFile => self.file_wanted(now),
            Outcome::Endless | Outcome::Malformed => self.malformed(),
        }
    }

    fn note_status(&mut self, end: Option<End>) {
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

    /// Whether answers end without EOF packets.
    pub(crate) fn deprecates_eof(&self) -> bool {
        self.facts.capabilities & DEPRECATE_EOF != 0
    }

    /// The packets make no sense, nor does what follows: the connection ends.
    pub(crate) fn malformed(&mut self) -> Step {
        crate::answer::errors::write_error(
            Cause::PacketMalformed,
            "keywright: got packets out of order",
            1,
            &mut self.down,
        );
        Step::Close
    }
}

/// Longest answer that is gathered: to statements of our own, to INSERTs, and to a PREPARE with its 65,535 parameters.
const GATHERED_BYTES_MAX: usize = 16 << 20;

/// How much of the packet at the front there must be.
fn wanted(bytes: &[u8]) -> usize {
    Header::read(bytes).map_or(HEADER_BYTES, |header| header.total().max(bytes.len() + 1))
}
