//! What errors of drivers say, once.

use std::error::Error;

/// What an error is about in the end: the driver's errors repeat what is inside of them.
#[must_use]
pub fn innermost(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}
