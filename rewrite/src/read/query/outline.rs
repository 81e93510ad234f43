//! The outline of a query whose rows are inserted: its select list and which clauses it has.

use crate::read::query::clause::Clauses;
use crate::refusal::{SelectConstruct, Unread, Unsupported};

/// What is known of a query `[WITH …] SELECT …`, perhaps in parentheses.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// Where its first word starts, inside the parentheses.
    pub(crate) start: usize,
    /// Behind its last token, inside the parentheses; behind its tail where there is one.
    pub(crate) end: usize,
    /// Where the outermost of these parentheses starts, and behind the other one.
    pub(crate) parentheses: Option<(usize, usize)>,
    /// Where FOR UPDATE or the like starts, behind which nothing can be put.
    pub(crate) locking: Option<usize>,
    /// The items of its select list; of a union each part's.
    pub(crate) parts: Vec<Vec<Item>>,
    /// Of a union those that any part has.
    pub(crate) clauses: Clauses,
    pub(crate) limit: Limit,
    /// ORDER BY of something else than the numbers of columns; of a union its own, behind its last part.
    pub(crate) is_ordered_by_name: bool,
    pub(crate) tail: Tail,
    /// The tail refers to nothing of the query but its rows.
    pub(crate) has_own_tail: bool,
    /// UNIX_TIMESTAMP() in the select list.
    pub(crate) has_unix_timestamp: bool,
    /// Something that must not be carried out twice, or may be such.
    pub(crate) has_effects: bool,
}

/// An item of a select list, with its alias.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// `*` or `t.*`: any number of columns.
    pub(crate) star: bool,
    /// It may be another after a temporary table has held it.
    pub(crate) may_lose_digits: bool,
}

/// How many rows LIMIT, FETCH or OFFSET lets through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Limit {
    /// There is none of them.
    #[default]
    None,
    /// All behind the first ones: OFFSET stands alone.
    Behind,
    /// The number is not known.
    Unknown,
    /// So many at most.
    Rows(u64),
}

impl Limit {
    /// By the number that stands there, if it is known.
    pub(crate) fn of(number: Option<u64>) -> Self {
        number.map_or(Self::Unknown, Self::Rows)
    }

    /// The number, if there is one and it is known.
    pub(crate) fn rows(self) -> Option<u64> {
        match self {
            Self::None | Self::Behind | Self::Unknown => None,
            Self::Rows(rows) => Some(rows),
        }
    }
}

/// What follows the query in its statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing.
    #[default]
    None,
    /// ON DUPLICATE KEY UPDATE.
    OnDuplicate,
    /// ON DUPLICATE KEY UPDATE, and RETURNING behind it.
    OnDuplicateReturning,
}

/// A query that is left alone.
pub(crate) fn with<T>(what: SelectConstruct) -> Result<T, Unread> {
    Err(Unsupported::SelectWith(what).into())
}
