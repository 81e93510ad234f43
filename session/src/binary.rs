//! Prepared statements: an INSERT on a table with a rule is prepared with room for its keys.

use std::collections::HashMap;

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{
    Kind, Lid, Plan, Prepared, Sight, Unread, Unsupported, Variant, kind, sight,
};

use crate::answer::{End, Shape};
use crate::bytes::{HEADER_BYTES, Header, Reader, write_packet};
use crate::command::whole;
use crate::insert::{Planned, Reply, is_unsure};
use crate::packets::{
    COM_STMT_PREPARE, COM_STMT_RESET, without_injected, write_close, write_command,
};
use crate::params::{Bound, Execution, KeyValues, Param, Type};
use crate::rules::{Mode, OnExplicit, OnUnsure, Rule};
use crate::session::{After, Gather, Session, Turn};
use crate::step::{KeyFailure, Step};

/// MariaDB's number for the statement that was prepared last.
const LAST_PREPARED: u32 = u32::MAX;

/// A prepared INSERT on a table with a rule.
#[derive(Debug)]
pub(crate) struct Statement {
    rule: usize,
    text: Vec<u8>,
    plan: Plan,
    /// What it was prepared as: the first is the one the client knows.
    variants: Vec<Made>,
    types: Option<Vec<Type>>,
    /// Parameters whose values were sent ahead.
    ahead: Vec<u16>,
}

/// One of a statement's texts, prepared upstream.
#[derive(Debug)]
struct Made {
    variant: Variant,
    /// The distance of neighbouring keys that the text was made for.
    spacing: u64,
    number: u32,
    prepared: Prepared,
}

impl Made {
    /// Whether it serves for that variant while keys are so far apart.
    fn is_for(&self, variant: Variant, spacing: u64) -> bool {
        self.variant == variant && (self.spacing == spacing || !self.prepared.keys_in_text)
    }
}

/// What must be known of a statement that is passed on.
#[derive(Debug, Clone, Copy, Default)]
struct Passed {
    sees: bool,
    opaque: bool,
}

/// All prepared statements of a connection.
#[derive(Debug)]
pub(crate) struct Statements {
    ours: HashMap<u32, Statement>,
    passed: HashMap<u32, Passed>,
    last: u32,
    max: usize,
    /// The one whose PREPARE is under way.
    preparing: Option<Statement>,
    /// The text of a further variant that is being prepared, and for which statement.
    variant: Option<(u32, Made)>,
}

impl Statements {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            ours: HashMap::new(),
            passed: HashMap::new(),
            last: LAST_PREPARED,
            max,
            preparing: None,
            variant: None,
        }
    }

    /// The statement that a number of the client's means.
    fn number(&self, id: u32) -> u32 {
        if id == LAST_PREPARED { self.last } else { id }
    }

    /// A statement was prepared that is passed on.
    pub(crate) fn passed(&mut self, statement: u32, sees: bool, opaque: bool) {
        self.last = statement;
        self.passed.insert(statement, Passed { sees, opaque });
    }
}

/// Longest command that only names a statement, bytes.
const SHORT_BYTES_MAX: usize = 64;

/// What an execution needs.
struct Wanted {
    /// Rows whose bound key asks for one.
    asking: Vec<u32>,
    keys: u64,
    explicit: bool,
}

