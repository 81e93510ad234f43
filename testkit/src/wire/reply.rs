//! What the server answers, as values.

use anyhow::bail;

use super::bytes::Reader;
use super::protocol::status;
use crate::Result;

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

/// The error that an error packet tells.
pub(super) fn fault(packet: &[u8]) -> Result<SqlFault> {
    let mut reader = Reader::new(packet);
    if reader.u8()? != 0xff {
        bail!("an error packet was expected");
    }
    let errno = reader.u16()?;
    let (sqlstate, message) = match reader.rest() {
        // Without the capability, and before it is agreed on, there is no state.
        [b'#', a, b, c, d, e, message @ ..] => (
            String::from_utf8_lossy(&[*a, *b, *c, *d, *e]).into_owned(),
            message,
        ),
        message => (String::new(), message),
    };
    Ok(SqlFault {
        errno,
        sqlstate,
        message: message.to_vec(),
    })
}
