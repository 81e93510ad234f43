//! LOAD DATA: the key is assigned at the end of its SET, out of LAST_INSERT_ID(), which counts.
//!
//! Tried on MariaDB 10.11 and MySQL 9.7:
//! - The values of SET are computed row by row, from left to right, after the fields of the row's line were stored. So the
//!   last of them sees what the server has made of a key that the file or the statement's own SET gave, and can
//!   decide as the server does: what was stored as 0 asks for a key.
//! - Rows are numbered by LAST_INSERT_ID(): it is 0 before the first of them, and each key that is made becomes its
//!   next value. Triggers and stored functions do not change what is outside of them. What they and the text could see of it is refused.
//! - A row beyond the keys makes the statement fail with a number out of range, which LOCAL does not make a warning.

use crate::lex::name::NameSpan;
use crate::modes::Modes;
use crate::plan::key_column::KeyColumn;
use crate::read::key_wanted::KeyForm;
use crate::read::load_data::{Load, with};
use crate::refusal::{LoadConstruct, Unread, Unsupported};

/// What to do with one LOAD DATA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadPlan {
    pub(crate) key_name: Vec<u8>,
    /// The assignment goes here.
    pub(crate) at: usize,
    pub(crate) has_set: bool,
    pub(crate) given: bool,
    pub(crate) local: bool,
    pub(crate) may_skip: bool,
    pub(crate) effects: bool,
    pub(crate) reads: bool,
    pub(crate) line_end: u8,
}

impl LoadPlan {
    /// Whether the client sends the file.
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// Whether rows may bring their own keys. If not, every row gets one.
    pub fn may_be_given(&self) -> bool {
        self.given
    }

    /// Whether rows may not go in: IGNORE, and LOCAL without REPLACE.
    pub fn may_skip(&self) -> bool {
        self.may_skip
    }

    /// Whether carrying the statement out twice may leave more behind than once, even if the first time fails.
    pub fn has_effects(&self) -> bool {
        self.effects
    }

    /// Whether it reads from tables, or views, beside its file.
    pub fn reads(&self) -> bool {
        self.reads
    }

    /// The byte that every line but the last ends with: a file with n of them has n + 1 rows at most.
    pub fn line_end(&self) -> u8 {
        self.line_end
    }
}

impl Load {
    /// Decides how rows get their keys.
    ///
    /// # Errors
    /// [`Unread::Unsupported`] for what cannot be done exactly.
    pub fn plan(
        &self,
        text: &[u8],
        modes: &Modes,
        key: &KeyColumn<'_>,
    ) -> Result<LoadPlan, Unread> {
        if !key.name.is_ascii() || key.name.is_empty() {
            return Err(Unsupported::KeyName.into());
        }
        if key.form != KeyForm::Integer {
            return with(LoadConstruct::KeysNoNumbers);
        }
        if key.watched {
            return with(LoadConstruct::Trigger);
        }
        if self.seen.last_insert_id || self.seen.calls {
            return with(LoadConstruct::SeesLastInsertId);
        }
        if self.local && self.line_end.is_none() {
            return with(LoadConstruct::LineEnd);
        }
        let is_key = |name: &NameSpan| name.bytes(text).eq_ignore_ascii_case(key.name);
        let in_file = self
            .listed
            .as_ref()
            .is_none_or(|names| names.iter().any(is_key));
        let in_set = self.assigned.iter().flatten().any(is_key);
        let given = in_file || in_set;
        match (given, modes.no_auto_value_on_zero) {
            (true, Some(true)) => {
                return with(LoadConstruct::ZeroIsValue);
            }
            (true, None) => return Err(Unsupported::ZeroAmbiguous.into()),
            (true, Some(false)) | (false, _) => {}
        }
        Ok(LoadPlan {
            key_name: key.name.to_vec(),
            at: self.end,
            has_set: self.assigned.is_some(),
            given,
            local: self.local,
            may_skip: self.may_skip,
            effects: self.effects,
            reads: self.seen.query,
            line_end: self.line_end.unwrap_or(b'\n'),
        })
    }
}