impl Session {
    pub(crate) fn prepare(&mut self, header: Header, bytes: &[u8]) -> Step {
        let Some(text) = whole(header, bytes) else {
            if header.continues() || header.len > self.facts.limits.rewrite_bytes_max {
                return self.pass(header, bytes, Shape::Prepare, sees_all());
            }
            return Step::More {
                at_least: header.total(),
            };
        };
        match kind(text, &self.context.modes) {
            Kind::Insert | Kind::Replace => {}
            other => {
                let after = After::Prepared {
                    sees: sight(text, &self.context.modes) != Sight::Blind,
                    opaque: is_opaque(other),
                };
                return self.pass(header, bytes, Shape::Prepare, after);
            }
        }
        if !self.may_be_ruled(text) {
            return self.pass(header, bytes, Shape::Prepare, sees_all());
        }
        if !self.context.known {
            return self.ask_context();
        }
        let (index, plan) = match self.plan(text) {
            Ok(Planned::Plan(index, plan)) => (index, plan),
            Ok(Planned::Pass) => return self.pass(header, bytes, Shape::Prepare, sees_all()),
            Ok(Planned::AskColumns(table)) => return self.ask_columns(&table),
            Err((Some(rule), what)) => return self.unsupported_prepare(header, bytes, rule, what),
            Err((None, what)) => return self.refuse_unsupported(header, what),
        };
        let Some(rule) = self.rules.rules().get(index).cloned() else {
            return self.pass(header, bytes, Shape::Prepare, sees_all());
        };
        let nothing = plan.keys() == 0 && plan.key_parameters().is_empty();
        if rule.mode == Mode::Observe || (nothing && rule.on_explicit == OnExplicit::Keep) {
            self.events.observed += u64::from(!nothing);
            return self.pass(header, bytes, Shape::Prepare, sees_all());
        }
        if plan.explicit() && rule.on_explicit == OnExplicit::Refuse {
            return self.refuse_explicit(header, &rule);
        }
        if is_unsure(&plan) && rule.on_unsure == OnUnsure::Refuse {
            return self.refuse_unsure(header);
        }
        if self.statements.ours.len() >= self.statements.max {
            let message = "keywright-proxy: too many prepared statements on tables with rules";
            return self.refuse(header, Cause::MemoryFull, message);
        }
        let variant = plan.variant(None);
        let prepared = match plan.prepare(text, variant, self.context.increment) {
            Ok(prepared) => prepared,
            Err(Unread::Unsupported(what)) => {
                return self.unsupported_prepare(header, bytes, index, what);
            }
            Err(Unread::Refused) => return self.pass(header, bytes, Shape::Prepare, sees_all()),
        };
        write_command(COM_STMT_PREPARE, &prepared.text, &mut self.up);
        self.answer.expect(Shape::Prepare);
        self.statements.preparing = Some(Statement {
            rule: index,
            text: text.to_vec(),
            plan,
            variants: vec![Made {
                variant,
                spacing: self.context.increment,
                number: 0,
                prepared,
            }],
            types: None,
            ahead: Vec::new(),
        });
        self.stage = crate::insert::Stage::default();
        self.turn = Turn::Gather(Gather::Prepare);
        Step::Consumed(header.total())
    }

    fn unsupported_prepare(
        &mut self,
        header: Header,
        bytes: &[u8],
        rule: usize,
        what: Unsupported,
    ) -> Step {
        match self.rules.rules().get(rule) {
            Some(rule) if refuses(rule) => self.refuse_unsupported(header, what),
            Some(_) | None => {
                self.events.passed.push(what.label());
                self.pass(header, bytes, Shape::Prepare, sees_all())
            }
        }
    }

    pub(crate) fn answer_prepare(&mut self, end: Option<End>, answer: &[u8]) {
        let preparing = self.statements.preparing.take();
        let (Some(End::Prepared { statement, .. }), Some(mut ours)) = (end, preparing) else {
            self.down.extend_from_slice(answer);
            return;
        };
        let Some(made) = ours.variants.first_mut() else {
            return;
        };
        made.number = statement;
        let injected: Vec<u16> = made.prepared.injected.iter().map(|one| one.at).collect();
        let deprecates = self.deprecates_eof();
        if injected.is_empty() {
            self.down.extend_from_slice(answer);
        } else if without_injected(answer, &injected, deprecates, &mut self.down).is_none() {
            write_close(statement, &mut self.up);
            self.malformed();
            return;
        }
        self.statements.last = statement;
        self.statements.ours.insert(statement, ours);
    }

