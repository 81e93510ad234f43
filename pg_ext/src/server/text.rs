//! Texts as the server hands them over: bytes in the database's encoding, which need not be Rust's.

use std::fmt;

use crate::server::process;

/// Why a text cannot be read here: what it stands for depends on an encoding that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAscii {
    byte: u8,
    position: usize,
}

impl fmt::Display for NotAscii {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { byte, position } = self;
        write!(
            out,
            "it has the byte \\x{byte:02x} at position {position}, which is not ASCII"
        )
    }
}

/// Reads a text, whose proper values are all ASCII. In a UTF-8 database others come through too, so that messages can show
/// them; elsewhere they end here, for a message is sent in the database's encoding.
///
/// # Errors
/// [`NotAscii`] in other encodings.
pub fn read(bytes: &[u8]) -> Result<&str, NotAscii> {
    let first = || {
        let position = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
        let byte = bytes.get(position).copied().unwrap_or(0);
        NotAscii { byte, position }
    };
    if process::encoding_is_utf8() || bytes.is_ascii() {
        std::str::from_utf8(bytes).map_err(|_| first())
    } else {
        Err(first())
    }
}

/// A name for a message, which Rust wants in UTF-8 and the server in the database's encoding: where they differ, what is
/// not ASCII is shown byte by byte.
pub fn shown(bytes: &[u8]) -> String {
    match read(bytes) {
        Ok(text) => text.to_owned(),
        Err(NotAscii { .. }) => bytes
            .iter()
            .map(|byte| match byte {
                byte if byte.is_ascii() => char::from(*byte).to_string(),
                byte => format!("\\x{byte:02x}"),
            })
            .collect(),
    }
}
