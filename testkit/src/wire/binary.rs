//! Prepared statements: their parameters and rows.

use anyhow::bail;

use super::bytes::{Reader, put_integer, put_string};
use super::reply::{read_column, read_end};
use super::{Column, SqlFault, Value, Wire, capability, fault};
use crate::Result;

pub(super) const NO_CURSOR: u8 = 0;
pub(super) const READ_ONLY_CURSOR: u8 = 1;
/// With query attributes: the number of parameters follows.
const PARAMETER_COUNT: u8 = 8;

/// Types by their number in the protocol.
mod kind {
    pub(super) const TINY: u8 = 0x01;
    pub(super) const SHORT: u8 = 0x02;
    pub(super) const LONG: u8 = 0x03;
    pub(super) const FLOAT: u8 = 0x04;
    pub(super) const DOUBLE: u8 = 0x05;
    pub(super) const NULL: u8 = 0x06;
    pub(super) const LONGLONG: u8 = 0x08;
    pub(super) const INT24: u8 = 0x09;
    pub(super) const YEAR: u8 = 0x0d;
    pub(super) const BLOB: u8 = 0xfc;
    pub(super) const VAR_STRING: u8 = 0xfd;
}

const UNSIGNED: u16 = 0x20;

/// A prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The server's number for it.
    pub id: u32,
    /// What is said of its parameters.
    pub params: Vec<Column>,
    /// What is said of its rows.
    pub columns: Vec<Column>,
    /// How many warnings preparing gave.
    pub warnings: u16,
}

/// A value for a `?`.
#[derive(Debug, Clone, PartialEq)]
pub enum Param {
    /// SQL's NULL.
    Null,
    /// BIGINT.
    Signed(i64),
    /// BIGINT UNSIGNED.
    Unsigned(u64),
    /// DOUBLE.
    Real(f64),
    /// VARCHAR, in the connection's charset.
    Text(Vec<u8>),
    /// BLOB.
    Blob(Vec<u8>),
    /// Sent before with [`Wire::send_long_data`].
    Long,
}

impl Param {
    fn kind(&self) -> [u8; 2] {
        match self {
            Param::Null => [kind::NULL, 0],
            Param::Signed(_) => [kind::LONGLONG, 0],
            Param::Unsigned(_) => [kind::LONGLONG, 0x80],
            Param::Real(_) => [kind::DOUBLE, 0],
            Param::Text(_) => [kind::VAR_STRING, 0],
            Param::Blob(_) | Param::Long => [kind::BLOB, 0],
        }
    }

    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Param::Null | Param::Long => {}
            Param::Signed(value) => to.extend(value.to_le_bytes()),
            Param::Unsigned(value) => to.extend(value.to_le_bytes()),
            Param::Real(value) => to.extend(value.to_le_bytes()),
            Param::Text(value) | Param::Blob(value) => put_string(to, value),
        }
    }
}

