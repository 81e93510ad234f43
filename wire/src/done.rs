//! What the packet at the end of a result says.

use crate::bytes::Reader;
use crate::protocol::{EOF, ERR};

/// An OK packet, or the EOF packet that ends rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Rows that were changed; 0 where rows end with EOF.
    pub affected_rows: u64,
    /// The id that the statement reports; 0 for none.
    pub insert_id: u64,
    /// Status flags.
    pub status: u16,
    /// How many warnings there are.
    pub warnings: u16,
    /// It is the end of rows.
    pub ends_rows: bool,
}

/// Reads an OK packet, also one that ends rows; `None` if it ends too early.
pub fn read_ok(payload: &[u8]) -> Option<Done> {
    let mut reader = Reader(payload);
    let ends_rows = reader.u8()? == EOF;
    Some(Done {
        affected_rows: reader.lenenc()?,
        insert_id: reader.lenenc()?,
        status: reader.u16()?,
        warnings: reader.u16()?,
        ends_rows,
    })
}

/// Reads an EOF packet; `None` if it is none.
pub fn read_eof(payload: &[u8]) -> Option<Done> {
    let mut reader = Reader(payload);
    (reader.u8()? == EOF).then_some(())?;
    let warnings = reader.u16()?;
    Some(Done {
        affected_rows: 0,
        insert_id: 0,
        status: reader.u16()?,
        warnings,
        ends_rows: true,
    })
}

/// Reads a packet that ends rows, of either kind; `None` if it ends too early.
pub fn read_end(payload: &[u8]) -> Option<Done> {
    if payload.len() == 5 {
        return read_eof(payload);
    }
    read_ok(payload)
}

/// Whether an error is MariaDB's report of progress, which is no end. With MySQL a SIGNAL may have that number; then its SQLSTATE
/// follows, as behind any other.
pub fn is_progress(error: &[u8]) -> bool {
    matches!(error, [_, ERR, 0xFF, rest @ ..] if rest.first() != Some(&b'#'))
}
