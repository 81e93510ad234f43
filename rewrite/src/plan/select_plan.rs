//! The plan of an INSERT … SELECT: where the text changes, and how it is written with its keys.

use keywright_core::KeyBatch;

use crate::plan::insert_plan::Lid;
use crate::refusal::{Unread, Unsupported};
use crate::splice::insert::{SpliceError, is_apart};

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
    pub(crate) lid: Lid,
    pub(crate) on_duplicate: bool,
    pub(crate) unsure: bool,
    /// A 0 stands where the key goes.
    pub(crate) for_zero: bool,
    pub(crate) by_mode: bool,
    pub(crate) parameters: u32,
    /// How many of the parameters come before the key.
    pub(crate) parameters_before: u32,
}

/// A text to prepare in place of the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedQuery {
    /// The text.
    pub text: Vec<u8>,
    /// The number of the first parameter that was put in, from 0.
    pub at: u16,
    /// What is put in there, one parameter each.
    pub injected: &'static [InQuery],
}

/// A parameter of a prepared INSERT … SELECT that the client does not know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InQuery {
    /// The only key.
    Key,
    /// How many rows there are keys for.
    Rows,
    /// The first row's key.
    First,
    /// The distance of neighbouring keys.
    Spacing,
}

/// One change of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The text from here …
    start: usize,
    /// … to here is replaced.
    end: usize,
    before: Vec<u8>,
    /// The key stands here.
    key: bool,
    after: Vec<u8>,
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

/// Multiplied twice with a row's number it is out of every range; by it the error is known.
pub(crate) const OUT_OF_RANGE: &str = "7046029254386353131";

/// Number of the server's error for a number out of range.
pub(crate) const ER_DATA_OUT_OF_RANGE: u16 = 1690;

/// Whether an error says that there were more rows than keys.
pub fn is_out_of_range(number: u16, message: &[u8]) -> bool {
    number == ER_DATA_OUT_OF_RANGE
        && message
            .windows(OUT_OF_RANGE.len())
            .any(|part| part == OUT_OF_RANGE.as_bytes())
}

impl QueryPlan {
    /// Whether the query gives every row a key of its own: the statement is forwarded unchanged.
    pub fn explicit(&self) -> bool {
        self.explicit
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
    pub fn lid(&self) -> Lid {
        self.lid
    }

    /// Whether it says ON DUPLICATE KEY UPDATE.
    pub fn on_duplicate(&self) -> bool {
        self.on_duplicate
    }

    /// Whether rows may not go in: IGNORE, ON DUPLICATE KEY UPDATE.
    pub fn may_skip(&self) -> bool {
        self.unsure
    }

    /// Whether a 0 asks for the key, which it does only without `NO_AUTO_VALUE_ON_ZERO`.
    pub fn for_zero(&self) -> bool {
        self.for_zero
    }

    /// Whether another sql_mode, or a table's engine, could make a key ask for one that does not now.
    pub fn by_mode(&self) -> bool {
        self.by_mode
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
            let is_first = edit.before.is_empty() && edit.start < edit.end;
            if is_first && !before.is_none_or(|byte| is_apart(*byte)) {
                edit.before.push(b' ');
            }
            let next = text.get(edit.end).copied().unwrap_or(b' ');
            if !is_apart(next) && !matches!(next, b')' | b';') {
                edit.after.push(b' ');
            }
        }
    }

    /// Appends the statement's new text to `out`. A query of more rows than there are keys fails.
    ///
    /// # Errors
    /// [`SpliceError`] when the keys are none or have no common distance, or `text` is another one than was planned.
    pub fn splice(
        &self,
        text: &[u8],
        keys: &KeyBatch,
        out: &mut Vec<u8>,
    ) -> Result<(), SpliceError> {
        self.write(text, out, |out| self.write_key(keys, out))
    }

