//! A question of the session's own to the server. There is one slot for it: while it is out, nothing else is. Its answer changes what is
//! known of the server, or what is prepared there; then the command at the front is looked at again.

use crate::answer::after::After;
use crate::prepared::statements::Made;
use crate::server::context::Named;

/// What was asked.
#[derive(Debug)]
pub(crate) enum Probe {
    /// The state of its session: [`crate::server::context::probe`].
    Context,
    /// Whether this table is a temporary one.
    Temporary(Named),
    /// The columns of a table of this rule.
    Columns(usize),
    /// The character set of the client's results.
    ResultsCharset,
    /// Whether this table has the column of this rule.
    Key(Named, usize),
    /// Whether a table is still not there.
    Missing,
    /// Whether the client's account may insert into a table.
    Insert,
    /// The columns of a query's result.
    Result,
    /// The type of a query that is a key.
    KeyType,
    /// What so many keys are that the statement has the server compute. Whether an error is its answer.
    Computed { count: usize, tells: bool },
    /// The command at the front, of this rule, with a query as key that may come to none; what it changes otherwise.
    KeyOfQuery(Option<usize>, After),
    /// LAST_INSERT_ID() is brought up to date.
    SetLastInsertId,
    /// ROW_COUNT() is made what it is to the client.
    RestoreRowCount,
    /// What LAST_INSERT_ID() is.
    ReadLastInsertId,
    /// Another text of a statement that the client has prepared.
    Variant(u32, Box<Made>),
    /// The client's own text of one of its statements.
    AsIs(u32),
    /// What was sent as long data for a statement is forgotten.
    Reset,
    /// Status flags.
    Status,
}
