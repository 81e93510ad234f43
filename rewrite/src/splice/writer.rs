//! Copies a text, and puts keys and edits in where the plan says.

use keywright_core::KeyBatch;

use crate::lex::quote::quote_name;
use crate::lex::token::is_apart;
use crate::plan::insert_plan::Plan;
use crate::plan::site::{Site, SiteKind};
use crate::splice::decimal::Decimal;
use crate::splice::error::SpliceError;

/// What is written in front of a zero whose meaning is decided by the server.
const UNLESS_ZERO: &[u8] = b"IF(FIND_IN_SET('NO_AUTO_VALUE_ON_ZERO',@@sql_mode),0,";

/// Keys from one on, all numbers as far from each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spaced {
    pub(crate) next: u64,
    pub(crate) spacing: u64,
}

impl Spaced {
    pub(crate) fn of(keys: &KeyBatch, key: u64) -> Option<Self> {
        match keys {
            // None of them is too large if the last is not.
            KeyBatch::Numbers { spacing, count, .. } => {
                keys.number(count.checked_sub(1)?)?;
                Some(Self {
                    next: keys.number(key)?,
                    spacing: *spacing,
                })
            }
            KeyBatch::Listed(_) | KeyBatch::Texts(_) | KeyBatch::Bytes(_) => None,
        }
    }
}

/// Copies a text, leaving out and putting in.
pub(crate) struct Writer<'a> {
    plan: &'a Plan,
    text: &'a [u8],
    pub(crate) out: &'a mut Vec<u8>,
    /// Up to here the text is copied.
    copied: usize,
    edits: std::slice::Iter<'a, (usize, Vec<u8>)>,
    edit: Option<&'a (usize, Vec<u8>)>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(plan: &'a Plan, text: &'a [u8], out: &'a mut Vec<u8>) -> Self {
        let mut edits = plan.edits.iter();
        let edit = edits.next();
        Self {
            plan,
            text,
            out,
            copied: 0,
            edits,
            edit,
        }
    }

    /// Keeps what is put in at a place of the text apart from what stands before it: a number behind `/*!` is a version, and one
    /// behind a word is part of it.
    fn part_before(&mut self, at: usize) {
        let before = at.checked_sub(1).and_then(|at| self.text.get(at));
        if !before.is_none_or(|byte| is_apart(*byte) || *byte == b'(') {
            self.out.push(b' ');
        }
    }

    /// The same for what stands behind.
    fn part_behind(&mut self, at: usize) {
        let behind = self.text.get(at);
        if !behind.is_none_or(|byte| is_apart(*byte) || matches!(byte, b')' | b';')) {
            self.out.push(b' ');
        }
    }

    /// Copies up to a site and writes what comes before its key.
    #[inline(always)]
    pub(crate) fn open(&mut self, site: &Site) -> Result<(), SpliceError> {
        let offset = |at: u32| usize::try_from(at).map_err(|_| SpliceError::Text);
        let (start, end) = (offset(site.start)?, offset(site.end)?);
        self.copy_to(start)?;
        match site.kind {
            SiteKind::First => {}
            SiteKind::Only => self.out.extend_from_slice(&self.plan.beside.0),
            SiteKind::Last => self.out.push(b','),
            SiteKind::Assign => self.assign(),
            SiteKind::AssignLast => {
                // A line break: the text before may end in a comment.
                self.out.extend_from_slice(b"\n,");
                self.assign();
            }
            SiteKind::Replace | SiteKind::Parameter => {
                self.part_before(start);
                self.copied = end;
            }
            SiteKind::UnlessZeroIsValue => {
                self.part_before(start);
                self.copied = end;
                self.out.extend_from_slice(UNLESS_ZERO);
            }
        }
        Ok(())
    }

    fn assign(&mut self) {
        quote_name(&self.plan.key_name, self.out);
        self.out.push(b'=');
    }

    /// Writes what comes behind a site's key.
    #[inline]
    pub(crate) fn close(&mut self, site: &Site) {
        match site.kind {
            SiteKind::First | SiteKind::Assign => self.out.push(b','),
            SiteKind::UnlessZeroIsValue => {
                self.out.push(b')');
                self.part_behind(self.copied);
            }
            SiteKind::Replace | SiteKind::Parameter => self.part_behind(self.copied),
            SiteKind::AssignLast => self.out.push(b' '),
            SiteKind::Only => self.out.extend_from_slice(&self.plan.beside.1),
            SiteKind::Last => {}
        }
    }

    #[inline(always)]
    pub(crate) fn copy_to(&mut self, at: usize) -> Result<(), SpliceError> {
        if self.edit.is_some_and(|(place, _)| *place <= at) {
            self.edit_to(at)?;
        }
        self.copy(at)
    }

    fn edit_to(&mut self, at: usize) -> Result<(), SpliceError> {
        while let Some((place, edit)) = self.edit
            && *place <= at
        {
            self.copy(*place)?;
            self.out.extend_from_slice(edit);
            self.edit = self.edits.next();
        }
        Ok(())
    }

    #[inline]
    fn copy(&mut self, at: usize) -> Result<(), SpliceError> {
        let part = self.text.get(self.copied..at).ok_or(SpliceError::Text)?;
        self.out.extend_from_slice(part);
        self.copied = at;
        Ok(())
    }

    /// Copies rows whose key goes first, with their keys, up to a row that is another one: how many they are.
    #[inline(never)]
    pub(crate) fn rows(
        &mut self,
        sites: &[Site],
        numbers: Spaced,
        decimal: &mut Decimal,
    ) -> Result<usize, SpliceError> {
        if self.edit.is_some() {
            return Ok(0);
        }
        let mut rows = 0;
        let (mut copied, mut number) = (self.copied, numbers.next);
        for site in sites {
            if site.kind != SiteKind::First {
                break;
            }
            let start = usize::try_from(site.start).map_err(|_| SpliceError::Text)?;
            let row = self.text.get(copied..start).ok_or(SpliceError::Text)?;
            self.out.extend_from_slice(row);
            decimal.write_before_comma(number, self.out);
            copied = start;
            // Behind the last it may be too large, and is not written.
            number = number.wrapping_add(numbers.spacing);
            rows += 1;
        }
        self.copied = copied;
        Ok(rows)
    }

    /// Copies the rest.
    pub(crate) fn finish(mut self) -> Result<(), SpliceError> {
        self.copy_to(self.text.len())
    }
}
