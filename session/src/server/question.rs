//! Questions about a table that the session asks the server before a statement on it. It asks for columns by preparing a SELECT,
//! which is never executed.

use keywright_rewrite::{ResultColumn, TableName};

use crate::server::context::Named;
use crate::server::met_table::MetTable;

/// Error numbers of the server: no such table, no such schema, no schema chosen.
const NO_TABLE: u16 = 1146;
const NO_SCHEMA: u16 = 1049;
const NO_DATABASE: u16 = 1046;

/// Whether that is why a question about a table has no answer.
pub(super) fn says_no_table(error: u16) -> bool {
    matches!(error, NO_TABLE | NO_SCHEMA | NO_DATABASE)
}

/// What must be known of a table.
#[derive(Debug)]
pub(crate) enum Question {
    /// Its live columns, for a statement on a table of this rule. Where the rule gives keys, that it is not there is the answer to the client.
    Columns(TableName, usize),
    /// The character set in which names of columns come.
    ResultsCharset,
    /// Whether it has the column of this rule.
    Key(TableName, usize),
    /// Whether a temporary table hides it.
    Hidden(TableName),
    /// Whether it is still not there. If so, that is the answer to the client.
    Missing(TableName),
    /// Whether the client's account may insert into it. If not, that is the answer to the client.
    Insert(TableName),
    /// What the columns of this query's result are.
    Result(Vec<u8>),
    /// What the type of this query is, which is a key.
    KeyType(Vec<u8>),
    /// Whether the program's own account may see this table, which the program asks by that account; [`crate::SchemaChanges::answers`] so far.
    Shown(MetTable, u64),
}

impl Question {
    /// The same of a table in that database, unless its name says another.
    pub(crate) fn within(mut self, database: Option<&[u8]>) -> Self {
        let table = match &mut self {
            Self::Columns(table, _)
            | Self::Key(table, _)
            | Self::Hidden(table)
            | Self::Missing(table)
            | Self::Insert(table) => table,
            // The names in its query are those of the database that is chosen.
            Self::Result(..) | Self::KeyType(..) => return self,
            Self::Shown(..) | Self::ResultsCharset => return self,
        };
        table.schema = table.schema.take().or(database.map(<[u8]>::to_vec));
        self
    }
}

/// Whether a table has the column of its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyThere {
    Yes,
    /// It has, and the rule's keys have no room in it.
    Narrow,
    /// The same, as it holds text and the keys are numbers.
    Text,
    /// It has not.
    No,
    /// The server does not say: there is no such table, or the account may only insert.
    Untold,
}

/// What a table is, as the server describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Described {
    /// A temporary one.
    Temporary,
    /// Something else, or nothing, or the server does not say.
    Other,
}

/// What the server has computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ComputedValues {
    /// Whole numbers, or NULL. Of keys that are no numbers: whether they are NULL.
    Known(Vec<Option<i128>>),
    /// One is out of range, and is again in the statement itself.
    OutOfRange,
    /// Something else, or with a warning, or an error.
    Other,
}

/// What the server has said of the table of the command at the front, and how an error is its answer.
#[derive(Debug, Default)]
pub(crate) struct TableReport {
    /// Its live columns, for a statement without column list.
    pub(crate) columns: Option<Vec<Vec<u8>>>,
    /// The server has told names of columns in a character set that is not known.
    pub(crate) are_names_unread: bool,
    /// There is no such table.
    pub(crate) missing: bool,
    /// It was not there, and has come since.
    pub(crate) has_come: bool,
    /// [`crate::SchemaChanges::all`] when the first question was asked: later changes may be in the answers or not.
    pub(crate) asked_at: Option<u64>,
    /// Whether it has the column of its rule.
    pub(crate) key: Option<KeyThere>,
    /// That column, which has room for the rule's keys, is NOT NULL.
    pub(crate) is_not_null: bool,
    /// What it computes as keys is not asked for: the command prepares an INSERT, or executes one that was prepared.
    pub(crate) is_prepared: bool,
    /// The server was asked whether the client's account may insert into it, and has not said that it may not.
    pub(crate) may_insert: bool,
    /// What this table is.
    pub(crate) described: Option<(Named, Described)>,
    /// What the result of the statement's query is; empty where the server does not say.
    pub(crate) result: Option<Vec<ResultColumn>>,
    /// What its computed keys are.
    pub(crate) computed: Option<ComputedValues>,
    /// Those that the text at hand still computes are not NULL: the server has said so, and others are written out.
    pub(crate) nulls_are_known: bool,
    /// The command waits for what the program's own account may see of this table; [`crate::SchemaChanges::answers`] so far.
    pub(crate) awaited: Option<(MetTable, u64)>,
    /// It has waited for that for too long.
    pub(crate) is_unanswered: bool,
    /// The command executes the statement of this number: with an error its long data is over.
    pub(crate) executed: Option<u32>,
    /// The number of the first packet of its answer, if something was asked for it.
    pub(crate) answer_sequence: Option<u8>,
}
