//! COM_STMT_EXECUTE of an INSERT on a table with a rule: the keys become parameters.

use keywright_core::KeyBatch;
use keywright_rewrite::{AsInteger, LastInsertId, LongDataConstruct, Unread, Unsupported, Variant};
use keywright_wire::answer::End;
use keywright_wire::bytes::{HEADER_BYTES, Header, Joined, joined, make_packet};
use keywright_wire::packets::write_close;
use keywright_wire::params::{Execution, Param};
use keywright_wire::values::BadValue;

use crate::client::attributes::UNKNOWN_TYPE;
use crate::client::decode::{self, Undecoded};
use crate::connection::Connection;
use crate::job::{Job, Next};
use crate::judge::{Facts, Verdict, decide, decide_unread};
use crate::prepared::computed::ComputedParams;
use crate::prepared::keyed::KeyedExecution;
use crate::prepared::param_keys::{Bound, KeyValues};
use crate::prepared::place::place;
use crate::prepared::refresh::Refreshed;
use crate::prepared::statements::{Made, Statement};
use crate::server::probe::Probe;
use crate::step::{KeyFailure, StatementOutcome, Step};

/// What an execution needs.
struct Wanted {
    /// Rows whose bound key asks for one.
    asking: Vec<u32>,
    keys: u64,
    explicit: bool,
}

