//! A prepared INSERT whose keys the server computes: its text gets parameters in their place, and the server is asked for their values
//! at each execution.

use keywright_rewrite::{KeyExpression, Unsupported};
use keywright_wire::bytes::Header;
use keywright_wire::params::{Param, Type, UNSIGNED};

use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::plan::Planned;
use crate::job::Next;
use crate::prepared::statements::ComputedStatement;
use crate::server::probe::Probe;
use crate::server::question::ComputedValues;
use crate::step::Step;

const SIGNED: Type = [8, 0];
const NO_SIGN: Type = [8, UNSIGNED];

/// The values of computed keys as parameters, and which they are, ascending.
#[derive(Debug, Default)]
pub(crate) struct ComputedParams(Vec<(u16, Type, Option<[u8; 8]>)>);

impl ComputedParams {
    fn of(positions: &[u16], values: &[Option<i128>]) -> Option<Self> {
        let params = positions.iter().zip(values).map(|(position, value)| {
            let (of_type, value) = match value {
                None => (SIGNED, None),
                Some(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                    (Ok(value), _) => (SIGNED, Some(value.to_le_bytes())),
                    (_, Ok(value)) => (NO_SIGN, Some(value.to_le_bytes())),
                    (Err(_), Err(_)) => return None,
                },
            };
            Some((*position, of_type, value))
        });
        Some(Self(params.collect::<Option<_>>()?))
    }

    /// Puts them among the client's.
    pub(crate) fn put_among<'a>(&'a self, params: &mut Vec<Param<'a>>) {
        for (position, of_type, value) in &self.0 {
            let at = usize::from(*position).min(params.len());
            let param = Param {
                of_type: *of_type,
                value: value.as_ref().map(<[u8; 8]>::as_slice),
                null: value.is_none(),
                name: &[],
            };
            params.insert(at, param);
        }
    }
}

impl Connection {
    /// COM_STMT_PREPARE of an INSERT that this keeps from being read: perhaps it can be, with parameters for its keys.
    pub(crate) fn prepare_computed(
        &mut self,
        query: Query<'_>,
        rule: Option<usize>,
        what: Unsupported,
    ) -> Next {
        let Some(computed) = self.computed_keys(query.text, rule, what, true) else {
            return self.unsupported_prepare(query, rule, what);
        };
        let Some(positions) = computed.positions() else {
            return self.unsupported_prepare(query, rule, Unsupported::Parameters);
        };
        let text = computed.with_parameters(query.text);
        match self.plan(&text) {
            Ok(Planned::Plan(index, plan)) => {
                let computed = ComputedStatement {
                    text: query.text.to_vec(),
                    question: computed.question(query.text),
                    sees_last_insert_id: computed.sees_last_insert_id(),
                    positions,
                };
                let own = query.with_text(&text);
                self.prepare_rows(own, (index, plan), Some(Box::new(computed)))
            }
            Ok(Planned::Ask(question)) => self.ask(&question).into(),
            Ok(Planned::Pass | Planned::Missing(_) | Planned::Keyless(_) | Planned::Query(..)) => {
                self.unsupported_prepare(query, rule, what)
            }
            Err((rule, what)) => self.unsupported_prepare(query, rule, what),
        }
    }

    /// The values of a statement's computed keys. `Err`: the server must be asked first, or they are none.
    pub(crate) fn computed_params(
        &mut self,
        header: Header,
        id: u32,
    ) -> Result<ComputedParams, Step> {
        let statement = self.statements.ours.get(&id);
        let of = statement.and_then(|of| Some((of.computed.as_ref()?, &of.read_in)));
        let Some((computed, read_in)) = of else {
            return Ok(ComputedParams::default());
        };
        let values = match &self.table_report.computed {
            Some(ComputedValues::Known(values)) => ComputedParams::of(&computed.positions, values),
            Some(ComputedValues::OutOfRange | ComputedValues::Other) => None,
            None if self.reads_otherwise(read_in, &computed.question) => {
                return Err(self.refuse_execution(header, id, Unsupported::ReadOtherwise));
            }
            None if self.pending_last_insert_id.is_some() && computed.sees_last_insert_id => {
                return Err(self.update_last_insert_id(false));
            }
            None => {
                let question = computed.question.clone();
                let probe = Probe::Computed {
                    count: computed.positions.len(),
                    // What was sent as long data would have to be forgotten, too.
                    tells: statement.is_some_and(|statement| statement.long_data.is_empty()),
                };
                return Err(self.ask_by_text(&question, probe));
            }
        };
        values.ok_or_else(|| {
            let what = Unsupported::Key(KeyExpression::Value);
            self.refuse_execution(header, id, what)
        })
    }
}
