//! Writes an INSERT … SELECT with its keys.

use keywright_core::KeyBatch;

use crate::plan::select_plan::{Counter, QueryPlan};
use crate::refusal::{Unread, Unsupported};
use crate::splice::error::SpliceError;
use crate::splice::out_of_range::OUT_OF_RANGE;

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

impl QueryPlan {
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
        let another = |_| Unsupported::NotAsPlanned;
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

    /// The statement whose rows bring their keys, and which fails for one that brings none.
    ///
    /// # Errors
    /// [`SpliceError`] when `text` is another one than was planned.
    pub fn guarded(&self, text: &[u8]) -> Result<Vec<u8>, SpliceError> {
        let mut out = Vec::with_capacity(text.len().saturating_add(256));
        self.write(text, &mut out, |_| Err(SpliceError::Text))?;
        Ok(out)
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