    pub(crate) fn execute(&mut self, header: Header, bytes: &[u8]) -> Step {
        if header.len < 5 {
            return self.malformed();
        }
        let Some(id) = bytes
            .get(HEADER_BYTES + 1..)
            .and_then(|rest| Reader(rest).u32())
        else {
            return Step::More {
                at_least: HEADER_BYTES + 5,
            };
        };
        let id = self.statements.number(id);
        if !self.statements.ours.contains_key(&id) {
            return self.execute_passed(header, bytes, id);
        }
        let Some(payload) = whole(header, bytes) else {
            return self.gather_execute(header, bytes);
        };
        let rest = payload.get(4..).unwrap_or_default();
        let Some(statement) = self.statements.ours.get(&id) else {
            return self.malformed();
        };
        let count = usize::try_from(statement.plan.parameters()).unwrap_or(usize::MAX);
        let known = statement.types.as_deref();
        let Some(execution) = Execution::read(rest, count, known, &statement.ahead) else {
            return self.malformed();
        };
        if let (Some(types), Some(statement)) =
            (&execution.types, self.statements.ours.get_mut(&id))
        {
            statement.types = Some(types.clone());
        }
        let Some(statement) = self.statements.ours.get(&id) else {
            return self.malformed();
        };
        if let Some(keys) = self.stage.keys.take() {
            return self.execute_with(header, id, &execution, keys);
        }
        // The modes decide whether a bound 0 asks for a key.
        if !self.context.known {
            return self.ask_context();
        }
        let wanted = match self.wanted(statement, &execution) {
            Ok(wanted) => wanted,
            Err(what) => return self.refuse_execution(header, id, what),
        };
        let (index, asking) = (statement.rule, wanted.asking.first().copied());
        let variant = statement.plan.variant(asking);
        let sees = statement.plan.lid() == Lid::Literal;
        if wanted.explicit
            && let Some(rule) = self.rules.rules().get(index).cloned()
            && rule.on_explicit == OnExplicit::Refuse
        {
            return self.refuse_explicit(header, &rule);
        }
        if self.pending_lid.is_some() && sees {
            return self.update_lid();
        }
        let spacing = self.context.increment;
        let made = statement
            .variants
            .iter()
            .position(|made| made.is_for(variant, spacing));
        if made != Some(0) && !statement.ahead.is_empty() {
            // What was sent ahead went to the first text.
            let what = Unsupported::Unknown("COM_STMT_SEND_LONG_DATA");
            return self.refuse_execution(header, id, what);
        }
        if made.is_none() {
            return self.prepare_variant(header, id, variant);
        }
        if wanted.keys == 0 {
            let none = KeyBatch::Listed(Vec::new());
            return self.execute_with(header, id, &execution, Ok(none));
        }
        self.ask_keys(index, wanted.keys)
    }

    /// An execution is needed whole; one that is longer than what is gathered is refused.
    fn gather_execute(&mut self, header: Header, bytes: &[u8]) -> Step {
        if header.continues() || header.len > self.facts.limits.rewrite_bytes_max {
            crate::packets::write_error(
                Cause::PacketTooLarge,
                "keywright-proxy: parameters of a statement on a table with a rule are longer than rewrite_bytes_max",
                1,
                &mut self.down,
            );
            return Step::Close;
        }
        Step::More {
            at_least: header.total().max(bytes.len() + 1),
        }
    }

    fn execute_passed(&mut self, header: Header, bytes: &[u8], id: u32) -> Step {
        let passed = self.statements.passed.get(&id).copied().unwrap_or_default();
        if passed.sees {
            if self.pending_lid.is_some() {
                return self.update_lid();
            }
            self.lid = None;
        }
        let after = if passed.opaque {
            After::Unknown
        } else {
            After::Nothing
        };
        self.pass(header, bytes, Shape::Results, after)
    }

    fn wanted(
        &self,
        statement: &Statement,
        execution: &Execution<'_>,
    ) -> Result<Wanted, Unsupported> {
        let zero_asks = match self.context.modes.no_auto_value_on_zero {
            Some(off) => !off,
            None => return Err(Unsupported::ZeroUnsure),
        };
        let only_null = statement.plan.lid() == Lid::None;
        let mut wanted = Wanted {
            asking: Vec::new(),
            keys: statement.plan.keys(),
            explicit: statement.plan.explicit(),
        };
        for key in statement.plan.key_parameters() {
            let param = execution.params.get(usize::from(key.parameter));
            let bound = param.map_or(Bound::Unclean, Param::bound);
            match bound {
                Bound::Asks => wanted.asking.push(key.row),
                Bound::Zero if zero_asks && !only_null => wanted.asking.push(key.row),
                Bound::Zero | Bound::Explicit => wanted.explicit = true,
                Bound::Unclean if only_null => wanted.explicit = true,
                Bound::Unclean => {
                    return Err(Unsupported::Key(
                        keywright_rewrite::KeyExpression::NotNumber,
                    ));
                }
            }
        }
        let asking = u64::try_from(wanted.asking.len()).unwrap_or(u64::MAX);
        wanted.keys = wanted.keys.saturating_add(asking);
        Ok(wanted)
    }

