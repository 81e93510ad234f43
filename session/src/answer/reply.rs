//! What the session must know of a statement to put LAST_INSERT_ID() right behind it, and what it has to become.

use keywright_rewrite::{LastInsertId, LastInsertIdChange};
use keywright_wire::done::Done;

/// What a statement that is passed on may see and change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    /// It could see LAST_INSERT_ID().
    pub(crate) sees: bool,
    /// It calls something that may do more than its text shows.
    pub(crate) calls: bool,
    /// It asks for ROW_COUNT().
    pub(crate) counts: bool,
    pub(crate) change: LastInsertIdChange,
    /// It is an INSERT: its OK packet says whether a key was generated.
    pub(crate) inserts: bool,
}

impl Effect {
    /// Of a statement that was not read.
    pub(crate) const UNKNOWN: Self = Self {
        sees: true,
        calls: true,
        counts: false,
        change: LastInsertIdChange::Unknown,
        inserts: false,
    };
}

/// What the session must know to correct the answer to a rewritten statement.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) last_insert_id: LastInsertId,
    pub(crate) rows: u64,
    pub(crate) keys: u64,
    /// The first key.
    pub(crate) first: Option<u64>,
    pub(crate) may_skip: bool,
    pub(crate) on_duplicate: bool,
    /// The statement may have given LAST_INSERT_ID() a value of its own.
    pub(crate) may_change: bool,
    /// What LAST_INSERT_ID() showed before, as far as that is known.
    pub(crate) before: Option<u64>,
}

/// What LAST_INSERT_ID() has to become before anybody can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingLastInsertId {
    /// This.
    To(u64),
    /// This if the server's is above a number, and else what it was before: it counts the keys of a LOAD DATA.
    ToIfAbove { above: u64, id: u64, before: u64 },
}

impl PendingLastInsertId {
    /// The number, if it is known.
    pub(crate) fn id(self) -> Option<u64> {
        match self {
            Self::To(id) => Some(id),
            Self::ToIfAbove { .. } => None,
        }
    }

    /// The number, as the server computes it.
    pub(crate) fn expression(self) -> String {
        match self {
            Self::To(id) => id.to_string(),
            Self::ToIfAbove { above, id, before } => {
                format!("IF(LAST_INSERT_ID()>{above},{id},{before})")
            }
        }
    }
}

/// What LAST_INSERT_ID() is to show after a statement that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reported {
    /// What it showed before; the server's own id in the OK packet is right.
    Before,
    /// What it showed before, although the server has the key that did not go in.
    NotThatKey,
    /// This key, in the OK packet too.
    Key(u64),
}

impl Reply {
    /// The id that native auto-increment would have reported.
    pub(crate) fn reported(&self, done: Done) -> Reported {
        let Some(first) = self.first else {
            return Reported::Before;
        };
        let nothing = self.may_skip && done.affected_rows == 0;
        match self.last_insert_id {
            LastInsertId::None => Reported::Before,
            LastInsertId::Wrapped if nothing => Reported::NotThatKey,
            LastInsertId::Wrapped => Reported::Key(first),
            LastInsertId::Literal if !self.may_skip => Reported::Key(first),
            LastInsertId::Literal if self.rows == 1 && self.went_in(done, first) => {
                Reported::Key(first)
            }
            LastInsertId::Literal if self.rows == 1 || nothing => Reported::Before,
            // Several rows, and the server does not say which went in: none, or as if the first did.
            LastInsertId::Literal if self.on_duplicate && done.affected_rows == self.rows * 2 => {
                Reported::Before
            }
            LastInsertId::Literal => Reported::Key(first),
        }
    }

    /// Whether the only row went in. A column without AUTO_INCREMENT reports no id, and a value may report another; then the number
    /// of rows tells, which for an update is 2, or 0 when nothing changed, or 1 where rows that are found count.
    fn went_in(&self, done: Done, first: u64) -> bool {
        let is_counted = done.insert_id == 0 || !self.on_duplicate;
        done.insert_id == first || (is_counted && done.affected_rows == 1)
    }
}

/// Whether a text may ask for ROW_COUNT().
pub(crate) fn names_row_count(text: &[u8]) -> bool {
    const NAME: &[u8] = b"row_count";
    text.windows(NAME.len())
        .any(|part| part.eq_ignore_ascii_case(NAME))
}
