//! What is no request.

use std::fmt;

/// Why bytes are no request. Nothing can be read behind it: the connection ends with the error that this prints, in the words of
/// Redis where it has some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The count of arguments is no number, or above `arguments_max`.
    ArgumentCount,
    /// An argument does not begin with `$` but with this byte.
    NoBulk(u8),
    /// The length of an argument is no number, or above `argument_bytes_max`.
    ArgumentLength,
    /// A length or an argument does not end with CR and LF.
    NoLineEnd,
    /// The request is longer than `request_bytes_max`.
    TooLong,
    /// A quote in an inline command is not closed, or something stands right behind it.
    Quotes,
}

impl Fault {
    /// All of them, each once.
    pub const ALL: [Self; 6] = [
        Self::ArgumentCount,
        Self::NoBulk(b'*'),
        Self::ArgumentLength,
        Self::NoLineEnd,
        Self::TooLong,
        Self::Quotes,
    ];

    /// Whether a request that keeps to the protocol was longer than the limits allow, or may have been.
    #[must_use]
    pub fn is_of_length(self) -> bool {
        match self {
            Self::ArgumentCount | Self::ArgumentLength | Self::TooLong => true,
            Self::NoBulk(_) | Self::NoLineEnd | Self::Quotes => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArgumentCount => out.write_str("Protocol error: invalid multibulk length"),
            Self::NoBulk(byte) => {
                write!(
                    out,
                    "Protocol error: expected '$', got '{}'",
                    byte.escape_ascii()
                )
            }
            Self::ArgumentLength => out.write_str("Protocol error: invalid bulk length"),
            Self::NoLineEnd => out.write_str("Protocol error: expected CR and LF"),
            Self::TooLong => out.write_str("Protocol error: too big request"),
            Self::Quotes => out.write_str("Protocol error: unbalanced quotes in request"),
        }
    }
}

impl std::error::Error for Fault {}
