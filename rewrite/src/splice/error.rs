//! Why a text cannot be written by its plan.

use thiserror::Error;

/// Why no text could be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SpliceError {
    /// There are fewer or more keys than rows that need one.
    #[error("a statement that needs {wanted} keys was given {given}")]
    Keys {
        /// [`Plan::keys`](crate::Plan::keys).
        wanted: u64,
        /// What was given.
        given: u64,
    },
    /// The text is not the one the plan was made for.
    #[error("the plan is for another text")]
    Text,
}
