//! Where an argument lies.

use std::ops::Range;

/// Where an argument is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Span {
    /// In the bytes as they were sent.
    Sent(Range<usize>),
    /// Among those that had quotes.
    Unquoted(Range<usize>),
}
