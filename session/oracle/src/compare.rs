//! Whether both say the same.

use std::fmt::{self, Debug, Display};

/// What both say, if it is the same.
#[track_caller]
pub(crate) fn same<T: PartialEq + Debug>(what: impl Display, before: T, now: T) -> T {
    if before != now {
        panic!("{what} differs\n  before: {before:?}\n  now:    {now:?}");
    }
    now
}

/// Bytes, readable.
#[derive(PartialEq)]
pub(crate) struct Shown<'a>(pub(crate) &'a [u8]);

impl Debug for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.0.escape_ascii())
    }
}
