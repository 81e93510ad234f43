//! A native INSERT whose answer the client does not get yet.

use keywright_wire::answer::End;

use crate::answer::after::After;

/// The answer to a native INSERT, until the client gets it.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) after: After,
    pub(crate) end: Option<End>,
    pub(crate) answer: Vec<u8>,
    /// How many rows it changed.
    pub(crate) affected_rows: u64,
}

/// What the server said to an INSERT that it refused at the fence.
#[derive(Debug)]
pub(crate) struct AtFence {
    /// The version of the rules by which it went out.
    pub(crate) version: u64,
    pub(crate) answered: Answered,
    /// No other rules came in time: the client gets the answer.
    pub(crate) is_final: bool,
}
