//! The plan of an INSERT … SELECT: where the text changes.

use std::ops::Range;

use crate::lex::token::is_apart;
use crate::plan::insert_plan::LastInsertId;

/// What to do with one INSERT … SELECT or REPLACE … SELECT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryPlan {
    /// Ascending and disjoint.
    pub(crate) edits: Vec<Edit>,
    pub(crate) counter: Option<Counter>,
    pub(crate) spread: Spread,
    pub(crate) explicit: bool,
    pub(crate) rows_max: Option<u64>,
    pub(crate) effects: bool,
    pub(crate) last_insert_id: LastInsertId,
    pub(crate) on_duplicate: bool,
    pub(crate) ignore: bool,
    /// A 0 stands where the key goes.
    pub(crate) for_zero: bool,
    pub(crate) by_mode: bool,
    pub(crate) by_order: bool,
    pub(crate) parameters: u32,
    /// How many of the parameters come before the key.
    pub(crate) parameters_before: u32,
}

/// One change of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The text from here …
    pub(crate) start: usize,
    /// … to here is replaced.
    pub(crate) end: usize,
    pub(crate) before: Vec<u8>,
    /// The key stands here.
    pub(crate) key: bool,
    pub(crate) after: Vec<u8>,
}

/// How rows are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// MariaDB.
    RowNum,
    /// MySQL.
    RowNumber,
}

/// Where the key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// A literal: there is one row at most.
    One,
    /// An expression in the query's own select list.
    Inside,
    /// An expression beside the rows of the query, which becomes a table of WITH.
    Around,
}

impl QueryPlan {
    /// Whether the query gives every row a key of its own: the statement is forwarded unchanged.
    pub fn explicit(&self) -> bool {
        self.explicit
    }

    /// Whether the text changes although every row brings a key of its own: it fails for a row that brings none.
    pub fn is_guarded(&self) -> bool {
        self.explicit && !self.edits.is_empty()
    }

    /// Whether one key is enough, of whatever kind.
    pub fn is_single(&self) -> bool {
        self.spread == Spread::One
    }

    /// How many rows there can be at most, if that is known.
    pub fn rows_max(&self) -> Option<u64> {
        self.rows_max
    }

    /// Whether carrying the statement out twice may leave more behind than once, even if the first time fails.
    pub fn has_effects(&self) -> bool {
        self.effects
    }

    /// How LAST_INSERT_ID() comes about.
    pub fn last_insert_id(&self) -> LastInsertId {
        self.last_insert_id
    }

    /// Whether it says ON DUPLICATE KEY UPDATE.
    pub fn on_duplicate(&self) -> bool {
        self.on_duplicate
    }

    /// Whether rows may not go in: IGNORE, ON DUPLICATE KEY UPDATE.
    pub fn may_skip(&self) -> bool {
        self.ignore || self.on_duplicate
    }

    /// Whether it says IGNORE.
    pub fn ignore(&self) -> bool {
        self.ignore
    }

    /// Whether a 0 asks for the key, which it does only without `NO_AUTO_VALUE_ON_ZERO`.
    pub fn for_zero(&self) -> bool {
        self.for_zero
    }

    /// Whether another sql_mode, or a table's engine, could make a key ask for one that does not now.
    pub fn by_mode(&self) -> bool {
        self.by_mode
    }

    /// Whether what its values are for follows from the order of the table's columns.
    pub fn by_order(&self) -> bool {
        self.by_order
    }

    /// How many `?` the text has.
    pub fn parameters(&self) -> u32 {
        self.parameters
    }

    /// Where the key is put in.
    pub(crate) fn key_at(&self) -> Option<usize> {
        let edit = self.edits.iter().find(|edit| edit.key)?;
        Some(edit.start)
    }

    pub(crate) fn text(&mut self, at: usize, text: Vec<u8>) {
        self.edits.push(Edit {
            start: at,
            end: at,
            before: text,
            key: false,
            after: Vec::new(),
        });
    }

    /// Leaves something out.
    pub(crate) fn without(&mut self, start: usize, end: usize) {
        self.instead(start..end, vec![b' ']);
    }

    /// Puts something in place of a part of the text.
    pub(crate) fn instead(&mut self, place: Range<usize>, text: Vec<u8>) {
        self.edits.push(Edit {
            start: place.start,
            end: place.end,
            before: text,
            key: false,
            after: Vec::new(),
        });
    }

    pub(crate) fn key(&mut self, start: usize, end: usize, before: &[u8], after: &[u8]) {
        self.edits.push(Edit {
            start,
            end,
            before: before.to_vec(),
            key: true,
            after: after.to_vec(),
        });
    }

    /// Keeps what was put in apart from words on both sides.
    pub(crate) fn part_from(&mut self, text: &[u8]) {
        for edit in self.edits.iter_mut().filter(|edit| edit.key) {
            let before = edit.start.checked_sub(1).and_then(|at| text.get(at));
            let is_in_place_of_another = edit.start < edit.end;
            if is_in_place_of_another && !before.is_none_or(|byte| is_apart(*byte)) {
                edit.before.push(b' ');
            }
            let next = text.get(edit.end).copied().unwrap_or(b' ');
            if !is_apart(next) && !matches!(next, b')' | b';') {
                edit.after.push(b' ');
            }
        }
    }
}
