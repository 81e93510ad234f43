//! One execution of a prepared INSERT: its parameters, the keys that it needs, and how it goes out with them.

use keywright_core::KeyBatch;
use keywright_rewrite::{AsInteger, LastInsertId, Unsupported, Variant};
use keywright_wire::bytes::{HEADER_BYTES, Header, replace_packet};
use keywright_wire::params::{Execution, Param};
use keywright_wire::values::BadValue;

use crate::client::attributes::UNKNOWN_TYPE;
use crate::connection::Connection;
use crate::job::{Job, Next};
use crate::prepared::computed::ComputedParams;
use crate::prepared::param_keys::{Bound, KeyValues};
use crate::prepared::place::place;
use crate::prepared::statements::{Made, Statement};
use crate::prepared::variant::variant_of;
use crate::step::{KeyFailure, StatementOutcome, Step};

/// What an execution needs.
pub(crate) struct Wanted {
    /// Rows whose bound key asks for one.
    pub(crate) asking: Vec<u32>,
    pub(crate) keys: u64,
    pub(crate) explicit: bool,
}

impl Connection {
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

    /// As [`Connection::last_insert_id_of`]; what was sent as long data went to the first text, which must serve. Where that reports nothing, it
    /// is put right afterwards.
    pub(crate) fn last_insert_id_of_execution(
        &self,
        statement: &Statement,
        keys: u64,
    ) -> LastInsertId {
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

    pub(crate) fn wanted(
        &self,
        statement: &Statement,
        params: &[Param<'_>],
    ) -> Result<Wanted, Unsupported> {
        if self.means_otherwise(statement) {
            return Err(Unsupported::ZeroChanged);
        }
        if self.context.modes.no_auto_value_on_zero.is_none() {
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
            let care = self.care_of(statement, key.row);
            match bound.asks(care, only_null)? {
                true => wanted.asking.push(key.row),
                false => wanted.explicit = true,
            }
        }
        let asking = u64::try_from(wanted.asking.len()).unwrap_or(u64::MAX);
        wanted.keys = wanted.keys.saturating_add(asking);
        Ok(wanted)
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
        let keys = match self.spread_over(statement.rule, keys, wanted.keys) {
            Ok(keys) => keys,
            Err(failure) => {
                self.forget_long_data(id);
                return self.refuse_without_keys(header, &failure).into();
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
        let reply = self.reply(statement.rule, &statement.plan, last_insert_id, &keys);
        let (rule, returning) = (statement.rule, statement.plan.returning());
        let start = self.up.len();
        self.up.extend([0; HEADER_BYTES]);
        execution.write(*number, &params, &mut self.up);
        if !replace_packet(start, header.sequence, &mut self.up) {
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

    /// The keys of an execution as they are spread over so many rows.
    fn spread_over(
        &self,
        rule: usize,
        keys: Result<KeyBatch, KeyFailure>,
        rows: u64,
    ) -> Result<KeyBatch, KeyFailure> {
        let keys = keys?;
        match (rows, self.rules.rules().get(rule)) {
            (0, _) | (_, None) => Ok(keys),
            (rows, Some(rule)) => self.spread(rule, keys, rows),
        }
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
}
