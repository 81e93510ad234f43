//! Packets of answers, read one by one.

use anyhow::{Context, bail};

use super::bytes::Reader;
use super::protocol::{capability, kind, status};
use super::reply::{Column, Done, Value, fault};
use crate::Result;

const UNSIGNED: u16 = 0x20;

pub(super) fn read_text_row(packet: &[u8], columns: usize) -> Result<Vec<Value>> {
    let mut reader = Reader::new(packet);
    let mut row = Vec::with_capacity(columns);
    for _ in 0..columns {
        let mut ahead = reader;
        if ahead.u8()? == 0xfb {
            reader = ahead;
            row.push(Value::Null);
        } else {
            row.push(Value::Bytes(reader.string()?.to_vec()));
        }
    }
    if !reader.is_empty() {
        bail!("bytes after the last field of a row");
    }
    Ok(row)
}

pub(super) fn read_column(packet: &[u8]) -> Result<Column> {
    let mut reader = Reader::new(packet);
    reader.string().context("catalog")?;
    let mut strings = [const { Vec::new() }; 5];
    for string in &mut strings {
        *string = reader.string()?.to_vec();
    }
    let [schema, table, org_table, name, org_name] = strings;
    reader.integer()?;
    Ok(Column {
        schema,
        table,
        org_table,
        name,
        org_name,
        collation: reader.u16()?,
        length: reader.u32()?,
        kind: reader.u8()?,
        flags: reader.u16()?,
        decimals: reader.u8()?,
    })
}

/// EOF, or OK in its place.
pub(super) fn read_end(packet: &[u8], capabilities: u64) -> Result<Done> {
    if capabilities & capability::DEPRECATE_EOF != 0 && packet.len() > 5 {
        return read_done(packet, capabilities);
    }
    let mut reader = Reader::new(packet);
    match reader.u8()? {
        0xfe => Ok(Done {
            warnings: reader.u16()?,
            status: reader.u16()?,
            ..Done::default()
        }),
        0xff => Err(fault(packet)?.into()),
        first => bail!("packet {first:#x} where rows should end"),
    }
}

pub(super) fn read_done(packet: &[u8], capabilities: u64) -> Result<Done> {
    let mut reader = Reader::new(packet);
    reader.u8()?;
    let mut done = Done {
        affected_rows: reader.integer()?,
        last_insert_id: reader.integer()?,
        status: reader.u16()?,
        warnings: reader.u16()?,
        ..Done::default()
    };
    if capabilities & capability::SESSION_TRACK == 0 {
        done.info = reader.rest().to_vec();
        return Ok(done);
    }
    if !reader.is_empty() {
        done.info = reader.string()?.to_vec();
    }
    if done.status & status::STATE_CHANGED != 0 {
        done.changes = reader.string()?.to_vec();
    }
    if !reader.is_empty() {
        bail!("bytes after the end of an OK packet");
    }
    Ok(done)
}

/// A row of the binary protocol.
pub(super) fn read_binary_row(packet: &[u8], columns: &[Column]) -> Result<Vec<Value>> {
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