/// A query attribute: a name and its value.
pub type Attribute = (&'static str, Param);

/// Query attributes as they stand before a text.
pub(super) fn put_attributes(to: &mut Vec<u8>, attributes: &[Attribute]) {
    put_integer(to, attributes.len() as u64);
    // One set of them.
    put_integer(to, 1);
    if !attributes.is_empty() {
        put_values(to, attributes, true);
    }
}

/// COM_STMT_EXECUTE without its first byte. `attributes`: they are agreed on.
pub(super) fn execute_payload(
    id: u32,
    params: &[Param],
    attributes: Option<&[Attribute]>,
    cursor: u8,
) -> Vec<u8> {
    // Parameters of the statement have no name.
    let mut values: Vec<Attribute> = params.iter().map(|param| ("", param.clone())).collect();
    values.extend_from_slice(attributes.unwrap_or_default());
    let is_counted = attributes.is_some() && !values.is_empty();
    let mut payload = id.to_le_bytes().to_vec();
    payload.push(if is_counted {
        cursor | PARAMETER_COUNT
    } else {
        cursor
    });
    payload.extend(1u32.to_le_bytes());
    if is_counted {
        put_integer(&mut payload, values.len() as u64);
    }
    if !values.is_empty() {
        put_values(&mut payload, &values, is_counted);
    }
    payload
}

/// Which are NULL, types, names if there are any, and values.
fn put_values(to: &mut Vec<u8>, values: &[Attribute], are_named: bool) {
    let mut nulls = vec![0u8; values.len().div_ceil(8)];
    for ((_, value), (byte, bit)) in values.iter().zip((0..).map(|i: usize| (i / 8, i % 8))) {
        if let (Param::Null, Some(byte)) = (value, nulls.get_mut(byte)) {
            *byte |= 1 << bit;
        }
    }
    to.extend(nulls);
    to.push(1);
    for (name, value) in values {
        to.extend(value.kind());
        if are_named {
            put_string(to, name.as_bytes());
        }
    }
    for (_, value) in values {
        value.put(to);
    }
}

/// The answer to COM_STMT_PREPARE.
pub(super) fn read_prepared(wire: &mut Wire) -> Result<std::result::Result<Statement, SqlFault>> {
    let packet = wire.channel.read()?;
    if packet.first() == Some(&0xff) {
        return fault(&packet).map(Err);
    }
    let mut reader = Reader::new(&packet);
    if reader.u8()? != 0 {
        bail!("neither OK nor an error for PREPARE");
    }
    let id = reader.u32()?;
    let (columns, params) = (reader.u16()?, reader.u16()?);
    reader.u8()?;
    let warnings = reader.u16()?;
    let params = read_definitions(wire, params)?;
    let columns = read_definitions(wire, columns)?;
    Ok(Ok(Statement {
        id,
        params,
        columns,
        warnings,
    }))
}

fn read_definitions(wire: &mut Wire, count: u16) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(read_column(&wire.channel.read()?)?);
    }
    if count > 0 && wire.capabilities & capability::DEPRECATE_EOF == 0 {
        read_end(&wire.channel.read()?, wire.capabilities)?;
    }
    Ok(columns)
}

/// A row of the binary protocol.
pub(super) fn read_row(packet: &[u8], columns: &[Column]) -> Result<Vec<Value>> {
    let mut reader = Reader::new(packet);
    reader.u8()?;
    // The first two bits are not of any column.
    let nulls = reader.take((columns.len() + 2).div_ceil(8))?;
    let mut row = Vec::with_capacity(columns.len());
    for (column, bit) in columns.iter().zip(2usize..) {
        let is_null = nulls
            .get(bit / 8)
            .is_some_and(|byte| byte >> (bit % 8) & 1 == 1);
        row.push(if is_null {
            Value::Null
        } else {
            read_value(&mut reader, column)?
        });
    }
    if !reader.is_empty() {
        bail!("bytes after the last field of a row");
    }
    Ok(row)
}

fn read_value(reader: &mut Reader<'_>, column: &Column) -> Result<Value> {
    let (bits, raw) = match column.kind {
        kind::TINY => (8, u64::from(reader.u8()?)),
        kind::SHORT | kind::YEAR => (16, u64::from(reader.u16()?)),
        kind::LONG | kind::INT24 => (32, u64::from(reader.u32()?)),
        kind::LONGLONG => (64, reader.u64()?),
        kind::FLOAT => return Ok(Value::Real(f64::from(f32::from_bits(reader.u32()?)))),
        kind::DOUBLE => return Ok(Value::Real(f64::from_bits(reader.u64()?))),
        _ => return Ok(Value::Bytes(reader.string()?.to_vec())),
    };
    if column.flags & UNSIGNED != 0 {
        return Ok(Value::Unsigned(raw));
    }
    let unused = 64 - bits;
    Ok(Value::Signed((raw << unused).cast_signed() >> unused))
}
