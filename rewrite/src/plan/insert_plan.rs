//! The plan of an INSERT or REPLACE: what is kept of it, and written by.

use crate::modes::Modes;
use crate::plan::site::{KeyParameter, Site};
use crate::read::constant::Care;
use crate::read::insert_head::Verb;

/// How the server comes to report the first key as LAST_INSERT_ID().
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LastInsertId {
    /// The first generated key is written as `LAST_INSERT_ID(k)`: the server reports it in the OK packet and afterwards. Of
    /// several it is written into the second row that gets one, so that nothing is reported when the first row fails.
    Wrapped,
    /// Literals only; the OK packet's id is corrected and LAST_INSERT_ID() brought up to date afterwards.
    Literal,
    /// A native insert would report nothing: keys that are no numbers, and DELAYED.
    None,
}

/// What to do with one INSERT or REPLACE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The key's column, where it is to be assigned to.
    pub(crate) key_name: Vec<u8>,
    /// Text put in once, ascending: a column list, the key's column, an alias.
    pub(crate) edits: Vec<(usize, Vec<u8>)>,
    /// What is written on either side of the only value of a row.
    pub(crate) beside: (Vec<u8>, Vec<u8>),
    /// One per row that gets a key or whose key is a parameter, ascending.
    pub(crate) sites: Vec<Site>,
    pub(crate) parameters: u32,
    pub(crate) last_insert_id: LastInsertId,
    pub(super) rows: u64,
    pub(super) keys: u64,
    pub(super) explicit: bool,
    pub(super) zero_is_ambiguous: bool,
    pub(super) for_zero: bool,
    pub(super) by_mode: bool,
    pub(super) by_order: bool,
    pub(super) by_not_null: bool,
    pub(super) is_signed: bool,
    pub(super) is_strict_behind: bool,
    pub(super) key_parameters: Vec<KeyParameter>,
    pub(super) on_duplicate: bool,
    pub(super) sees_last_insert_id: bool,
    pub(super) ignore: bool,
    pub(super) verb: Verb,
    pub(super) returning: bool,
}

impl Plan {
    /// What it takes of memory beside its own size, bytes.
    pub fn held_bytes(&self) -> usize {
        let edits: usize = self.edits.iter().map(|(_, text)| text.len()).sum();
        let beside = self.beside.0.len().saturating_add(self.beside.1.len());
        size_of_val(self.sites.as_slice())
            .saturating_add(beside)
            .saturating_add(size_of_val(self.key_parameters.as_slice()))
            .saturating_add(edits)
    }

    /// How many rows the statement has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many rows need a key, those whose key is a parameter not counted. Of 0 the statement is forwarded unchanged.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Whether some row brings its own key.
    pub fn explicit(&self) -> bool {
        self.explicit
    }

    /// How LAST_INSERT_ID() comes about.
    pub fn last_insert_id(&self) -> LastInsertId {
        self.last_insert_id
    }

    /// The same with literals only, if it was wrapped.
    #[must_use]
    pub fn unwrapped(mut self) -> Self {
        if self.last_insert_id == LastInsertId::Wrapped {
            self.last_insert_id = LastInsertId::Literal;
        }
        self
    }

    /// Whether it says ON DUPLICATE KEY UPDATE.
    pub fn on_duplicate(&self) -> bool {
        self.on_duplicate
    }

    /// Whether something in it may see LAST_INSERT_ID(), and give it another value.
    pub fn sees_last_insert_id(&self) -> bool {
        self.sees_last_insert_id
    }

    /// Whether it says IGNORE.
    pub fn ignore(&self) -> bool {
        self.ignore
    }

    /// Whether it is a REPLACE.
    pub fn replace(&self) -> bool {
        self.verb == Verb::Replace
    }

    /// Whether the answer is a result set: RETURNING, ANALYZE.
    pub fn returning(&self) -> bool {
        self.returning
    }

    /// How many `?` the text has.
    pub fn parameters(&self) -> u32 {
        self.parameters
    }

    /// Whether the keys are for zeros or DEFAULTs while it is not known whether those ask for keys.
    pub fn zero_is_ambiguous(&self) -> bool {
        self.zero_is_ambiguous
    }

    /// Whether a row asks for a key by 0 or DEFAULT, which it does only without `NO_AUTO_VALUE_ON_ZERO`.
    pub fn for_zero(&self) -> bool {
        self.for_zero
    }

    /// Whether another sql_mode, or a table's engine, could make a key ask for one that does not now.
    pub fn by_mode(&self) -> bool {
        self.by_mode
    }

    /// Whether another order of the table's columns makes another plan: the statement has values and no column list.
    pub fn by_order(&self) -> bool {
        self.by_order
    }

    /// Whether a computed key is one only as long as the column is NOT NULL.
    pub fn by_not_null(&self) -> bool {
        self.by_not_null
    }

    /// What is known beside a bound key of a row: of the column, and of the server's care.
    pub fn care(&self, modes: &Modes, row: u32) -> Care {
        // A function may have written to a table that rolls nothing back: then the server only warns.
        let is_strict = modes.strict == Some(true) && !self.ignore && !self.sees_last_insert_id;
        Care {
            is_signed: self.is_signed,
            zero_is_value: modes.no_auto_value_on_zero,
            is_strict: is_strict && (row == 0 || self.is_strict_behind),
            is_lax: modes.strict == Some(false) || self.ignore,
            empty_is_null: modes.empty_is_null,
        }
    }

    /// The rows whose key is a parameter, in row order.
    pub fn key_parameters(&self) -> &[KeyParameter] {
        &self.key_parameters
    }
}
