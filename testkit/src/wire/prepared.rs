//! Prepared statements and their parameters.

use anyhow::bail;

use super::bytes::{Reader, put_integer, put_string};
use super::link::Link;
use super::packet::{read_column, read_end};
use super::protocol::{capability, kind};
use super::reply::{Column, SqlFault, fault};
use crate::Result;

pub(super) const NO_CURSOR: u8 = 0;
pub(super) const READ_ONLY_CURSOR: u8 = 1;
/// With query attributes: the number of parameters follows.
const PARAMETER_COUNT: u8 = 8;

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
    /// Sent before with [`crate::Wire::send_long_data`].
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
pub(super) fn read_prepared(link: &mut Link) -> Result<std::result::Result<Statement, SqlFault>> {
    let packet = link.channel.read()?;
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
    let params = read_definitions(link, params)?;
    let columns = read_definitions(link, columns)?;
    Ok(Ok(Statement {
        id,
        params,
        columns,
        warnings,
    }))
}

fn read_definitions(link: &mut Link, count: u16) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(read_column(&link.channel.read()?)?);
    }
    if count > 0 && link.capabilities & capability::DEPRECATE_EOF == 0 {
        read_end(&link.channel.read()?, link.capabilities)?;
    }
    Ok(columns)
}
