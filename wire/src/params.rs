//! Parameters of COM_STMT_EXECUTE: read from the client's packet, written for a text with more or other parameters.

use std::collections::BTreeSet;

use crate::answer::Shape;
use crate::attributes;
use crate::bytes::{Reader, write_lenenc};
use crate::protocol::COM_STMT_EXECUTE;
use crate::values::{self, BadValue};

/// Type numbers as they stand before each value, with [`UNSIGNED`] in the second byte.
pub type Type = [u8; 2];

/// The flag of a type: its numbers have no sign.
pub const UNSIGNED: u8 = 0x80;

/// How long a type is.
const TYPE_BYTES: usize = 2;

/// The type of NULL itself.
const NULL: Type = [6, 0];

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param<'a> {
    /// Its type.
    pub of_type: Type,
    /// As sent; `None` for NULL, and for one whose value was sent as long data.
    pub value: Option<&'a [u8]>,
    /// Whether it is NULL.
    pub null: bool,
    /// Its name, with the length before it; nothing where it has none.
    pub name: &'a [u8],
}

/// What stands before the parameters: flags and iteration count.
const HEAD_BYTES: usize = 5;

/// An execution as the client sent it.
#[derive(Debug)]
pub struct Execution<'a> {
    head: &'a [u8],
    /// Whether they are counted and have names.
    has_attributes: bool,
    /// Those of the statement, and query attributes behind them.
    pub params: Vec<Param<'a>>,
    /// The types, if they came with this execution.
    pub types: Option<Vec<Type>>,
}

impl<'a> Execution<'a> {
    /// Reads what follows the statement's number. `count` parameters are the statement's own; `known` are their types at the last
    /// execution; `long_data` those whose values were sent as long data.
    ///
    /// # Errors
    /// It ends too early, brings fewer parameters than the statement has, or an attribute has a type whose length is not known.
    pub fn read(
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
        let mut params = Vec::with_capacity(total.min(params_max(reader)));
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
                    // Types of attributes are not remembered.
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
    pub fn shape(&self) -> Shape {
        Shape::of_execution(flags(self.head))
    }

    /// Appends COM_STMT_EXECUTE of `statement` with these parameters in place of the client's.
    pub fn write(&self, statement: u32, params: &[Param<'_>], out: &mut Vec<u8>) {
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

/// How many parameters there is room for in what is left: each has a bit at least. The number before them may say anything.
fn params_max(rest: Reader<'_>) -> usize {
    rest.0.len().saturating_mul(8)
}

/// Whether the number of parameters and attributes follows, even if it is 0.
fn is_counted(head: &[u8]) -> bool {
    const PARAMETER_COUNT_AVAILABLE: u8 = 8;
    flags(head) & PARAMETER_COUNT_AVAILABLE != 0
}

fn flags(head: &[u8]) -> u8 {
    head.first().copied().unwrap_or_default()
}

/// Types, each with a name behind it if there are names; `None` if they end too early.
pub fn read_types<'a>(
    reader: &mut Reader<'a>,
    count: usize,
    mut names: Option<&mut Vec<&'a [u8]>>,
) -> Option<Vec<Type>> {
    let mut types = Vec::with_capacity(count.min(reader.0.len() / TYPE_BYTES));
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
pub fn execution_types(
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Execution, params_max};
    use crate::attributes::ATTRIBUTES_MAX;
    use crate::bytes::Reader;
    use crate::values::BadValue;

    /// Flags that have a number follow, the iteration count, and the largest number.
    const ANNOUNCED: [u8; 8] = [8, 1, 0, 0, 0, 0xFC, 0xFF, 0xFF];

    #[test]
    fn what_is_announced_takes_no_more_memory_than_what_is_there() {
        assert_eq!(params_max(Reader(&[])), 0);
        assert_eq!(params_max(Reader(&[0; 3])), 24);
        let bitmap = vec![0xFF; ATTRIBUTES_MAX.div_ceil(8)];
        let read = |bitmap: &[u8]| {
            let rest = [ANNOUNCED.as_slice(), bitmap, &[0]].concat();
            let read = Execution::read(&rest, 0, None, &BTreeSet::new(), true);
            read.map(|execution| execution.params.len())
        };
        assert_eq!(read(&[]), Err(BadValue::Malformed));
        assert_eq!(read(&bitmap[1..]), Err(BadValue::Malformed));
        // All are NULL, and have no more than their bits.
        assert_eq!(read(&bitmap), Ok(ATTRIBUTES_MAX));
    }
}
