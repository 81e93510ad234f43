//! The fronts of commands, as far as they say what is to be done with them.

use keywright_wire::bytes::{HEADER_BYTES, Header, Reader, whole};

/// Longest command that only names something: a statement, a database, a user with what its client says of itself. Bytes.
const SHORT_BYTES_MAX: usize = 64 << 10;

/// The packets make no sense, nor does what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfOrder;

/// Why a command says nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undecoded {
    /// There must be so many bytes of it.
    More { at_least: usize },
    /// It breaks the protocol.
    OutOfOrder,
    /// What it was taken for before holds no more: it is to be looked at as if it had just come.
    Anew,
}

impl From<OutOfOrder> for Undecoded {
    fn from(_: OutOfOrder) -> Self {
        Self::OutOfOrder
    }
}

/// The header at the front, and the command's number.
pub(crate) fn code(bytes: &[u8]) -> Result<(Header, u8), Undecoded> {
    let header = Header::read(bytes).ok_or(Undecoded::More {
        at_least: HEADER_BYTES,
    })?;
    if header.len == 0 {
        return Err(Undecoded::OutOfOrder);
    }
    let code = bytes.get(HEADER_BYTES).ok_or(Undecoded::More {
        at_least: HEADER_BYTES + 1,
    })?;
    Ok((header, *code))
}

/// The payload of a command that is needed whole and is never long.
pub(crate) fn short(header: Header, bytes: &[u8]) -> Result<&[u8], Undecoded> {
    if header.len > SHORT_BYTES_MAX {
        return Err(Undecoded::OutOfOrder);
    }
    whole(header, bytes).ok_or(Undecoded::More {
        at_least: header.total(),
    })
}

/// The number of the statement that is executed by a command of so many bytes at least.
pub(crate) fn executed(header: Header, bytes: &[u8], len_min: usize) -> Result<u32, Undecoded> {
    if header.len < len_min {
        return Err(Undecoded::OutOfOrder);
    }
    let rest = bytes.get(HEADER_BYTES + 1..).unwrap_or_default();
    Reader(rest).u32().ok_or(Undecoded::More {
        at_least: HEADER_BYTES + 5,
    })
}

/// What stands before the bytes of COM_STMT_SEND_LONG_DATA.
pub(crate) struct LongData {
    pub(crate) statement: u32,
    pub(crate) parameter: u16,
}

impl LongData {
    /// Header, command and this.
    pub(crate) const FRONT_BYTES: usize = HEADER_BYTES + 7;

    pub(crate) fn read(header: Header, bytes: &[u8]) -> Result<Self, Undecoded> {
        if header.total() < Self::FRONT_BYTES {
            return Err(Undecoded::OutOfOrder);
        }
        let mut reader = Reader(bytes.get(HEADER_BYTES + 1..).unwrap_or_default());
        let front = reader.u32().zip(reader.u16());
        let (statement, parameter) = front.ok_or(Undecoded::More {
            at_least: Self::FRONT_BYTES,
        })?;
        Ok(Self {
            statement,
            parameter,
        })
    }
}