    fn prepare_variant(&mut self, header: Header, id: u32, variant: Variant) -> Step {
        let Some(statement) = self.statements.ours.get(&id) else {
            return self.malformed();
        };
        let prepared = statement
            .plan
            .prepare(&statement.text, variant, self.context.increment);
        match prepared {
            Ok(prepared) => {
                write_command(COM_STMT_PREPARE, &prepared.text, &mut self.up);
                let made = Made {
                    variant,
                    spacing: self.context.increment,
                    number: 0,
                    prepared,
                };
                self.statements.variant = Some((id, made));
                self.answer.expect(Shape::Prepare);
                self.turn = Turn::Gather(Gather::Variant);
                Step::Consumed(0)
            }
            Err(Unread::Unsupported(what)) => self.refuse_unsupported(header, what),
            Err(Unread::Refused) => {
                self.refuse_unsupported(header, Unsupported::Unknown("the statement's head"))
            }
        }
    }

    pub(crate) fn answer_variant(&mut self, end: Option<End>, answer: &[u8]) {
        match (end, self.statements.variant.take()) {
            (
                Some(End::Prepared {
                    statement: number, ..
                }),
                Some((id, mut made)),
            ) => {
                made.number = number;
                if let Some(statement) = self.statements.ours.get_mut(&id) {
                    statement.variants.push(made);
                }
            }
            (_, _) => self.fail_own(answer),
        }
    }

    /// Sends the execution with its keys.
    fn execute_with(
        &mut self,
        header: Header,
        id: u32,
        execution: &Execution<'_>,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Step {
        self.stage = crate::insert::Stage::default();
        let Some(statement) = self.statements.ours.get(&id) else {
            return self.malformed();
        };
        let wanted = match self.wanted(statement, execution) {
            Ok(wanted) => wanted,
            Err(what) => return self.refuse_execution(header, id, what),
        };
        let Some(rule) = self.rules.rules().get(statement.rule).cloned() else {
            return self.malformed();
        };
        let keys = match keys.and_then(|keys| match wanted.keys {
            0 => Ok(keys),
            rows => self.spread(&rule, keys, rows),
        }) {
            Ok(keys) => keys,
            Err(failure) => {
                self.forget_ahead(id);
                return self.refuse(header, failure.cause, &failure.message);
            }
        };
        let Some(statement) = self.statements.ours.get(&id) else {
            return self.malformed();
        };
        let variant = statement.plan.variant(wanted.asking.first().copied());
        let spacing = self.context.increment;
        let found = statement
            .variants
            .iter()
            .find(|made| made.is_for(variant, spacing));
        let Some(Made {
            number, prepared, ..
        }) = found
        else {
            return self.malformed();
        };
        let values = KeyValues::new(&keys);
        let Some(params) = place(statement, prepared, execution, &wanted.asking, &values) else {
            return self.malformed();
        };
        let mut payload = Vec::new();
        execution.write(*number, &params, &mut payload);
        let reply = Reply::new(&statement.plan, &keys);
        let returning = statement.plan.returning();
        write_packet(&payload, 0, &mut self.up);
        if let Some(statement) = self.statements.ours.get_mut(&id) {
            statement.ahead.clear();
        }
        self.events.rewritten += u64::from(wanted.keys > 0);
        self.answer.expect(Shape::Results);
        self.turn = if returning {
            Turn::Answer(reply.after_rows())
        } else {
            Turn::Gather(Gather::Insert(reply))
        };
        Step::Consumed(header.total())
    }

    /// COM_STMT_SEND_LONG_DATA: the parameter's index moves by those put in before it.
    pub(crate) fn long_data(&mut self, header: Header, bytes: &[u8]) -> Step {
        const FRONT_BYTES: usize = HEADER_BYTES + 7;
        if header.total() < FRONT_BYTES {
            return self.malformed();
        }
        let Some(front) = bytes.get(..FRONT_BYTES) else {
            return Step::More {
                at_least: FRONT_BYTES,
            };
        };
        let mut reader = Reader(front.get(HEADER_BYTES + 1..).unwrap_or_default());
        let (Some(id), Some(index)) = (reader.u32(), reader.u16()) else {
            return self.malformed();
        };
        let id = self.statements.number(id);
        let Some(statement) = self.statements.ours.get_mut(&id) else {
            return self.pass(header, bytes, Shape::None, After::Nothing);
        };
        if !statement.ahead.contains(&index) {
            statement.ahead.push(index);
        }
        let mut moved = index;
        if let Some(made) = statement.variants.first() {
            for injected in &made.prepared.injected {
                moved = moved.saturating_add(u16::from(injected.at <= moved));
            }
        }
        self.up
            .extend_from_slice(front.get(..FRONT_BYTES - 2).unwrap_or_default());
        self.up.extend(moved.to_le_bytes());
        self.pass_rest(header, FRONT_BYTES)
    }