impl Connection {
    pub(crate) fn execute(&mut self, header: Header, bytes: &[u8]) -> Result<Next, Undecoded> {
        let named = decode::executed(header, bytes, 5)?;
        let id = self.statements.number(named);
        if !self.statements.ours.contains_key(&id) {
            return if self.statements.selects.contains_key(&id) {
                Ok(self.execute_select(header, bytes, id))
            } else if self.statements.next_values.contains_key(&id) {
                self.execute_next_value(header, bytes, id)
            } else {
                self.execute_passed(header, bytes, named)
            };
        }
        match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => self.execute_ours(header, &payload, id),
            Joined::More(at_least) => Err(Undecoded::More { at_least }),
            Joined::TooLong => Ok(self.refuse_long_execution().into()),
        }
    }

    /// An execution, which has come whole, of a statement that was prepared with room for keys.
    #[inline]
    fn execute_ours(&mut self, header: Header, payload: &[u8], id: u32) -> Result<Next, Undecoded> {
        // The modes decide whether a bound 0 asks for a key, and an insert_id of the client's whether any may be had.
        if !self.context.known {
            return Ok(self.ask_context().into());
        }
        let is_passed = match self.refresh(header, id) {
            Refreshed::Ours => false,
            Refreshed::Passed => true,
            Refreshed::Not(step) => return Ok(step.into()),
        };
        let Some(statement) = self.statements.ours.get(&id) else {
            let what = Unsupported::NotAsPlanned;
            return Ok(self.refuse_execution(header, id, what).into());
        };
        let (rule, asks_by_value) = (statement.rule, statement.asks_by_value());
        let counts = statement.counts;
        if let Some(step) = self.enter(header, Some(rule)) {
            return Ok(step.into());
        }
        if let Some(step) = self.restore_row_count(|| counts) {
            return Ok(step.into());
        }
        let rest = payload.get(4..).unwrap_or_default();
        let is_native = !self.rewrites(rule);
        Ok(match is_passed || self.context.insert_id_set || is_native {
            true => self.execute_unkeyed(header, id, rest),
            false => self.execute_keyed((header, id), rest, asks_by_value),
        })
    }

    /// An execution that gets no keys.
    fn execute_unkeyed(&mut self, header: Header, id: u32, rest: &[u8]) -> Next {
        let execution = match self.read_execution(header, id, rest) {
            Ok(execution) => execution,
            Err(step) => return step.into(),
        };
        let statement = self.statements.ours.get(&id);
        if statement.is_some_and(|statement| !statement.long_data.is_empty()) {
            let what = Unsupported::LongData(LongDataConstruct::AsItIs);
            return self.refuse_execution(header, id, what).into();
        }
        self.execute_as_is(header, id, &execution)
    }

    /// One that this forbids keys: it goes out as it is where its rule says so.
    fn leave_execution(
        &mut self,
        (header, id): (Header, u32),
        rest: &[u8],
        what: Unsupported,
    ) -> Next {
        let rule = self.rule_of_statement(id);
        if decide_unread(self.policy(rule), what).is_err() {
            return self.refuse_execution(header, id, what).into();
        }
        let next = self.execute_unkeyed(header, id, rest);
        // Otherwise something comes first, or it was refused all the same.
        if matches!(next.job, Job::Passing { .. }) {
            self.forget_command();
            self.note(rule, StatementOutcome::Passed(what.label()));
            self.note(rule, StatementOutcome::Native(None));
        }
        next
    }

    /// One that gets keys, if it asks for any.
    fn execute_keyed(
        &mut self,
        (header, id): (Header, u32),
        rest: &[u8],
        asks_by_value: bool,
    ) -> Next {
        let computed = match self.computed_params(header, id) {
            Ok(computed) => computed,
            Err(step) => return step.into(),
        };
        // Often values matter only once there are keys beside them.
        let read = asks_by_value.then(|| self.read_keyed(header, id, rest, &computed));
        let execution = match read.transpose() {
            Ok(execution) => execution,
            Err(step) => return step.into(),
        };
        let Some(statement) = self.statements.ours.get(&id) else {
            return self
                .refuse_execution(header, id, Unsupported::NotAsPlanned)
                .into();
        };
        let params = execution.as_ref().map_or(&[][..], |read| &read.params);
        let wanted = match self.wanted(statement, params) {
            Ok(wanted) => wanted,
            Err(what) => return self.leave_execution((header, id), rest, what),
        };
        let (index, asking) = (statement.rule, wanted.asking.first().copied());
        let last_insert_id = self.last_insert_id_of_execution(statement, wanted.keys);
        let variant = variant_of(statement, asking, last_insert_id);
        let sees = statement.plan.last_insert_id() == LastInsertId::Literal;
        let facts = Facts {
            own_keys: wanted.explicit.into(),
            ..Facts::of_rows(&statement.plan, wanted.keys > 0)
        };
        match decide(self.policy(Some(index)), &facts) {
            Verdict::Rewrite | Verdict::Pass | Verdict::Observe(_) => {}
            Verdict::Leave(what) => return self.leave_execution((header, id), rest, what),
            Verdict::Refuse(reason) => {
                return self.refuse_for(header, Some(index), reason).into();
            }
        }
        if self.needs_last_insert_id(sees, last_insert_id, wanted.keys) {
            return self.update_last_insert_id(statement.counts).into();
        }
        let spacing = self.spacing_of(index);
        let made = statement
            .variants
            .iter()
            .position(|made| made.is_for(variant, spacing));
        if made != Some(0) && !statement.long_data.is_empty() {
            // What was sent as long data went to the first text.
            let what = Unsupported::LongData(LongDataConstruct::AnotherText);
            return self.refuse_execution(header, id, what).into();
        }
        if made.is_none() {
            return self.prepare_variant(header, id, variant).into();
        }
        match &execution {
            Some(execution) if wanted.keys == 0 => {
                let none = KeyBatch::Listed(Vec::new());
                self.execute_with(header, id, execution, Ok(none))
            }
            Some(_) | None => KeyedExecution::begin(self, (id, false), index, wanted.keys),
        }
    }

    /// Reads the parameters, and remembers their types for the next time. `Err`: it was refused.
    pub(crate) fn read_execution<'a>(
        &mut self,
        header: Header,
        id: u32,
        rest: &'a [u8],
    ) -> Result<Execution<'a>, Step> {
        let has_attributes = self.has_attributes();
        let Some(statement) = self.statements.ours.get_mut(&id) else {
            return Err(self.tell_malformed(header));
        };
        let count = statement.parameters();
        let known = statement.types.as_deref();
        match Execution::read(rest, count, known, &statement.long_data, has_attributes) {
            Ok(execution) => {
                if let Some(types) = &execution.types
                    && statement.types.as_ref() != Some(types)
                {
                    statement.types = Some(types.clone());
                }
                Ok(execution)
            }
            // As the server says it, which does not get it.
            Err(BadValue::Malformed) => {
                self.forget_long_data(id);
                Err(self.tell_malformed(header))
            }
            Err(BadValue::Type) => Err(self.refuse_execution(header, id, UNKNOWN_TYPE)),
        }
    }

    /// The same with the keys that the server has computed among them.
    pub(crate) fn read_keyed<'a>(
        &mut self,
        header: Header,
        id: u32,
        rest: &'a [u8],
        computed: &'a ComputedParams,
    ) -> Result<Execution<'a>, Step> {
        let mut execution = self.read_execution(header, id, rest)?;
        computed.put_among(&mut execution.params);
        Ok(execution)
    }

    /// An execution is needed whole.
    pub(crate) fn refuse_long_execution(&mut self) -> Step {
        self.refuse_long(
            "keywright: parameters of a statement on a table with a rule are longer than rewrite_bytes_max",
        )
    }

    /// As [`Connection::last_insert_id_of`]; what was sent as long data went to the first text, which must serve. Where that reports nothing, it
    /// is put right afterwards.
    fn last_insert_id_of_execution(&self, statement: &Statement, keys: u64) -> LastInsertId {
        if statement.long_data.is_empty() {
            return self.last_insert_id_of(&statement.plan, keys);
        }
        let first = statement.variants.first();
        match statement.plan.last_insert_id() {
            LastInsertId::Wrapped if first.is_some_and(|made| made.variant == Variant::LITERAL) => {
                LastInsertId::Literal
            }
            last_insert_id => last_insert_id,
        }
    }

    fn wanted(&self, statement: &Statement, params: &[Param<'_>]) -> Result<Wanted, Unsupported> {
        if self.means_otherwise(statement) {
            return Err(Unsupported::ZeroChanged);
        }
        let modes = &self.context.modes;
        if modes.no_auto_value_on_zero.is_none() {
            return Err(Unsupported::ZeroAmbiguous);
        }
        let only_null = statement.plan.last_insert_id() == LastInsertId::None;
        let mut wanted = Wanted {
            asking: Vec::new(),
            keys: statement.plan.keys(),
            explicit: statement.plan.explicit(),
        };
        for key in statement.plan.key_parameters() {
            let param = params.get(usize::from(key.parameter));
            let bound = param.map_or(Bound::Value(AsInteger::Unclean), Bound::of);
            let care = statement.plan.care(modes, key.row);
            match bound.asks(care, only_null)? {
                true => wanted.asking.push(key.row),
                false => wanted.explicit = true,
            }
        }
        let asking = u64::try_from(wanted.asking.len()).unwrap_or(u64::MAX);
        wanted.keys = wanted.keys.saturating_add(asking);
        Ok(wanted)
    }

    /// Whether sql_mode has changed since a statement was prepared, so that a key in its text means something else now.
    pub(crate) fn means_otherwise(&self, statement: &Statement) -> bool {
        let (zero_is_value, _) = statement.sql_mode;
        let plan = &statement.plan;
        (plan.by_mode() && statement.sql_mode != self.sql_mode())
            || (plan.for_zero() && zero_is_value != self.context.modes.no_auto_value_on_zero)
    }

    pub(crate) fn prepare_variant(&mut self, header: Header, id: u32, variant: Variant) -> Step {
        let Some(statement) = self.statements.ours.get(&id) else {
            return self.refuse_execution(header, id, Unsupported::NotAsPlanned);
        };
        let of = self.statements.text(id);
        if of.is_none_or(|of| self.means_others(&of)) {
            return self.refuse_execution(header, id, Unsupported::Elsewhere);
        }
        let spacing = self.spacing_of(statement.rule);
        let prepared = statement.plan.prepare(&statement.text, variant, spacing);
        match prepared {
            Ok(mut prepared) => {
                let text = std::mem::take(&mut prepared.text);
                let made = Made {
                    variant,
                    spacing,
                    number: 0,
                    prepared,
                    is_outdated: false,
                };
                self.ask_by_preparing(&text, Probe::Variant(id, Box::new(made)))
            }
            Err(Unread::Unsupported(what)) => {
                self.refuse_unsupported(header, self.rule_of_statement(id), what)
            }
            Err(Unread::Refused) => {
                let what = Unsupported::NotAsPlanned;
                self.refuse_unsupported(header, self.rule_of_statement(id), what)
            }
        }
    }

    pub(crate) fn answer_variant(
        &mut self,
        id: u32,
        made: Made,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        match end {
            Some(End::Prepared {
                statement: number, ..
            }) => {
                let made = Made { number, ..made };
                let ours = self.statements.ours.get_mut(&id);
                if let Some(old) = ours.and_then(|statement| statement.add_variant(made)) {
                    write_close(old.number, &mut self.up);
                }
                Job::Idle
            }
            Some(End::Ok(_) | End::Error) | None => self.fail_own(answer),
        }
    }

    /// Sends the execution with its keys.
    pub(crate) fn execute_with(
        &mut self,
        header: Header,
        id: u32,
        execution: &Execution<'_>,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Next {
        self.forget_command();
        let Some(statement) = self.statements.ours.get(&id) else {
            return self
                .refuse_execution(header, id, Unsupported::NotAsPlanned)
                .into();
        };
        let wanted = match self.wanted(statement, &execution.params) {
            Ok(wanted) => wanted,
            Err(what) => return self.refuse_execution(header, id, what).into(),
        };
        let rule = self.rules.rules().get(statement.rule);
        let keys = match keys.and_then(|keys| match (wanted.keys, rule) {
            (0, _) | (_, None) => Ok(keys),
            (rows, Some(rule)) => self.spread(rule, keys, rows),
        }) {
            Ok(keys) => keys,
            Err(failure) => {
                self.forget_long_data(id);
                return self.refuse(header, failure.cause, &failure.message).into();
            }
        };
        let last_insert_id = self.last_insert_id_of_execution(statement, wanted.keys);
        let variant = variant_of(statement, wanted.asking.first().copied(), last_insert_id);
        let found = statement
            .variants
            .iter()
            .find(|made| made.is_for(variant, self.spacing_of(statement.rule)));
        let Some(
            made @ Made {
                number, prepared, ..
            },
        ) = found
        else {
            // It was there when the keys were asked for.
            return self
                .refuse_execution(header, id, Unsupported::NotAsPlanned)
                .into();
        };
        if !made.counts_as(&keys) {
            return self.count_otherwise(header, id, variant, &keys).into();
        }
        let values = KeyValues::new(&keys);
        let Some(params) = place(statement, prepared, execution, &wanted.asking, &values) else {
            return self
                .refuse_execution(header, id, Unsupported::NotAsPlanned)
                .into();
        };
        let reply = self.reply(&statement.plan, last_insert_id, &keys);
        let (rule, returning) = (statement.rule, statement.plan.returning());
        let start = self.up.len();
        self.up.extend([0; HEADER_BYTES]);
        execution.write(*number, &params, &mut self.up);
        if make_packet(start, &mut self.up) != header.sequence {
            self.up.truncate(start);
            return self
                .refuse_execution(header, id, Unsupported::Longer)
                .into();
        }
        if let Some(statement) = self.statements.ours.get_mut(&id) {
            statement.long_data.clear();
        }
        if wanted.keys > 0 {
            self.note(Some(rule), StatementOutcome::Rewritten);
        }
        self.answer.expect(execution.shape());
        Job::of_reply(reply, returning).with(Step::Consumed(header.total()))
    }

    /// Another text, since the one there is would make other keys out of the first than these, which are burnt.
    fn count_otherwise(
        &mut self,
        header: Header,
        id: u32,
        variant: Variant,
        keys: &KeyBatch,
    ) -> Step {
        let what = Unsupported::KeysApart;
        let Some(statement) = self.statements.ours.get(&id) else {
            return self.refuse_execution(header, id, Unsupported::NotAsPlanned);
        };
        let KeyBatch::Numbers { spacing, .. } = *keys else {
            return self.refuse_execution(header, id, what);
        };
        self.apart.insert(statement.rule, spacing);
        if !statement.long_data.is_empty() {
            // What was sent as long data went to the first text.
            return self.refuse_execution(header, id, what);
        }
        self.prepare_variant(header, id, variant)
    }

    /// Refuses an execution. What was sent as long data for it must not become part of the next one.
    pub(crate) fn refuse_execution(&mut self, header: Header, id: u32, what: Unsupported) -> Step {
        self.forget_long_data(id);
        let rule = self.rule_of_statement(id);
        self.refuse_unsupported(header, rule, what)
    }

    pub(crate) fn rule_of_statement(&self, id: u32) -> Option<usize> {
        self.statements
            .ours
            .get(&id)
            .map(|statement| statement.rule)
    }

    fn forget_long_data(&mut self, id: u32) {
        let Some(statement) = self.statements.ours.get_mut(&id) else {
            return;
        };
        if statement.long_data.is_empty() {
            return;
        }
        statement.long_data.clear();
        self.ask_to_forget(id);
    }
}

/// The text for an execution: its first key is that of a row whose key is written, or of the first that asks for one.
fn variant_of(statement: &Statement, asking: Option<u32>, last_insert_id: LastInsertId) -> Variant {
    match last_insert_id {
        LastInsertId::Wrapped => statement.plan.variant(asking),
        LastInsertId::Literal | LastInsertId::None => Variant::LITERAL,
    }
}
