//! MariaDB's COM_STMT_BULK_EXECUTE: many rows of parameters for one prepared statement, walked over, and written with keys.
//! A cell is never kept beyond its row: rows of one byte would take more memory than they come with.

mod cast;

use keywright_core::KeyBatch;
use keywright_rewrite::{Care, KeyForm, KeyParameter, Prepared, Unsupported};

use cast::{Cast, KeyValues, write_key};
use keywright_wire::bytes::Reader;
use keywright_wire::protocol::COM_STMT_BULK_EXECUTE;
use keywright_wire::values::{BadValue, value};

use crate::params::{Bound, Param, Type, key_type, read_types};

/// The client wants a result with the id of each row.
const UNIT_RESULTS: u16 = 64;
/// Types come with this execution.
pub(crate) const SEND_TYPES: u16 = 128;

/// An execution as the client sent it.
#[derive(Debug)]
pub(crate) struct Bulk<'a> {
    flags: u16,
    /// Those in force.
    pub(crate) types: Vec<Type>,
    values: &'a [u8],
}

/// Why it gets no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Malformed,
    Unsupported(Unsupported),
}

impl From<BadValue> for Fault {
    fn from(strange: BadValue) -> Self {
        match strange {
            BadValue::Malformed => Self::Malformed,
            BadValue::Type => Self::Unsupported(Unsupported::Bulk("of a type that is not known")),
        }
    }
}

impl From<Unsupported> for Fault {
    fn from(what: Unsupported) -> Self {
        Self::Unsupported(what)
    }
}

/// One value of one row.
#[derive(Debug, Clone, Copy)]
struct Cell<'a> {
    indicator: Indicator,
    value: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indicator {
    Value,
    Null,
    Default,
    /// As the default, in an INSERT.
    Ignore,
}

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

impl<'a> Bulk<'a> {
    /// Reads what follows the statement's number. `known` are the types of the last execution.
    pub(crate) fn read(
        rest: &'a [u8],
        count: usize,
        known: Option<&[Type]>,
    ) -> Result<Self, BadValue> {
        let malformed = BadValue::Malformed;
        let mut reader = Reader(rest);
        let flags = reader.u16().ok_or(malformed)?;
        // Rows of no parameters would take no bytes.
        if count == 0 {
            return Err(malformed);
        }
        let types = if flags & SEND_TYPES != 0 {
            read_types(&mut reader, count, None).ok_or(malformed)?
        } else {
            known.ok_or(malformed)?.to_vec()
        };
        Ok(Self {
            flags,
            types,
            values: reader.0,
        })
    }

    /// Whether the client wants a result with the id of each row.
    pub(crate) fn wants_unit_results(&self) -> bool {
        self.flags & UNIT_RESULTS != 0
    }

    /// Appends it as it was sent, with the types that are in force.
    pub(crate) fn write_with_types(&self, out: &mut Vec<u8>) {
        out.extend((self.flags | SEND_TYPES).to_le_bytes());
        out.extend(self.types.iter().flatten());
        out.extend_from_slice(self.values);
    }

    /// The next row; false behind the last.
    fn row(&self, reader: &mut Reader<'a>, row: &mut Vec<Cell<'a>>) -> Result<bool, BadValue> {
        row.clear();
        if reader.0.is_empty() {
            return Ok(false);
        }
        for of_type in &self.types {
            let indicator = match reader.u8() {
                Some(0) => Indicator::Value,
                Some(1) => Indicator::Null,
                Some(2) => Indicator::Default,
                Some(3) => Indicator::Ignore,
                Some(4..) | None => return Err(BadValue::Malformed),
            };
            let value = match indicator {
                Indicator::Value => value(*of_type, reader)?,
                Indicator::Null | Indicator::Default | Indicator::Ignore => &[],
            };
            row.push(Cell { indicator, value });
        }
        Ok(true)
    }