    /// The text to prepare: what keys it gives is said by parameters.
    ///
    /// # Errors
    /// [`Unread::Unsupported`] when there are too many parameters, or `text` is not the one that was planned.
    pub fn prepare(&self, text: &[u8]) -> Result<PreparedQuery, Unread> {
        let mut out = Vec::with_capacity(text.len().saturating_add(256));
        let injected: &[InQuery] = match self.counter {
            None => &[InQuery::Key],
            Some(_) => &[InQuery::Rows, InQuery::First, InQuery::Spacing],
        };
        let put = |out: &mut Vec<u8>| {
            match self.counter {
                None => out.push(b'?'),
                // Nothing below zero on the way: one of the servers counts without signs.
                Some(counter) => counter.write("?", &format!("?+({}-1)*?", counter.row()), out),
            }
            Ok(())
        };
        let another = |_| Unsupported::Unknown("another statement");
        self.write(text, &mut out, put).map_err(another)?;
        let most = usize::from(u16::MAX).saturating_sub(injected.len());
        if usize::try_from(self.parameters).unwrap_or(usize::MAX) > most {
            return Err(Unsupported::Parameters.into());
        }
        Ok(PreparedQuery {
            text: out,
            at: u16::try_from(self.parameters_before).map_err(|_| Unsupported::Parameters)?,
            injected,
        })
    }

    fn write(
        &self,
        text: &[u8],
        out: &mut Vec<u8>,
        put: impl Fn(&mut Vec<u8>) -> Result<(), SpliceError>,
    ) -> Result<(), SpliceError> {
        let mut copied = 0;
        for edit in &self.edits {
            let part = text.get(copied..edit.start).ok_or(SpliceError::Text)?;
            out.extend_from_slice(part);
            out.extend_from_slice(&edit.before);
            if edit.key {
                put(out)?;
            }
            out.extend_from_slice(&edit.after);
            copied = edit.end;
        }
        out.extend_from_slice(text.get(copied..).ok_or(SpliceError::Text)?);
        Ok(())
    }

    fn write_key(&self, keys: &KeyBatch, out: &mut Vec<u8>) -> Result<(), SpliceError> {
        let wrong = SpliceError::Keys {
            wanted: 1,
            given: keys.len(),
        };
        let Some(counter) = self.counter else {
            return keys.write_literal(0, out).then_some(()).ok_or(wrong);
        };
        let KeyBatch::Numbers {
            first,
            spacing,
            count,
        } = *keys
        else {
            return Err(wrong);
        };
        let row = counter.row();
        let base = i128::from(first) - i128::from(spacing);
        let key = match spacing {
            1 => format!("{base}+{row}"),
            spacing => format!("{base}+{row}*{spacing}"),
        };
        counter.write(&count.to_string(), &key, out);
        Ok(())
    }
}

impl Counter {
    fn row(self) -> &'static str {
        match self {
            Counter::RowNum => "ROWNUM()",
            Counter::RowNumber => "ROW_NUMBER() OVER ()",
        }
    }

    /// Appends a row's key, which fails in a row beyond `count`.
    fn write(self, count: &str, key: &str, out: &mut Vec<u8>) {
        let row = self.row();
        let text = format!(
            "CASE WHEN {row}<={count} THEN {key} ELSE {row}*{OUT_OF_RANGE}*{OUT_OF_RANGE} END"
        );
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::is_out_of_range;

    const OURS: &[u8] =
        b"BIGINT UNSIGNED value is out of range in 'rownum() * 7046029254386353131'";

    #[test]
    fn only_an_error_of_ours_says_that_there_were_too_few_keys() {
        assert!(is_out_of_range(1690, OURS));
        assert!(is_out_of_range(1690, b"7046029254386353131"));
        // The application's own value, or its key.
        for (number, message) in [
            (
                1690,
                &b"BIGINT value is out of range in '9223372036854775807 + `t`.`a`'"[..],
            ),
            (
                1690,
                b"BIGINT value is out of range in '704602925438635313 * 2'",
            ),
            (1690, b""),
            (
                1062,
                b"Duplicate entry '7046029254386353131' for key 'PRIMARY'",
            ),
            (1264, OURS),
        ] {
            assert!(!is_out_of_range(number, message), "{number}");
        }
    }
}
