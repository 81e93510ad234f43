//! What must be known of a prepared statement that is passed on.

use std::sync::Arc;

use keywright_rewrite::{QueryPlan, TableName, Unsupported};

use crate::answer::reply::Effect;
use crate::budget::Held;
use crate::insert::leaves_out::{LeavesOut, Native};
use crate::server::context::Named;
use crate::server::text_modes::TextModes;

/// Why an INSERT is to have no keys, although its table has a rule.
#[derive(Debug, Clone)]
pub(crate) struct Keyless {
    /// The table, named in full.
    pub(crate) table: TableName,
    pub(crate) rule: usize,
    /// A temporary table hides it; otherwise it is without the column of the rule.
    pub(crate) is_hidden: bool,
}

/// What must be known of a statement that is passed on.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    pub(crate) effect: Effect,
    pub(crate) change: Changes,
    /// An INSERT that was to have no keys then.
    pub(crate) keyless: Option<Keyless>,
    /// An INSERT whose keys are its own as long as sql_mode is what it was.
    pub(crate) by_mode: Option<ByMode>,
    /// An INSERT whose keys are its own as long as the columns of its table are in such an order.
    pub(crate) by_order: Option<ByOrder>,
    /// The rule of an INSERT … SELECT that fails for a row that brings no key of its own.
    pub(crate) guarded: Option<usize>,
    /// An INSERT on the table of a rule that only observed.
    pub(crate) observed: Option<Arc<Observed>>,
    /// The rules whose tables its text may name.
    pub(crate) named: Vec<usize>,
}

/// An INSERT that was prepared as its client wrote it, since its rule only observed.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) rule: usize,
    pub(crate) insert: ObservedInsert,
}

impl Observed {
    /// How it goes out natively, if it can go out again.
    pub(crate) fn native(&self) -> Option<Native> {
        match &self.insert {
            ObservedInsert::Rows {
                returning: false,
                native,
                ..
            } => Some(*native),
            ObservedInsert::Query => Some(Native {
                rule: self.rule,
                leaves_out: LeavesOut::OfPreparedQuery,
                rows_max: None,
            }),
            ObservedInsert::Rows {
                returning: true, ..
            }
            | ObservedInsert::Unsupported(_) => None,
        }
    }
}

#[derive(Debug)]
pub(crate) enum ObservedInsert {
    /// It can go over to keys.
    Rows {
        text: Vec<u8>,
        database: Option<Vec<u8>>,
        read_in: TextModes,
        parameters: usize,
        returning: bool,
        native: Native,
        held: Arc<Held>,
    },
    /// Its rows come from a query: there is no other text of it.
    Query,
    /// It cannot be rewritten.
    Unsupported(Unsupported),
}

/// Why an INSERT on a table with a rule was passed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByMode {
    pub(crate) rule: usize,
    pub(crate) sql_mode: SqlMode,
}

impl Default for Passed {
    /// Of a statement that was not read: it may see LAST_INSERT_ID().
    fn default() -> Self {
        Self {
            effect: Effect::UNKNOWN,
            change: Changes::Nothing,
            keyless: None,
            by_mode: None,
            by_order: None,
            guarded: None,
            observed: None,
            named: Vec::new(),
        }
    }
}

/// What an execution changes of what the session must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Changes {
    Nothing,
    /// The database.
    Database(Vec<u8>),
    /// Anything of the server's state.
    Unknown,
    /// That, and tables.
    Defined,
    /// Anything of the server's state, and what was prepared out of texts.
    Anything,
    /// Temporary tables.
    Tables {
        dropped: Vec<Named>,
        made: Vec<Named>,
    },
}

/// What is kept of an INSERT … SELECT that brings its own keys and lists no columns.
#[derive(Debug, Clone)]
pub(crate) struct ByOrder {
    pub(crate) text: Arc<OrderedText>,
    /// As of a [`Statement`].
    pub(crate) schema: u64,
}

#[derive(Debug)]
pub(crate) struct OrderedText {
    pub(crate) rule: usize,
    pub(crate) text: Vec<u8>,
    /// As of a [`Statement`].
    pub(crate) database: Option<Vec<u8>>,
    /// How it was prepared, if with a guard.
    pub(crate) guard: Option<QueryPlan>,
    /// The text's memory.
    pub(crate) _held: Held,
}

/// Of sql_mode: whether a 0 is a value, whether it is strict, and whether `''` is NULL.
pub(crate) type SqlMode = (Option<bool>, Option<bool>, bool);
