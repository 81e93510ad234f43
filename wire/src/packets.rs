//! Commands and errors written, OK packets and answers to a PREPARE corrected, and what is read from answers that were gathered whole.

use crate::bytes::{HEADER_BYTES, Header, Reader, make_packet, write_lenenc, write_packet};
use crate::done::{Done, read_ok};
use crate::protocol::{COM_QUERY, COM_STMT_CLOSE, ERR};

/// Types of columns.
const TYPE_TINY: u8 = 1;
const TYPE_SHORT: u8 = 2;
const TYPE_LONG: u8 = 3;
const TYPE_DOUBLE: u8 = 5;
const TYPE_LONGLONG: u8 = 8;
const TYPE_INT24: u8 = 9;
const TYPE_VARCHAR: u8 = 15;
const TYPE_DECIMAL: u8 = 246;
const TYPE_TINY_BLOB: u8 = 249;
const TYPE_STRING: u8 = 254;
/// Flags of a column.
const NOT_NULL: u16 = 1;
const UNSIGNED: u16 = 32;

/// Appends a command with its payload.
pub fn write_command(command: u8, payload: &[u8], out: &mut Vec<u8>) {
    let mut whole = Vec::with_capacity(payload.len().saturating_add(1));
    whole.push(command);
    whole.extend_from_slice(payload);
    write_packet(&whole, 0, out);
}

/// Appends COM_QUERY, with query attributes where they are agreed on.
pub fn write_query(attributes: &[u8], text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0, 0, 0, 0, COM_QUERY]);
    out.extend_from_slice(attributes);
    out.extend_from_slice(text);
    make_packet(start, out);
}

/// Appends COM_STMT_CLOSE.
pub fn write_close(statement: u32, out: &mut Vec<u8>) {
    write_command(COM_STMT_CLOSE, &statement.to_le_bytes(), out);
}

/// An error packet's payload: the error's number, five bytes of SQLSTATE, and its text.
pub fn error_payload(number: u16, sqlstate: &str, message: &str) -> Vec<u8> {
    let mut payload = vec![ERR];
    payload.extend(number.to_le_bytes());
    payload.push(b'#');
    payload.extend_from_slice(sqlstate.as_bytes());
    payload.extend_from_slice(message.as_bytes());
    payload
}

/// Appends an OK packet with its id replaced. False, and nothing appended, if it cannot be read.
pub fn write_ok_with_id(payload: &[u8], id: u64, sequence: u8, out: &mut Vec<u8>) -> bool {
    let mut reader = Reader(payload);
    let (Some(first), Some(affected), Some(_)) = (reader.u8(), reader.lenenc(), reader.lenenc())
    else {
        return false;
    };
    let mut corrected = vec![first];
    write_lenenc(affected, &mut corrected);
    write_lenenc(id, &mut corrected);
    corrected.extend_from_slice(reader.0);
    write_packet(&corrected, sequence, out);
    true
}

/// The packets of a gathered answer, each a number and a payload; `None` if one is cut off, or of 16 MB, which no answer to ours has.
///
/// ```
/// use keywright_wire::bytes::write_packet;
/// use keywright_wire::packets::{error_payload, packets};
///
/// let mut answer = Vec::new();
/// write_packet(&error_payload(1467, "HY000", "no key"), 1, &mut answer);
/// let [(sequence, payload)] = packets(&answer).unwrap()[..] else { panic!() };
/// assert_eq!((sequence, payload[0]), (1, 0xff));
/// assert!(payload.ends_with(b"#HY000no key"));
/// // What a peer cut off is no packet, and no panic.
/// assert_eq!(packets(&answer[..answer.len() - 1]), None);
/// ```
pub fn packets(mut bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut found = Vec::new();
    while let Some(packet) = take_packet(&mut bytes)? {
        found.push(packet);
    }
    Some(found)
}

/// The first of them, which is taken off; `Some(None)`: there is none.
fn take_packet<'a>(bytes: &mut &'a [u8]) -> Option<Option<(u8, &'a [u8])>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let header = Header::read(bytes)?;
    if header.continues() {
        return None;
    }
    let (packet, rest) = bytes.split_at_checked(header.total())?;
    *bytes = rest;
    Some(Some((header.sequence, packet.get(4..)?)))
}

/// The last packet of a gathered answer.
pub fn last_packet(answer: &[u8]) -> &[u8] {
    let mut rest = answer;
    while let Some((_, next)) = Header::read(rest)
        .and_then(|header| rest.split_at_checked(header.total()))
        .filter(|(_, next)| !next.is_empty())
    {
        rest = next;
    }
    rest
}

