//! Parameters of COM_STMT_EXECUTE: read from the client's packet, written for a text with more or other parameters.

use std::collections::BTreeSet;

use keywright_core::KeyBatch;
use keywright_rewrite::{Ask, Care, Meaning, Unsupported, double_asks, text_asks};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{Reader, write_lenenc};
use keywright_wire::protocol::COM_STMT_EXECUTE;
use keywright_wire::values::{self, BadValue};

use crate::bulk::SEND_TYPES;
use keywright_wire::attributes;

/// Type numbers as they stand before each value, with the flag for unsigned in the second byte.
pub(crate) type Type = [u8; 2];

/// That flag.
const UNSIGNED: u8 = 0x80;
const NULL: Type = [6, 0];
const LONGLONG_UNSIGNED: Type = [8, 0x80];
const VAR_STRING: Type = [253, 0];
const BLOB: Type = [252, 0];

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Param<'a> {
    pub(crate) of_type: Type,
    /// As sent; `None` for NULL, and for one whose value was sent as long data.
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) null: bool,
    /// Its name, with the length before it; nothing where it has none.
    pub(crate) name: &'a [u8],
}

/// What stands before the parameters: flags and iteration count.
const HEAD_BYTES: usize = 5;

/// An execution as the client sent it.
#[derive(Debug)]
pub(crate) struct Execution<'a> {
    head: &'a [u8],
    /// Whether they are counted and have names.
    has_attributes: bool,
    /// Those of the statement, and query attributes behind them.
    pub(crate) params: Vec<Param<'a>>,
    /// The types, if they came with this execution.
    pub(crate) types: Option<Vec<Type>>,
}

/// Whether a bound key asks for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Asks,
    /// It is DEFAULT, which asks unless sql_mode says otherwise.
    Default,
    Value(Ask),
}

impl Bound {
    /// Whether it does. `only_null`: keys are no numbers.
    pub(crate) fn asks(self, care: Care, only_null: bool) -> Result<bool, Unsupported> {
        let zero_asks = match care.zero_is_value {
            Some(is_value) => !is_value,
            None => return Err(Unsupported::ZeroAmbiguous),
        };
        match self {
            Self::Asks => Ok(true),
            Self::Default => Ok(zero_asks && !only_null),
            Self::Value(_) if only_null => Ok(false),
            Self::Value(ask) => match ask.meaning(care).map_err(Unsupported::Key)? {
                Meaning::Zero => Ok(zero_asks),
                Meaning::Explicit | Meaning::ExplicitNow => Ok(false),
            },
        }
    }
}

impl<'a> Execution<'a> {
    /// Reads what follows the statement's number. `count` parameters are the statement's own; `known` are their types at the last
    /// execution; `long_data` those whose values were sent as long data.
    pub(crate) fn read(
        rest: &'a [u8],
        count: usize,
        known: Option<&[Type]>,
        long_data: &BTreeSet<u16>,
        has_attributes: bool,
    ) -> Result<Self, BadValue> {
        let malformed = BadValue::Malformed;
        let mut reader = Reader(rest);
        let head = reader.take(HEAD_BYTES).ok_or(malformed)?;
        let total = match has_attributes {
            true if count > 0 || is_counted(head) => attributes::count(&mut reader)?,
            true | false => count,
        };
        if total < count {
            return Err(malformed);
        }
        let mut params = Vec::with_capacity(total);
        let (mut types, mut names) = (None, Vec::new());
        if total > 0 {
            let nulls = reader.take(total.div_ceil(8)).ok_or(malformed)?;
            if reader.u8().ok_or(malformed)? != 0 {
                let names = has_attributes.then_some(&mut names);
                types = Some(read_types(&mut reader, total, names).ok_or(malformed)?);
            }
            let in_force = types.as_deref().or(known).unwrap_or_default();
            for index in 0..total {
                let null = attributes::is_null(nulls, index);
                let of_type = match in_force.get(index) {
                    Some(of_type) => *of_type,
                    // Of attributes nobody remembers types.
                    None if null && index >= count => NULL,
                    None => return Err(malformed),
                };
                let was_long_data =
                    u16::try_from(index).is_ok_and(|index| long_data.contains(&index));
                let value = match index < count {
                    // Some drivers say that it is NULL as well; the server takes what was sent.
                    true if was_long_data => None,
                    _ if null => None,
                    true => Some(value_of(of_type, &mut reader).ok_or(malformed)?),
                    false => Some(values::value(of_type, &mut reader)?),
                };
                params.push(Param {
                    of_type,
                    value,
                    null: (null || of_type[0] == 6) && !was_long_data,
                    name: names.get(index).copied().unwrap_or_default(),
                });
            }
        }
        if let Some(types) = &mut types {
            types.truncate(count);
        }
        Ok(Self {
            head,
            has_attributes,
            params,
            types,
        })
    }

