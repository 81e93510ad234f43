//! What the packet at the end of a result says.

use crate::bytes::Reader;
use crate::protocol::{EOF, ERR};

/// More results follow.
pub(crate) const MORE_RESULTS: u16 = 0x0008;

/// An OK packet, or the EOF packet that ends rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) affected_rows: u64,
    pub(crate) insert_id: u64,
    pub(crate) status: u16,
    pub(crate) warnings: u16,
    /// It is the end of rows.
    pub(crate) ends_rows: bool,
}

/// Reads an OK packet, also one that ends rows.
pub(crate) fn read_ok(payload: &[u8]) -> Option<Done> {
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

/// Reads an EOF packet.
pub(crate) fn read_eof(payload: &[u8]) -> Option<Done> {
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

/// Reads a packet that ends rows, of either kind.
pub(crate) fn read_end(payload: &[u8]) -> Option<Done> {
    if payload.len() == 5 {
        return read_eof(payload);
    }
    read_ok(payload)
}

/// Whether an error is MariaDB's report of progress, which is no end. With MySQL a SIGNAL may have that number; then its SQLSTATE
/// follows, as behind any other.
pub(crate) fn is_progress(error: &[u8]) -> bool {
    matches!(error, [_, ERR, 0xFF, rest @ ..] if rest.first() != Some(&b'#'))
}