    /// Counts rows and keys.
    pub(crate) fn needs(&self, asking: Asking<'_>) -> Result<Needs, Fault> {
        let mut needs = Needs {
            rows: 0,
            asking: 0,
            explicit: false,
            casts: Vec::new(),
        };
        let mut seen = vec![KeyValues::default(); asking.keys.len()];
        let (mut reader, mut row) = (Reader(self.values), Vec::new());
        while self.row(&mut reader, &mut row)? {
            needs.rows += 1;
            for (key, seen) in asking.keys.iter().zip(&mut seen) {
                let (cell, of_type) = self.key(&row, *key)?;
                if asking.asks(cell, of_type)? {
                    needs.asking += 1;
                    seen.asks = true;
                } else {
                    needs.explicit = true;
                    seen.has_value |= cell.indicator == Indicator::Value;
                }
            }
        }
        for (key, seen) in asking.keys.iter().zip(seen) {
            let of_type = self.types.get(usize::from(key.parameter));
            let of_type = of_type.copied().ok_or(BadValue::Malformed)?;
            needs.casts.push(seen.cast(of_type, asking.form)?);
        }
        Ok(needs)
    }

    fn key(&self, row: &[Cell<'a>], key: KeyParameter) -> Result<(Cell<'a>, Type), BadValue> {
        let at = usize::from(key.parameter);
        match (row.get(at), self.types.get(at)) {
            (Some(cell), Some(of_type)) => Ok((*cell, *of_type)),
            (_, _) => Err(BadValue::Malformed),
        }
    }

    /// Appends the execution of `statement`, which was prepared with room for keys.
    pub(crate) fn write(
        &self,
        statement: u32,
        prepared: &Prepared,
        asking: Asking<'_>,
        needs: &Needs,
        keys: &KeyBatch,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let places = self.places(prepared, asking, needs)?;
        out.push(COM_STMT_BULK_EXECUTE);
        out.extend(statement.to_le_bytes());
        out.extend((self.flags | SEND_TYPES).to_le_bytes());
        for place in &places {
            out.extend(match *place {
                ParameterSource::Injected(_) => key_type(keys),
                ParameterSource::Own(at, cast) => {
                    let of_type = self.types.get(at).copied().ok_or(BadValue::Malformed)?;
                    cast.of_type(of_type, keys)
                }
            });
        }
        let order = order(prepared, asking);
        let mut given = vec![None; self.types.len()];
        let mut injected = vec![0; prepared.injected.len()];
        let (mut reader, mut row, mut next) = (Reader(self.values), Vec::new(), 0_u64);
        while self.row(&mut reader, &mut row)? {
            for (_, slot) in &order {
                match *slot {
                    Slot::Injected(index) => {
                        *injected.get_mut(index).ok_or(BadValue::Malformed)? = next;
                        next += 1;
                    }
                    Slot::Own(key) => {
                        let (cell, of_type) = self.key(&row, key)?;
                        let asks = asking.asks(cell, of_type)?;
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
                        (Some(None), Some(cell)) => cell.write(cast, out)?,
                        (_, _) => return Err(BadValue::Malformed.into()),
                    },
                }
            }
        }
        Ok(())
    }

    /// The upstream's parameters, in their order.
    fn places(
        &self,
        prepared: &Prepared,
        asking: Asking<'_>,
        needs: &Needs,
    ) -> Result<Vec<ParameterSource>, BadValue> {
        let mut casts = vec![Cast::Keep; self.types.len()];
        for (key, cast) in asking.keys.iter().zip(&needs.casts) {
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

impl Asking<'_> {
    fn asks(&self, cell: Cell<'_>, of_type: Type) -> Result<bool, Unsupported> {
        let bound = match cell.indicator {
            Indicator::Value => {
                let param = Param {
                    of_type,
                    value: Some(cell.value),
                    null: false,
                    name: &[],
                };
                param.bound()
            }
            Indicator::Null => Bound::Asks,
            Indicator::Default | Indicator::Ignore if self.only_null => Bound::Asks,
            Indicator::Default | Indicator::Ignore => Bound::Default,
        };
        bound.asks(self.care, self.only_null)
    }
}

impl Cell<'_> {
    fn write(self, cast: Cast, out: &mut Vec<u8>) -> Result<(), BadValue> {
        out.push(match self.indicator {
            Indicator::Value => 0,
            Indicator::Null => 1,
            Indicator::Default => 2,
            Indicator::Ignore => 3,
        });
        cast.write(self.value, out)
    }
}
