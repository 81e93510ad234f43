//! Names of schemas, tables and columns.

use std::borrow::Cow;

use crate::lex::cursor::Cursor;
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

/// Where one part of a name stands, without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameSpan {
    start: usize,
    end: usize,
    quote: Option<u8>,
}

impl NameSpan {
    /// The name.
    pub(crate) fn bytes(self, text: &[u8]) -> Cow<'_, [u8]> {
        let inner = text.get(self.start..self.end).unwrap_or_default();
        match self.quote {
            Some(quote) if inner.contains(&quote) => Cow::Owned(undouble(inner, quote)),
            _ => Cow::Borrowed(inner),
        }
    }
}

impl Cursor<'_> {
    /// Past one part of a name; its bytes without quotes.
    pub(crate) fn name_part(&mut self) -> Result<Vec<u8>, Unread> {
        Ok(self.name_span()?.bytes(self.text).into_owned())
    }

    /// Past one part of a name; where it stands.
    fn name_span(&mut self) -> Result<NameSpan, Unread> {
        self.skip_blanks()?;
        let start = self.at;
        if !self.at_quoted_name() {
            self.skip_word();
            return if self.at == start {
                Err(Unread::Refused)
            } else {
                Ok(NameSpan {
                    start,
                    end: self.at,
                    quote: None,
                })
            };
        }
        let quote = self.byte(0);
        self.at += 1;
        self.skip_quoted(quote)?;
        if self.at == start + 2 {
            return Err(Unread::Refused);
        }
        Ok(NameSpan {
            start: start + 1,
            end: self.at - 1,
            quote: Some(quote),
        })
    }

    /// Past a column that may be qualified; where its last part stands.
    pub(crate) fn column(&mut self) -> Result<NameSpan, Unread> {
        self.accept_mark(b'.')?;
        let mut last = self.name_span()?;
        for _ in 0..2 {
            if matches!(self.byte(0), b',' | b')') {
                break;
            }
            let mut ahead = *self;
            if !ahead.accept_mark(b'.')? {
                break;
            }
            last = ahead.name_span()?;
            *self = ahead;
        }
        Ok(last)
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
