//! Keys among the rows of a bulk execution.

mod cast;
mod fault;

use keywright_core::KeyBatch;
use keywright_rewrite::{Care, KeyForm, KeyParameter, Prepared, Unsupported};
use keywright_wire::bulk::{Bulk, Cell, Indicator};
use keywright_wire::params::{Param, Type};
use keywright_wire::values::BadValue;

use crate::prepared::param_keys::{Bound, key_type};
use cast::{Cast, KeyValues, write_key};

pub(crate) use fault::Fault;

/// Which bound keys ask for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// The parameters that are keys.
    pub(crate) keys: &'a [KeyParameter],
    pub(crate) form: KeyForm,
    /// In any row.
    pub(crate) care: Care,
    /// Keys are no numbers.
    pub(crate) only_null: bool,
}

/// What an execution needs.
#[derive(Debug)]
pub(crate) struct Needs {
    /// How often the statement is carried out.
    pub(crate) rows: u64,
    /// How many bound keys ask for one.
    pub(crate) asking: u64,
    /// Some bring their own.
    pub(crate) explicit: bool,
    /// How the keys of each of [`Asking::keys`] are written.
    casts: Vec<Cast>,
}

impl Asking<'_> {
    /// Counts rows and keys.
    pub(crate) fn needs(self, bulk: &Bulk<'_>) -> Result<Needs, Fault> {
        let mut needs = Needs {
            rows: 0,
            asking: 0,
            explicit: false,
            casts: Vec::new(),
        };
        let mut seen = vec![KeyValues::default(); self.keys.len()];
        let (mut reader, mut row) = (bulk.rows(), Vec::new());
        while bulk.row(&mut reader, &mut row)? {
            needs.rows += 1;
            for (key, seen) in self.keys.iter().zip(&mut seen) {
                let (cell, of_type) = key_of(bulk, &row, *key)?;
                if self.asks(cell, of_type)? {
                    needs.asking += 1;
                    seen.asks = true;
                } else {
                    needs.explicit = true;
                    seen.has_value |= cell.indicator == Indicator::Value;
                }
            }
        }
        for (key, seen) in self.keys.iter().zip(seen) {
            let of_type = bulk.types.get(usize::from(key.parameter));
            let of_type = of_type.copied().ok_or(BadValue::Malformed)?;
            needs.casts.push(seen.cast(of_type, self.form)?);
        }
        Ok(needs)
    }

    /// Appends the execution of `statement`, which was prepared with room for keys.
    pub(crate) fn write(
        self,
        bulk: &Bulk<'_>,
        statement: u32,
        prepared: &Prepared,
        needs: &Needs,
        keys: &KeyBatch,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let places = self.places(bulk, prepared, needs)?;
        bulk.write_head(statement, out);
        for place in &places {
            out.extend(match *place {
                ParameterSource::Injected(_) => key_type(keys),
                ParameterSource::Own(at, cast) => {
                    let of_type = bulk.types.get(at).copied().ok_or(BadValue::Malformed)?;
                    cast.of_type(of_type, keys)
                }
            });
        }
        let order = order(prepared, self);
        let mut given = vec![None; bulk.types.len()];
        let mut injected = vec![0; prepared.injected.len()];
        let (mut reader, mut row, mut next) = (bulk.rows(), Vec::new(), 0_u64);
        while bulk.row(&mut reader, &mut row)? {
            for (_, slot) in &order {
                match *slot {
                    Slot::Injected(index) => {
                        *injected.get_mut(index).ok_or(BadValue::Malformed)? = next;
                        next += 1;
                    }
                    Slot::Own(key) => {
                        let (cell, of_type) = key_of(bulk, &row, key)?;
                        let asks = self.asks(cell, of_type)?;
                        let given = given.get_mut(usize::from(key.parameter));
                        *given.ok_or(BadValue::Malformed)? = asks.then_some(next);
                        next += u64::from(asks);
                    }
                }
            }
            for place in &places {
                match *place {
                    ParameterSource::Injected(index) => {
                        let key = injected.get(index).ok_or(BadValue::Malformed)?;
                        write_key(keys, *key, Cast::Key, out)?;
                    }
                    ParameterSource::Own(at, cast) => match (given.get(at), row.get(at)) {
                        (Some(Some(key)), Some(_)) => write_key(keys, *key, cast, out)?,
                        (Some(None), Some(cell)) => write_cell(*cell, cast, out)?,
                        (_, _) => return Err(BadValue::Malformed.into()),
                    },
                }
            }
        }
        Ok(())
    }

    /// Whether a value of a key column asks for a key.
    fn asks(self, cell: Cell<'_>, of_type: Type) -> Result<bool, Unsupported> {
        let bound = match cell.indicator {
            Indicator::Value => {
                let param = Param {
                    of_type,
                    value: Some(cell.value),
                    null: false,
                    name: &[],
                };
                Bound::of(&param)
            }
            Indicator::Null => Bound::Asks,
            Indicator::Default | Indicator::Ignore if self.only_null => Bound::Asks,
            Indicator::Default | Indicator::Ignore => Bound::Default,
        };
        bound.asks(self.care, self.only_null)
    }

    /// The upstream's parameters, in their order.
    fn places(
        self,
        bulk: &Bulk<'_>,
        prepared: &Prepared,
        needs: &Needs,
    ) -> Result<Vec<ParameterSource>, BadValue> {
        let mut casts = vec![Cast::Keep; bulk.types.len()];
        for (key, cast) in self.keys.iter().zip(&needs.casts) {
            let place = casts.get_mut(usize::from(key.parameter));
            *place.ok_or(BadValue::Malformed)? = *cast;
        }
        let mut own = casts.into_iter().enumerate();
        let mut places = Vec::new();
        for (index, injected) in prepared.injected.iter().enumerate() {
            let before = usize::from(injected.at).checked_sub(places.len());
            let before = before.ok_or(BadValue::Malformed)?;
            places.extend(own.by_ref().take(before).map(ParameterSource::own));
            if places.len() != usize::from(injected.at) {
                return Err(BadValue::Malformed);
            }
            places.push(ParameterSource::Injected(index));
        }
        places.extend(own.map(ParameterSource::own));
        Ok(places)
    }
}

