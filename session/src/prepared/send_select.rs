//! Executions of a prepared INSERT … SELECT as they go out, with the keys of one try.

use keywright_core::KeyBatch;
use keywright_rewrite::{InQuery, SelectConstruct, Unsupported};
use keywright_wire::bytes::{Header, write_as_many};
use keywright_wire::params::{Execution, Param, Type};
use keywright_wire::values::BadValue;

use crate::client::attributes::UNKNOWN_TYPE;
use crate::client::query::Whole;
use crate::connection::Connection;
use crate::prepared::param_keys::KeyValues;
use crate::step::{KeyFailure, Step};

/// The keys of one try as values of parameters.
enum Range {
    Key(KeyValues),
    /// Rows, first key, spacing.
    Numbers([[u8; 8]; 3]),
}

const LONGLONG: Type = [8, 0];

impl Range {
    /// `None`: a range is wanted, and these keys are none.
    fn of(keys: &KeyBatch, injected: &[InQuery]) -> Option<Self> {
        if injected == [InQuery::Key] {
            return Some(Self::Key(KeyValues::new(keys)));
        }
        match *keys {
            KeyBatch::Numbers {
                first,
                spacing,
                count,
            } => Some(Self::Numbers([count, first, spacing].map(u64::to_le_bytes))),
            KeyBatch::Listed(_) | KeyBatch::Texts(_) | KeyBatch::Bytes(_) => None,
        }
    }

    /// The parameters that were put in, in their order.
    fn params(&self, injected: &[InQuery]) -> Option<Vec<Param<'_>>> {
        let param = |what: &InQuery| {
            let [rows, first, spacing] = match self {
                Self::Key(key) => return key.param(0),
                Self::Numbers(numbers) => numbers,
            };
            let value = match what {
                InQuery::Key => return None,
                InQuery::Rows => rows,
                InQuery::First => first,
                InQuery::Spacing => spacing,
            };
            Some(Param {
                of_type: LONGLONG,
                value: Some(value.as_slice()),
                null: false,
                name: &[],
            })
        };
        injected.iter().map(param).collect()
    }
}

impl Connection {
    /// Reads the parameters, and remembers their types for the next time. `Err`: it was refused.
    pub(super) fn read_select_execution<'a>(
        &mut self,
        header: Header,
        payload: &'a [u8],
        id: u32,
    ) -> Result<Execution<'a>, Step> {
        let named = self.has_attributes();
        let Some(select) = self.statements.selects.get_mut(&id) else {
            return Err(self.refuse_select_execution(header, id, Unsupported::NotAsPlanned));
        };
        let count = select.parameters();
        let (rest, known) = (
            payload.get(4..).unwrap_or_default(),
            select.types.as_deref(),
        );
        match Execution::read(rest, count, known, &select.long_data, named) {
            Ok(execution) => {
                if let Some(types) = &execution.types {
                    select.types = Some(types.clone());
                }
                Ok(execution)
            }
            Err(BadValue::Malformed) => {
                self.forget_long_data(id);
                Err(self.tell_malformed(header))
            }
            Err(BadValue::Type) => Err(self.refuse_select_execution(header, id, UNKNOWN_TYPE)),
        }
    }

    /// Sends a try with these keys. `Err`: it was refused.
    pub(crate) fn send_select_execution(
        &mut self,
        whole: &Whole<'_>,
        id: u32,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Result<KeyBatch, Step> {
        let header = whole.header;
        let execution = self.read_select_execution(header, &whole.payload, id)?;
        let keys = match keys {
            Ok(keys) => keys,
            Err(failure) => {
                self.forget_long_data(id);
                return Err(self.refuse_without_keys(header, &failure));
            }
        };
        let Some(select) = self.statements.selects.get_mut(&id) else {
            return Err(self.refuse_select_execution(header, id, Unsupported::NotAsPlanned));
        };
        let Some(range) = Range::of(&keys, select.injected) else {
            let what = Unsupported::SelectWith(SelectConstruct::UnevenKeys);
            return Err(self.refuse_select_execution(header, id, what));
        };
        let mut params = execution.params.clone();
        let at = usize::from(select.at).min(params.len());
        let Some(injected) = range.params(select.injected) else {
            return Err(self.refuse_select_execution(header, id, Unsupported::NotAsPlanned));
        };
        params.splice(at..at, injected);
        let mut sent = Vec::new();
        execution.write(id, &params, &mut sent);
        if !write_as_many(&sent, header.sequence, &mut self.up) {
            return Err(self.refuse_select_execution(header, id, Unsupported::Longer));
        }
        select.long_data.clear();
        self.answer.expect(execution.shape());
        Ok(keys)
    }
}