    pub(crate) fn close(&mut self, header: Header, bytes: &[u8]) -> Step {
        let Some(payload) = whole(header, bytes) else {
            return self.gather_short(header, bytes);
        };
        if let Some(id) = Reader(payload).u32() {
            let id = self.statements.number(id);
            self.statements.passed.remove(&id);
            if let Some(statement) = self.statements.ours.remove(&id) {
                for made in statement.variants.iter().skip(1) {
                    write_close(made.number, &mut self.up);
                }
            }
        }
        self.pass(header, bytes, Shape::None, After::Nothing)
    }

    pub(crate) fn reset_statement(&mut self, header: Header, bytes: &[u8]) -> Step {
        let Some(payload) = whole(header, bytes) else {
            return self.gather_short(header, bytes);
        };
        if let Some(id) = Reader(payload).u32() {
            let id = self.statements.number(id);
            if let Some(statement) = self.statements.ours.get_mut(&id) {
                statement.ahead.clear();
            }
        }
        self.pass(header, bytes, Shape::Simple, After::Nothing)
    }

    /// Waits for the rest of a command that is a few bytes long.
    fn gather_short(&mut self, header: Header, bytes: &[u8]) -> Step {
        if header.len > SHORT_BYTES_MAX {
            return self.malformed();
        }
        Step::More {
            at_least: header.total().max(bytes.len() + 1),
        }
    }

    /// Refuses an execution. What was sent ahead for it must not become part of the next one.
    fn refuse_execution(&mut self, header: Header, id: u32, what: Unsupported) -> Step {
        self.forget_ahead(id);
        self.refuse_unsupported(header, what)
    }

    fn forget_ahead(&mut self, id: u32) {
        let Some(statement) = self.statements.ours.get_mut(&id) else {
            return;
        };
        if statement.ahead.is_empty() {
            return;
        }
        statement.ahead.clear();
        write_command(COM_STMT_RESET, &id.to_le_bytes(), &mut self.up);
        self.answer.expect(Shape::Simple);
        self.turn = Turn::Gather(Gather::Nothing);
    }
}

/// The upstream's parameters: the client's, with keys in place of those that ask and where some were put in.
fn place<'a>(
    statement: &Statement,
    prepared: &Prepared,
    execution: &Execution<'a>,
    asking: &[u32],
    values: &'a KeyValues,
) -> Option<Vec<Param<'a>>> {
    let mut rows: Vec<u32> = prepared.injected.iter().map(|one| one.row).collect();
    rows.extend_from_slice(asking);
    rows.sort_unstable();
    let key_of = |row: u32| values.param(rows.binary_search(&row).ok()?);
    let mut params = execution.params.clone();
    for key in statement.plan.key_parameters() {
        if asking.contains(&key.row) {
            *params.get_mut(usize::from(key.parameter))? = key_of(key.row)?;
        }
    }
    for injected in &prepared.injected {
        let at = usize::from(injected.at);
        if at > params.len() {
            return None;
        }
        params.insert(at, key_of(injected.row)?);
    }
    Some(params)
}

/// A statement of which nothing is known: it may see LAST_INSERT_ID().
fn sees_all() -> After {
    After::Prepared {
        sees: true,
        opaque: false,
    }
}

/// Whether a statement may change what the session must know of the server's state.
fn is_opaque(kind: Kind) -> bool {
    match kind {
        Kind::Set
        | Kind::SetStatement
        | Kind::Use
        | Kind::Call
        | Kind::Execute
        | Kind::ExecuteImmediate
        | Kind::Compound
        | Kind::CreateTemporary
        | Kind::Other => true,
        Kind::Empty
        | Kind::Insert
        | Kind::Replace
        | Kind::LoadData
        | Kind::Select
        | Kind::With
        | Kind::OtherQuery
        | Kind::Update
        | Kind::Delete
        | Kind::Show
        | Kind::Explain
        | Kind::Analyze
        | Kind::Do
        | Kind::Handler
        | Kind::Lock
        | Kind::Unlock
        | Kind::Flush
        | Kind::Kill
        | Kind::Prepare
        | Kind::Deallocate
        | Kind::Begin
        | Kind::Commit
        | Kind::Rollback
        | Kind::Savepoint
        | Kind::Xa
        | Kind::DropTable
        | Kind::CreateRoutine
        | Kind::Ddl => false,
    }
}

fn refuses(rule: &Rule) -> bool {
    rule.on_unsupported == crate::rules::OnUnsupported::Refuse && rule.mode == Mode::Rewrite
}
