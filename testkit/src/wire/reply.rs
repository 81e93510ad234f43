//! What the server answers.

use anyhow::{Context, bail};

use super::bytes::Reader;
use super::{Wire, binary, capability, fault};
use crate::Result;

/// Bits of [`Done::status`].
#[allow(missing_docs, reason = "named as in the protocol's documentation")]
pub mod status {
    pub const IN_TRANSACTION: u16 = 1;
    pub const AUTOCOMMIT: u16 = 1 << 1;
    pub const MORE_RESULTS: u16 = 1 << 3;
    pub const CURSOR_EXISTS: u16 = 1 << 6;
    pub const LAST_ROW_SENT: u16 = 1 << 7;
    pub const NO_BACKSLASH_ESCAPES: u16 = 1 << 9;
    pub const WAS_SLOW: u16 = 1 << 11;
    pub const STATE_CHANGED: u16 = 1 << 14;
}

/// One result of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Without rows.
    Done(Done),
    /// With rows, perhaps none.
    Rows(Rows),
    /// Refused.
    Failed(SqlFault),
}

/// An OK packet, or what an EOF packet has of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that changed.
    pub affected_rows: u64,
    /// What drivers call the last insert id; not `LAST_INSERT_ID()`.
    pub last_insert_id: u64,
    /// Bits, see [`status`].
    pub status: u16,
    /// How many warnings there are.
    pub warnings: u16,
    /// Such as `Records: 3  Duplicates: 0  Warnings: 0`.
    pub info: Vec<u8>,
    /// What session tracking reports, undecoded.
    pub changes: Vec<u8>,
}

/// A result set.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// In order.
    pub columns: Vec<Column>,
    /// In order.
    pub rows: Vec<Vec<Value>>,
    /// What came after the rows.
    pub end: Done,
}

/// A column as the server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the protocol's documentation")]
pub struct Column {
    pub schema: Vec<u8>,
    pub table: Vec<u8>,
    pub org_table: Vec<u8>,
    pub name: Vec<u8>,
    pub org_name: Vec<u8>,
    pub collation: u16,
    pub length: u32,
    pub kind: u8,
    pub flags: u16,
    pub decimals: u8,
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// Text protocol: everything. Binary protocol: strings, and dates and times as they were sent.
    Bytes(Vec<u8>),
    /// Binary protocol.
    Signed(i64),
    /// Binary protocol.
    Unsigned(u64),
    /// Binary protocol.
    Real(f64),
}

/// An error packet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {errno} ({sqlstate}): {}", String::from_utf8_lossy(message))]
pub struct SqlFault {
    /// The server's own number.
    pub errno: u16,
    /// Five characters; empty before login.
    pub sqlstate: String,
    /// In the connection's charset.
    pub message: Vec<u8>,
}

impl Reply {
    /// Whether another result follows.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let status = match self {
            Reply::Done(done) => done.status,
            Reply::Rows(rows) => rows.end.status,
            Reply::Failed(_) => 0,
        };
        status & status::MORE_RESULTS != 0
    }

    /// The OK packet.
    ///
    /// # Errors
    /// The server refused, or sent rows.
    pub fn done(self) -> Result<Done> {
        match self {
            Reply::Done(done) => Ok(done),
            Reply::Rows(_) => bail!("rows where none were expected"),
            Reply::Failed(fault) => Err(fault.into()),
        }
    }
}

impl Rows {
    /// The rows as one would print them.
    #[must_use]
    pub fn as_text(&self) -> Vec<Vec<String>> {
        let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect();
        self.rows.iter().map(row).collect()
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Bytes(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Value::Signed(number) => number.fmt(f),
            Value::Unsigned(number) => number.fmt(f),
            Value::Real(number) => number.fmt(f),
        }
    }
}

/// One result.
pub(super) fn read(wire: &mut Wire, is_binary: bool) -> Result<Reply> {
    let packet = wire.channel.read()?;
    match packet.first() {
        Some(0x00) => read_done(&packet, wire.capabilities).map(Reply::Done),
        // An old server's answer to a command without rows.
        Some(0xfe) if packet.len() < 9 => read_end(&packet, wire.capabilities).map(Reply::Done),
        Some(0xff) => fault(&packet).map(Reply::Failed),
        Some(0xfb) => {
            wire.send_local_file()?;
            read(wire, is_binary)
        }
        Some(_) => read_result_set(wire, is_binary, &packet),
        None => bail!("an empty packet for an answer"),
    }
}

fn read_result_set(wire: &mut Wire, is_binary: bool, head: &[u8]) -> Result<Reply> {
    let count = Reader::new(head).integer()?;
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(read_column(&wire.channel.read()?)?);
    }
    if wire.capabilities & capability::DEPRECATE_EOF == 0 {
        let packet = wire.channel.read()?;
        if packet.first() == Some(&0xff) {
            return fault(&packet).map(Reply::Failed);
        }
        let end = read_end(&packet, wire.capabilities)?;
        // A routine with a cursor of its own open says so too, and sends its rows.
        let rest = status::CURSOR_EXISTS | status::MORE_RESULTS;
        if is_binary && end.status & rest == status::CURSOR_EXISTS {
            let rows = Vec::new();
            return Ok(Reply::Rows(Rows { columns, rows, end }));
        }
    }
    let packet = wire.channel.read()?;
    if packet.first() == Some(&0xff) {
        return fault(&packet).map(Reply::Failed);
    }
    match read_rows(wire, columns, is_binary, packet) {
        Ok(rows) => Ok(Reply::Rows(rows)),
        // An error in the middle of the rows is the statement's.
        Err(error) => error.downcast::<SqlFault>().map(Reply::Failed),
    }
}

/// Rows up to their end, of which `packet` is the first.
pub(super) fn read_rows(
    wire: &mut Wire,
    columns: Vec<Column>,
    is_binary: bool,
    mut packet: Vec<u8>,
) -> Result<Rows> {
    let mut rows = Vec::new();
    loop {
        match packet.first() {
            // A row can begin like this only when its first field is longer than 16 MB.
            Some(0xfe) if packet.len() < 0xff_ffff => {
                let end = read_end(&packet, wire.capabilities)?;
                return Ok(Rows { columns, rows, end });
            }
            Some(0xff) => return Err(fault(&packet)?.into()),
            Some(_) | None if is_binary => rows.push(binary::read_row(&packet, &columns)?),
            Some(_) | None => rows.push(read_text_row(&packet, columns.len())?),
        }
        packet = wire.channel.read()?;
    }
}

fn read_text_row(packet: &[u8], columns: usize) -> Result<Vec<Value>> {
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

fn read_done(packet: &[u8], capabilities: u64) -> Result<Done> {
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