/// Names of the columns that a prepared `SELECT * FROM t` would have; `None` if the answer is another.
pub fn column_names(answer: &[u8]) -> Option<Vec<Vec<u8>>> {
    let packets = packets(answer)?;
    let (_, first) = packets.first()?;
    let mut reader = Reader(first);
    if reader.u8()? != 0 {
        return None;
    }
    reader.u32()?;
    let columns = usize::from(reader.u16()?);
    let definitions = packets.get(1..=columns)?;
    definitions
        .iter()
        .map(|(_, definition)| column_name(definition))
        .collect()
}

/// Out of its definition.
fn column_name(definition: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader(definition);
    // Catalogue, schema, table, original table.
    for _ in 0..4 {
        reader.text()?;
    }
    reader.text().map(<[u8]>::to_vec)
}

/// The type of a column, as far as numbers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnType {
    code: u8,
    is_unsigned: bool,
    is_not_null: bool,
}

impl ColumnType {
    /// Whether it is never NULL.
    pub fn is_not_null(self) -> bool {
        self.is_not_null
    }

    /// Most digits of a whole number that it shows as an integer column would store it: a text is one if it is nothing else. 0 if it is
    /// for other things.
    pub fn whole_digits(self) -> usize {
        match self.code {
            TYPE_TINY | TYPE_SHORT | TYPE_INT24 | TYPE_LONG | TYPE_LONGLONG | TYPE_DECIMAL => 20,
            TYPE_DOUBLE => 15,
            TYPE_VARCHAR | TYPE_TINY_BLOB..=TYPE_STRING => 18,
            _ => 0,
        }
    }

    /// Whether it holds text or bytes.
    pub fn is_text(self) -> bool {
        matches!(self.code, TYPE_VARCHAR | TYPE_TINY_BLOB..=TYPE_STRING)
    }

    /// Bits of the largest integer it holds; 0 if it is for other things.
    pub fn integer_bits(self) -> u32 {
        let bits = match self.code {
            TYPE_TINY => 8,
            TYPE_SHORT => 16,
            TYPE_INT24 => 24,
            TYPE_LONG => 32,
            TYPE_LONGLONG => 64,
            _ => return 0,
        };
        bits - u32::from(!self.is_unsigned)
    }
}

/// The type of the only column of a SELECT that was prepared, if the answer tells it; `is_extended`: it has MariaDB's extended
/// metadata.
pub fn only_column(answer: &[u8], is_extended: bool) -> Option<ColumnType> {
    let packets = packets(answer)?;
    let (_, definition) = packets.get(1)?;
    column_type(definition, is_extended)
}

/// A column of a query's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// What it is called, in the client's character set.
    pub name: Vec<u8>,
    /// Its type.
    pub of_type: ColumnType,
}

/// The columns of the result of a prepared query; `None` if the answer is another. The parameters' are in front of them.
pub fn result_columns(
    answer: &[u8],
    is_extended: bool,
    deprecates_eof: bool,
) -> Option<Vec<ResultColumn>> {
    let packets = packets(answer)?;
    let (_, first) = packets.first()?;
    let mut reader = Reader(first);
    (reader.u8()? == 0).then_some(())?;
    reader.u32()?;
    let columns = usize::from(reader.u16()?);
    let parameters = usize::from(reader.u16()?);
    let has_end = parameters > 0 && !deprecates_eof;
    let start = 1 + parameters + usize::from(has_end);
    let definitions = packets.get(start..start + columns)?.iter();
    definitions
        .map(|(_, definition)| {
            Some(ResultColumn {
                name: column_name(definition)?,
                of_type: column_type(definition, is_extended)?,
            })
        })
        .collect()
}

/// Out of its definition.
fn column_type(definition: &[u8], is_extended: bool) -> Option<ColumnType> {
    let mut reader = Reader(definition);
    // Catalogue, schema, table, original table, name, original name.
    for _ in 0..6 + u8::from(is_extended) {
        reader.text()?;
    }
    // The length of what follows, the collation, the length of values.
    reader.lenenc()?;
    reader.u16()?;
    reader.u32()?;
    let code = reader.u8()?;
    let flags = reader.u16()?;
    Some(ColumnType {
        code,
        is_unsigned: flags & UNSIGNED != 0,
        is_not_null: flags & NOT_NULL != 0,
    })
}

/// The number of the error that an answer is; `None` if it is none.
pub fn error_of(answer: &[u8]) -> Option<u16> {
    error_text(answer).map(|(number, _)| number)
}

/// The number and the text of the error that an answer is; `None` if it is none.
pub fn error_text(answer: &[u8]) -> Option<(u16, &[u8])> {
    let packets = packets(answer)?;
    let (_, first) = packets.first()?;
    let mut reader = Reader(first);
    (reader.u8()? == ERR).then_some(())?;
    Some((reader.u16()?, reader.0))
}