/// What a row brings for a key, and its type.
fn key_of<'a>(
    bulk: &Bulk<'_>,
    row: &[Cell<'a>],
    key: KeyParameter,
) -> Result<(Cell<'a>, Type), BadValue> {
    let at = usize::from(key.parameter);
    match (row.get(at), bulk.types.get(at)) {
        (Some(cell), Some(of_type)) => Ok((*cell, *of_type)),
        (_, _) => Err(BadValue::Malformed),
    }
}

/// One of the upstream's parameters.
#[derive(Debug, Clone, Copy)]
enum ParameterSource {
    /// Which of those that were put in.
    Injected(usize),
    /// Which of the client's.
    Own(usize, Cast),
}

impl ParameterSource {
    fn own((at, cast): (usize, Cast)) -> Self {
        Self::Own(at, cast)
    }
}

/// What may get a key.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Injected(usize),
    Own(KeyParameter),
}

/// In the order of the statement's rows.
fn order(prepared: &Prepared, asking: Asking<'_>) -> Vec<(u32, Slot)> {
    let injected = prepared.injected.iter().enumerate();
    let mut order: Vec<(u32, Slot)> = injected
        .map(|(index, injected)| (injected.row, Slot::Injected(index)))
        .chain(asking.keys.iter().map(|key| (key.row, Slot::Own(*key))))
        .collect();
    order.sort_by_key(|(row, _)| *row);
    order
}

/// Appends a cell of the client's own.
fn write_cell(cell: Cell<'_>, cast: Cast, out: &mut Vec<u8>) -> Result<(), BadValue> {
    out.push(cell.indicator.byte());
    cast.write(cell.value, out)
}