    /// What its answer looks like.
    pub(crate) fn shape(&self) -> Shape {
        Shape::of_execution(flags(self.head))
    }

    /// Appends COM_STMT_EXECUTE of `statement` with these parameters in place of the client's.
    pub(crate) fn write(&self, statement: u32, params: &[Param<'_>], out: &mut Vec<u8>) {
        let values: usize = params
            .iter()
            .map(|param| param.value.map_or(0, <[u8]>::len))
            .sum();
        // A mark for types; for each its type, and a bit for NULL.
        out.reserve(HEAD_BYTES + 6 + params.len() * 3 + values);
        out.push(COM_STMT_EXECUTE);
        out.extend(statement.to_le_bytes());
        out.extend_from_slice(self.head);
        if self.has_attributes && (!params.is_empty() || is_counted(self.head)) {
            write_lenenc(u64::try_from(params.len()).unwrap_or(0), out);
        }
        if params.is_empty() {
            return;
        }
        let nulls = out.len();
        out.resize(nulls + params.len().div_ceil(8), 0);
        for (index, param) in params.iter().enumerate() {
            if let Some(byte) = out.get_mut(nulls + index / 8).filter(|_| param.null) {
                *byte |= 1 << (index % 8);
            }
        }
        out.push(1);
        for param in params {
            out.extend(param.of_type);
            if self.has_attributes {
                let none = [0];
                out.extend_from_slice(if param.name.is_empty() {
                    &none
                } else {
                    param.name
                });
            }
        }
        for param in params {
            out.extend_from_slice(param.value.unwrap_or_default());
        }
    }
}

/// Whether the number of parameters and attributes follows, even if it is 0.
fn is_counted(head: &[u8]) -> bool {
    const PARAMETER_COUNT_AVAILABLE: u8 = 8;
    flags(head) & PARAMETER_COUNT_AVAILABLE != 0
}

fn flags(head: &[u8]) -> u8 {
    head.first().copied().unwrap_or_default()
}

/// Types, each with a name behind it if there are names.
pub(crate) fn read_types<'a>(
    reader: &mut Reader<'a>,
    count: usize,
    mut names: Option<&mut Vec<&'a [u8]>>,
) -> Option<Vec<Type>> {
    let mut types = Vec::with_capacity(count);
    for _ in 0..count {
        types.push([reader.u8()?, reader.u8()?]);
        if let Some(names) = &mut names {
            let from = reader.0;
            reader.text()?;
            names.push(from.get(..from.len() - reader.0.len())?);
        }
    }
    Some(types)
}

/// The types of a statement's own parameters, as an execution brings them: `Some(None)` if it brings none, `None` if too little is
/// there to tell.
pub(crate) fn execution_types(
    rest: &[u8],
    count: usize,
    has_attributes: bool,
) -> Option<Option<Vec<Type>>> {
    let mut reader = Reader(rest);
    let head = reader.take(HEAD_BYTES)?;
    let total = match has_attributes {
        true if count > 0 || is_counted(head) => attributes::count(&mut reader).ok()?,
        true | false => count,
    };
    if count == 0 || total < count {
        return Some(None);
    }
    reader.take(total.div_ceil(8))?;
    if reader.u8()? == 0 {
        return Some(None);
    }
    let mut names = Vec::new();
    let mut types = read_types(&mut reader, total, has_attributes.then_some(&mut names))?;
    types.truncate(count);
    Some(Some(types))
}

/// The same of COM_STMT_BULK_EXECUTE.
pub(crate) fn bulk_types(rest: &[u8], count: usize) -> Option<Option<Vec<Type>>> {
    let mut reader = Reader(rest);
    if reader.u16()? & SEND_TYPES == 0 {
        return Some(None);
    }
    Some(Some(read_types(&mut reader, count, None)?))
}

