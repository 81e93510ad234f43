//! Answers that are made up: OK, and results of text.

use crate::bytes::{write_lenenc, write_packet};
use crate::protocol::{EOF, NULL};

/// A result that is written whole.
pub struct TextResult<'a> {
    /// The number of the first packet.
    pub sequence: u8,
    /// Whether it ends with OK where it ended with EOF.
    pub deprecate_eof: bool,
    /// Whether columns say more of their types, as MariaDB's may.
    pub extended: bool,
    /// The server's status flags.
    pub status: u16,
    /// The collation of columns and values.
    pub collation: u16,
    /// The names of its columns.
    pub columns: &'a [&'a [u8]],
}

/// Longest value that a column announces, bytes. Clients use it for display only.
const SHOWN_BYTES: u32 = 1024;
/// VARCHAR on the wire.
const VAR_STRING: u8 = 0xFD;
/// BIGINT on the wire.
const LONGLONG: u8 = 0x08;
/// The collation of what is no text.
const BINARY: u16 = 63;

/// Appends OK: nothing affected, no id.
pub fn write_ok(sequence: u8, status: u16, out: &mut Vec<u8>) {
    let [low, high] = status.to_le_bytes();
    write_packet(&[0, 0, 0, low, high, 0, 0], sequence, out);
}

/// Appends the definition of a column of text; the number after it.
pub fn write_column(
    name: &[u8],
    collation: u16,
    extended: bool,
    sequence: u8,
    out: &mut Vec<u8>,
) -> u8 {
    write_definition(name, (VAR_STRING, collation), extended, sequence, out)
}

/// Appends the definition of a column of integers, for a client without extended metadata; the number after it.
pub fn write_integer_column(name: &[u8], sequence: u8, out: &mut Vec<u8>) -> u8 {
    write_definition(name, (LONGLONG, BINARY), false, sequence, out)
}

fn write_definition(
    name: &[u8],
    (kind, collation): (u8, u16),
    extended: bool,
    sequence: u8,
    out: &mut Vec<u8>,
) -> u8 {
    let mut payload = Vec::with_capacity(name.len().saturating_add(32));
    for part in [b"def".as_slice(), b"", b"", b"", name, b""] {
        write_text(part, &mut payload);
    }
    if extended {
        write_text(b"", &mut payload);
    }
    payload.push(12);
    payload.extend(collation.to_le_bytes());
    payload.extend(SHOWN_BYTES.to_le_bytes());
    payload.extend([kind, 0, 0, 0, 0, 0]);
    write_packet(&payload, sequence, out)
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    write_lenenc(u64::try_from(text.len()).unwrap_or(0), out);
    out.extend_from_slice(text);
}

impl TextResult<'_> {
    /// Appends the result; a value may be NULL.
    pub fn write<'v>(&self, rows: impl Iterator<Item = Vec<Option<&'v [u8]>>>, out: &mut Vec<u8>) {
        let mut count = Vec::new();
        write_lenenc(u64::try_from(self.columns.len()).unwrap_or(0), &mut count);
        let mut sequence = write_packet(&count, self.sequence, out);
        for name in self.columns {
            sequence = write_column(name, self.collation, self.extended, sequence, out);
        }
        if !self.deprecate_eof {
            sequence = self.write_end(sequence, out);
        }
        for row in rows {
            let mut payload = Vec::new();
            for value in row {
                match value {
                    Some(value) => write_text(value, &mut payload),
                    None => payload.push(NULL),
                }
            }
            sequence = write_packet(&payload, sequence, out);
        }
        self.write_end(sequence, out);
    }

    fn write_end(&self, sequence: u8, out: &mut Vec<u8>) -> u8 {
        let [low, high] = self.status.to_le_bytes();
        if self.deprecate_eof {
            write_packet(&[EOF, 0, 0, low, high, 0, 0], sequence, out)
        } else {
            write_packet(&[EOF, 0, 0, low, high], sequence, out)
        }
    }
}
