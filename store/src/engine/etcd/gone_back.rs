//! How a cluster was found to be at an earlier state than before.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What of a cluster only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Counter {
    Revision,
    RaftTerm,
}

impl fmt::Display for Counter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Revision => "revision",
            Self::RaftTerm => "raft term",
        })
    }
}

/// How a cluster was found to have gone back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GoneBack {
    pub(crate) what: Counter,
    pub(crate) was: u64,
    pub(crate) is: u64,
}

impl fmt::Display for GoneBack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, was, is } = self;
        write!(formatter, "its {what} was {was}, and is {is}")
    }
}
