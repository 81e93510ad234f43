//! All that is wrong with a configuration, told at once.

use std::fmt;

/// All that is wrong with a configuration.
#[derive(Debug)]
pub struct Problems(pub(super) Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the configuration has {} problem(s):", self.0.len())?;
        self.0
            .iter()
            .try_for_each(|problem| write!(out, "\n    {problem}"))
    }
}

impl std::error::Error for Problems {}