/// The number of a statement that was prepared; `None` if the answer is another.
pub fn prepared_id(answer: &[u8]) -> Option<u32> {
    let packets = packets(answer)?;
    let (_, first) = packets.first()?;
    let mut reader = Reader(first);
    (reader.u8()? == 0).then_some(())?;
    reader.u32()
}

/// The only row of a text result of `columns` columns; `None` if the answer is cut off before it.
pub fn only_row(answer: &[u8], columns: usize, deprecate_eof: bool) -> Option<&[u8]> {
    let at = 1 + columns + usize::from(!deprecate_eof);
    let (mut rest, mut count, mut row) = (answer, 0, None);
    while let Some((_, packet)) = take_packet(&mut rest)? {
        if count == at {
            row = Some(packet);
        }
        count += 1;
    }
    row
}

/// The types of the columns of a text result.
pub fn text_columns(answer: &[u8], columns: usize, is_extended: bool) -> Option<Vec<ColumnType>> {
    let packets = packets(answer)?;
    let definitions = packets.get(1..=columns)?.iter();
    definitions
        .map(|(_, definition)| column_type(definition, is_extended))
        .collect()
}

/// Appends the answer to a PREPARE without the parameters that the client does not know of, which are in ascending order; `None` if
/// it cannot be read.
pub fn without_injected(
    answer: &[u8],
    injected: &[u16],
    deprecate_eof: bool,
    out: &mut Vec<u8>,
) -> Option<()> {
    let packets = packets(answer)?;
    let (mut sequence, first) = *packets.first()?;
    let parameters = usize::from(Reader(first.get(7..)?).u16()?);
    let own = parameters.checked_sub(injected.len())?;
    let mut corrected = first.to_vec();
    let count = u16::try_from(own).ok()?.to_le_bytes();
    corrected.get_mut(7..9)?.copy_from_slice(&count);
    sequence = write_packet(&corrected, sequence, out);
    let is_injected = |index: usize| {
        index
            .checked_sub(1)
            .filter(|index| *index < parameters)
            .and_then(|index| u16::try_from(index).ok())
            .is_some_and(|index| injected.binary_search(&index).is_ok())
    };
    for (index, (_, payload)) in packets.iter().enumerate().skip(1) {
        let eof_of_none = own == 0 && !deprecate_eof && index == parameters + 1;
        if !is_injected(index) && !eof_of_none {
            sequence = write_packet(payload, sequence, out);
        }
    }
    Some(())
}

/// The number and the payload of an answer that is a single OK packet, and what it says; `None` if the answer is another.
pub fn single_ok(answer: &[u8]) -> Option<(u8, &[u8], Done)> {
    let header = Header::read(answer)?;
    let is_only = !header.continues() && header.total() == answer.len();
    let payload = answer.get(HEADER_BYTES..).filter(|_| is_only)?;
    (payload.first() == Some(&0)).then_some(())?;
    Some((header.sequence, payload, read_ok(payload)?))
}

#[cfg(test)]
mod tests {
    use super::{only_column, write_packet};

    /// What a server answers to a SELECT of one column that is prepared.
    fn answer(code: u8, flags: u8, extended: &[u8]) -> Vec<u8> {
        let mut definition = b"\x03def\x01s\x01t\x01t\x02id\x02id".to_vec();
        definition.extend_from_slice(extended);
        definition.extend([12, 63, 0, 20, 0, 0, 0, code, flags, 0x02, 0, 0, 0]);
        let mut out = Vec::new();
        let sequence = write_packet(&[0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], 1, &mut out);
        write_packet(&definition, sequence, &mut out);
        out
    }

    #[test]
    fn a_column_tells_how_many_bits_it_has() {
        let bits = |code, flags| {
            let of_plain = only_column(&answer(code, flags, b""), false);
            // As of a column of JSON, and of one of no special type.
            for extended in [b"\x06\x01\x04json".as_slice(), b"\x00"] {
                assert_eq!(only_column(&answer(code, flags, extended), true), of_plain);
            }
            of_plain.map(super::ColumnType::integer_bits)
        };
        for (code, of_code) in [(1, 8), (2, 16), (9, 24), (3, 32), (8, 64)] {
            assert_eq!(bits(code, 0x20), Some(of_code));
            assert_eq!(bits(code, 0x03), Some(of_code - 1));
        }
        // DECIMAL, VARCHAR.
        assert_eq!((bits(246, 0), bits(253, 0)), (Some(0), Some(0)));
        assert_eq!(only_column(b"\x01\0\0\x01\0", false), None);
    }
}