/// The bytes of one value, as its type says.
fn value_of<'a>(of_type: Type, reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let [kind, _] = of_type;
    let fixed = match kind {
        6 => Some(0),
        1 => Some(1),
        2 | 13 => Some(2),
        3 | 4 | 9 => Some(4),
        5 | 8 => Some(8),
        _ => None,
    };
    if let Some(bytes) = fixed {
        return reader.take(bytes);
    }
    let from = reader.0;
    let mut ahead = *reader;
    match kind {
        // Dates and times: a byte that says how many follow.
        7 | 10 | 11 | 12 => {
            let bytes = usize::from(ahead.u8()?);
            ahead.take(bytes)?;
        }
        _ => {
            ahead.text()?;
        }
    }
    reader.take(from.len() - ahead.0.len())
}

impl Param<'_> {
    /// Whether it asks for a key, as the value of a key column.
    pub(crate) fn bound(&self) -> Bound {
        if self.null {
            return Bound::Asks;
        }
        let Some(value) = self.value else {
            // Sent as long data: nobody has read it.
            return Bound::Value(Ask::Unclean);
        };
        let [_, flags] = self.of_type;
        let ask = match self.of_type[0] {
            1 | 2 | 3 | 8 | 9 | 13 => {
                let has_sign = value.last().is_some_and(|byte| *byte >= 0x80);
                match value.iter().all(|byte| *byte == 0) {
                    true => Ask::Yes,
                    false if has_sign && flags & UNSIGNED == 0 => Ask::Negative,
                    false => Ask::No,
                }
            }
            4 => match <[u8; 4]>::try_from(value) {
                Ok(bytes) => double_asks(f64::from(f32::from_le_bytes(bytes))),
                Err(_) => Ask::Unclean,
            },
            5 => match <[u8; 8]>::try_from(value) {
                Ok(bytes) => double_asks(f64::from_le_bytes(bytes)),
                Err(_) => Ask::Unclean,
            },
            7 | 10 | 11 | 12 => Ask::Unclean,
            _ => match Reader(value).text() {
                Some(text) => text_asks(text),
                None => Ask::Unclean,
            },
        };
        Bound::Value(ask)
    }
}

/// The type of keys as parameters.
pub(crate) fn key_type(keys: &KeyBatch) -> Type {
    match keys {
        KeyBatch::Numbers { .. } | KeyBatch::Listed(_) => LONGLONG_UNSIGNED,
        KeyBatch::Texts(_) => VAR_STRING,
        KeyBatch::Bytes(_) => BLOB,
    }
}

/// The keys as values of parameters, in the order of the rows that get them.
pub(crate) struct KeyValues {
    of_type: Type,
    values: Values,
}

enum Values {
    Numbers(Vec<[u8; 8]>),
    /// Each with its length before it.
    Texts(Vec<Vec<u8>>),
}

impl KeyValues {
    pub(crate) fn new(keys: &KeyBatch) -> Self {
        let text = |bytes: &[u8]| {
            let mut value = Vec::with_capacity(bytes.len() + 1);
            write_lenenc(u64::try_from(bytes.len()).unwrap_or(0), &mut value);
            value.extend_from_slice(bytes);
            value
        };
        match keys {
            KeyBatch::Numbers { .. } | KeyBatch::Listed(_) => Self {
                of_type: key_type(keys),
                values: Values::Numbers(
                    (0..keys.len())
                        .filter_map(|index| keys.number(index))
                        .map(u64::to_le_bytes)
                        .collect(),
                ),
            },
            KeyBatch::Texts(texts) => Self {
                of_type: key_type(keys),
                values: Values::Texts(texts.iter().map(|key| text(key.as_bytes())).collect()),
            },
            KeyBatch::Bytes(bytes) => Self {
                of_type: key_type(keys),
                values: Values::Texts(bytes.iter().map(|key| text(key)).collect()),
            },
        }
    }

    /// The parameter for the `index`th key.
    pub(crate) fn param(&self, index: usize) -> Option<Param<'_>> {
        let value = match &self.values {
            Values::Numbers(numbers) => numbers.get(index)?.as_slice(),
            Values::Texts(texts) => texts.get(index)?,
        };
        Some(Param {
            of_type: self.of_type,
            value: Some(value),
            null: false,
            name: &[],
        })
    }
}
