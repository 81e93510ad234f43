//! What a session gets when it starts, and the steps that it returns to its driver.

use keywright_core::Cause;
use keywright_rewrite::Server;

/// Limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest statement on a rule's table that is gathered to be rewritten, and longest file of a client for one, bytes.
    pub rewrite_bytes_max: usize,
    /// Prepared statements on rules' tables that one connection may have.
    pub statements_max: usize,
    /// Rows that one INSERT … SELECT or LOAD DATA may have: it is not tried again with more keys than this.
    pub select_rows_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rewrite_bytes_max: 64 << 20,
            statements_max: 16_384,
            select_rows_max: 1_000_000,
        }
    }
}

/// What is known of a connection when its authentication has succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// Flavour and version of the upstream.
    pub server: Server,
    /// Capabilities in force on both sides; MariaDB's extended ones in the upper half.
    pub capabilities: u64,
    /// Number of the client's collation.
    pub collation: u16,
    /// The user, as the client named it.
    pub user: Vec<u8>,
    /// The database chosen while connecting.
    pub database: Option<Vec<u8>>,
    /// Status flags of the OK packet that ended authentication.
    pub status: u16,
    /// Its limits.
    pub limits: Limits,
}

/// Keys that a statement needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRequest {
    /// Which of the listener's rules.
    pub rule: usize,
    /// How many.
    pub count: u64,
    /// Whether they must follow each other.
    pub contiguous: bool,
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFailure {
    /// The row of the table of failures.
    pub cause: Cause,
    /// The message for the client.
    pub message: String,
}

/// What the driver does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send the first so many bytes on unchanged, and drop them.
    Forward(usize),
    /// Drop the first so many bytes: what goes out instead is in the session's two outputs.
    Consumed(usize),
    /// The buffer of this side must hold so many bytes in all before anything can be said.
    More {
        /// Bytes.
        at_least: usize,
    },
    /// This side has to wait until the other one has sent something.
    Blocked,
    /// Keys are needed; then the same side is asked again.
    Keys(KeyRequest),
    /// The command at the front waits for other rules: the driver hands them over when they are there, and asks again. Or it waits for what
    /// [`crate::Session::awaited_answer`] says.
    Wait,
    /// The first so many bytes are COM_CHANGE_USER: the driver takes over until it succeeded or failed.
    Authenticate(usize),
    /// The first so many bytes are SHOW KEYWRIGHT: the driver drops them and calls [`crate::Session::show`] with what
    /// [`crate::Session::shown`] names.
    Show(usize),
    /// Send what is in the outputs, then close both sides.
    Close,
}

/// What became of a statement on a rule's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Which of the listener's rules, if that is known.
    pub rule: Option<usize>,
    /// What became of it.
    pub outcome: StatementOutcome,
}

/// What became of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementOutcome {
    /// It got keys.
    Rewritten,
    /// It would have got keys were the rule not observing.
    Observed,
    /// It went to the server unchanged, which makes at most so many ids for it; `None`: their number is not known.
    Native(Option<u64>),
    /// It was refused for this construct.
    Refused(&'static str),
    /// It was passed although this construct could not be rewritten.
    Passed(&'static str),
}
