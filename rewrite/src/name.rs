//! Names of schemas, tables and columns.

use crate::cursor::{Cursor, is_word};
use crate::refusal::Unread;

/// A table as a statement names it, without quotes, in the client's character set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The schema, if it is named.
    pub schema: Option<Vec<u8>>,
    /// The table.
    pub table: Vec<u8>,
}

/// A name of up to three parts.
pub(crate) struct Path {
    /// What stands before the last part, from left to right.
    pub(crate) qualifiers: Vec<Vec<u8>>,
    /// The last part.
    pub(crate) last: Vec<u8>,
}

impl Cursor<'_> {
    /// Past one part of a name; its bytes without quotes.
    pub(crate) fn name_part(&mut self) -> Result<Vec<u8>, Unread> {
        self.skip_blanks()?;
        let start = self.at;
        if self.at_quoted_name() {
            let quote = self.byte(0);
            self.at += 1;
            self.skip_quoted(quote)?;
            let quoted = self.since(start);
            let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
            return if inner.is_empty() {
                Err(Unread::Refused)
            } else {
                Ok(undouble(inner, quote))
            };
        }
        if !is_word(self.byte(0)) {
            return Err(Unread::Refused);
        }
        self.skip_word();
        Ok(self.since(start).to_vec())
    }

    /// Past a name that may be qualified: `a`, `a.b`, `.b`, `a.b.c`; not past the blanks behind it.
    pub(crate) fn path(&mut self) -> Result<Path, Unread> {
        let mut qualifiers = Vec::new();
        self.accept_mark(b'.')?;
        let mut last = self.name_part()?;
        let mut end = *self;
        while self.accept_mark(b'.')? {
            qualifiers.push(std::mem::replace(&mut last, self.name_part()?));
            end = *self;
            if qualifiers.len() > 2 {
                return Err(Unread::Refused);
            }
        }
        *self = end;
        Ok(Path { qualifiers, last })
    }

    /// Past the name of a table.
    pub(crate) fn table_name(&mut self) -> Result<TableName, Unread> {
        let mut path = self.path()?;
        let schema = path.qualifiers.pop();
        if path.qualifiers.is_empty() {
            Ok(TableName {
                schema,
                table: path.last,
            })
        } else {
            Err(Unread::Refused)
        }
    }
}

/// The bytes of a quoted name or of a string without escapes, whose quotes are doubled.
pub(crate) fn undouble(inner: &[u8], quote: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        bytes.push(byte);
        if byte == quote {
            rest.next();
        }
    }
    bytes
}

/// Appends a name between backquotes.
pub(crate) fn write_name(name: &[u8], out: &mut Vec<u8>) {
    out.push(b'`');
    for byte in name {
        if *byte == b'`' {
            out.push(b'`');
        }
        out.push(*byte);
    }
    out.push(b'`');
}
