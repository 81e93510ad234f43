//! MariaDB's COM_STMT_BULK_EXECUTE: many rows of parameters for one prepared statement, walked over.
//! A cell is never kept beyond its row: rows of one byte would take more memory than they come with.

use crate::bytes::Reader;
use crate::params::{Type, read_types};
use crate::protocol::COM_STMT_BULK_EXECUTE;
use crate::values::{BadValue, value};

/// The client wants a result with the id of each row.
const UNIT_RESULTS: u16 = 64;
/// Types come with this execution.
const SEND_TYPES: u16 = 128;

/// An execution as the client sent it.
#[derive(Debug)]
pub struct Bulk<'a> {
    flags: u16,
    /// Those in force.
    pub types: Vec<Type>,
    values: &'a [u8],
}

/// One value of one row.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'a> {
    /// Whether there is a value.
    pub indicator: Indicator,
    /// As sent; nothing where there is none.
    pub value: &'a [u8],
}

/// What a cell brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indicator {
    /// A value.
    Value,
    /// NULL.
    Null,
    /// The column's default.
    Default,
    /// As the default, in an INSERT.
    Ignore,
}

impl Indicator {
    /// The byte that says so.
    #[inline]
    pub fn byte(self) -> u8 {
        match self {
            Self::Value => 0,
            Self::Null => 1,
            Self::Default => 2,
            Self::Ignore => 3,
        }
    }
}

impl<'a> Bulk<'a> {
    /// Reads what follows the statement's number. `count` parameters are the statement's; `known` are their types at the last
    /// execution.
    ///
    /// # Errors
    /// It ends too early, there are no parameters, or their types were never sent.
    pub fn read(rest: &'a [u8], count: usize, known: Option<&[Type]>) -> Result<Self, BadValue> {
        let malformed = BadValue::Malformed;
        let mut reader = Reader(rest);
        let flags = reader.u16().ok_or(malformed)?;
        // Rows of no parameters would take no bytes.
        if count == 0 {
            return Err(malformed);
        }
        let types = if flags & SEND_TYPES != 0 {
            read_types(&mut reader, count, None).ok_or(malformed)?
        } else {
            known.ok_or(malformed)?.to_vec()
        };
        Ok(Self {
            flags,
            types,
            values: reader.0,
        })
    }

    /// Whether the client wants a result with the id of each row.
    pub fn wants_unit_results(&self) -> bool {
        self.flags & UNIT_RESULTS != 0
    }

    /// Appends it as it was sent, with the types that are in force.
    pub fn write_with_types(&self, out: &mut Vec<u8>) {
        out.extend((self.flags | SEND_TYPES).to_le_bytes());
        out.extend(self.types.iter().flatten());
        out.extend_from_slice(self.values);
    }

    /// Appends what stands before the types of an execution of `statement` that brings them.
    pub fn write_head(&self, statement: u32, out: &mut Vec<u8>) {
        out.push(COM_STMT_BULK_EXECUTE);
        out.extend(statement.to_le_bytes());
        out.extend((self.flags | SEND_TYPES).to_le_bytes());
    }

    /// Before its first row, for [`Bulk::row`].
    pub fn rows(&self) -> Reader<'a> {
        Reader(self.values)
    }

    /// Reads the next row into `row`; false behind the last.
    ///
    /// # Errors
    /// It ends too early, or has a value whose length is not known.
    pub fn row(&self, reader: &mut Reader<'a>, row: &mut Vec<Cell<'a>>) -> Result<bool, BadValue> {
        row.clear();
        if reader.0.is_empty() {
            return Ok(false);
        }
        for of_type in &self.types {
            let indicator = match reader.u8() {
                Some(0) => Indicator::Value,
                Some(1) => Indicator::Null,
                Some(2) => Indicator::Default,
                Some(3) => Indicator::Ignore,
                Some(4..) | None => return Err(BadValue::Malformed),
            };
            let value = match indicator {
                Indicator::Value => value(*of_type, reader)?,
                Indicator::Null | Indicator::Default | Indicator::Ignore => &[],
            };
            row.push(Cell { indicator, value });
        }
        Ok(true)
    }
}

/// The types that a bulk execution brings: `Some(None)` if it brings none, `None` if too little is there to tell.
pub fn bulk_types(rest: &[u8], count: usize) -> Option<Option<Vec<Type>>> {
    let mut reader = Reader(rest);
    if reader.u16()? & SEND_TYPES == 0 {
        return Some(None);
    }
    Some(Some(read_types(&mut reader, count, None)?))
}
