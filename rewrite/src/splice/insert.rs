//! Writes the new text: the old one with only the splices changed.

use keywright_core::KeyBatch;
use thiserror::Error;

use crate::lex::name::write_name;
use crate::plan::insert_plan::{Lid, Plan, Site, SiteKind};
use crate::splice::decimal::Decimal;

/// Why no text could be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SpliceError {
    /// There are fewer or more keys than rows that need one.
    #[error("a statement that needs {wanted} keys was given {given}")]
    Keys {
        /// [`Plan::keys`].
        wanted: u64,
        /// What was given.
        given: u64,
    },
    /// The text is not the one the plan was made for.
    #[error("the plan is for another text")]
    Text,
}

/// Bytes that a key takes at most, with what is written around it.
const KEY_BYTES: usize = 24;

/// Bytes of `LAST_INSERT_ID()` around one of them.
const WRAPPED_BYTES: usize = 16;

/// What is written in front of a zero whose meaning is decided by the server.
const UNLESS_ZERO: &[u8] = b"IF(FIND_IN_SET('NO_AUTO_VALUE_ON_ZERO',@@sql_mode),0,";

impl Plan {
    /// About how many bytes [`Plan::splice`] writes.
    pub fn spliced_bytes(&self, text: &[u8]) -> usize {
        let edits: usize = self.edits.iter().map(|(_, edit)| edit.len()).sum();
        let keys = self.sites.len().saturating_mul(KEY_BYTES);
        text.len() + edits + keys + WRAPPED_BYTES
    }

    /// Appends the statement's new text to `out`.
    ///
    /// # Errors
    /// [`SpliceError`] when `keys` are not [`Plan::keys`] many, or `text` is another one than was planned; `out` may have
    /// been written to.
    pub fn splice(
        &self,
        text: &[u8],
        keys: &KeyBatch,
        out: &mut Vec<u8>,
    ) -> Result<(), SpliceError> {
        if keys.len() != self.keys() {
            return Err(SpliceError::Keys {
                wanted: self.keys(),
                given: keys.len(),
            });
        }
        out.reserve(self.spliced_bytes(text));
        let mut writer = Writer::new(self, text, out);
        Given::new(self.lid, keys).write(&self.sites, &mut writer)?;
        writer.finish()
    }
}

/// The keys of a statement, as they are written one after the other.
pub(crate) struct Given<'a> {
    keys: &'a KeyBatch,
    wrapped: Option<Wrapped>,
    decimal: Decimal,
    /// Which is next.
    key: u64,
}

impl<'a> Given<'a> {
    pub(crate) fn new(lid: Lid, keys: &'a KeyBatch) -> Self {
        Self {
            keys,
            wrapped: Wrapped::of(lid, keys),
            decimal: Decimal::default(),
            key: 0,
        }
    }

    /// Copies the text up to the last of the sites that follow, with their keys.
    pub(crate) fn write(
        &mut self,
        mut sites: &[Site],
        writer: &mut Writer<'_>,
    ) -> Result<(), SpliceError> {
        let (keys, wrapped) = (self.keys, self.wrapped);
        while let [site, others @ ..] = sites {
            sites = others;
            if site.kind == SiteKind::Parameter {
                continue;
            }
            writer.open(site)?;
            match (wrapped, keys.number(self.key)) {
                (Some(wrapped), Some(_)) if wrapped.key == self.key => wrapped.write(writer.out),
                (_, Some(number)) => self.decimal.write(number, writer.out),
                (_, None) if keys.write_literal(self.key, writer.out) => {}
                (_, None) => {
                    return Err(SpliceError::Keys {
                        wanted: self.key.saturating_add(1),
                        given: keys.len(),
                    });
                }
            }
            writer.close(site);
            self.key += 1;
            if site.kind == SiteKind::First
                && wrapped.is_none_or(|wrapped| wrapped.key < self.key)
                && let Some(numbers) = self.rest()
            {
                let rows = writer.rows(others, numbers, &mut self.decimal)?;
                sites = others.get(rows..).unwrap_or_default();
                let rows = u64::try_from(rows).unwrap_or(u64::MAX);
                self.key = self.key.saturating_add(rows);
            }
        }
        Ok(())
    }

    /// All keys that are left, if they are numbers as far from each other.
    pub(crate) fn rest(&self) -> Option<Spaced> {
        Spaced::of(self.keys, self.key)
    }
}

/// Where `LAST_INSERT_ID(k)` of the first key is written: in the second row that gets a key if there is one, since the server
/// reads that row only when the first went in.
#[derive(Debug, Clone, Copy)]
struct Wrapped {
    key: u64,
    first: u64,
    distance: u64,
}

impl Wrapped {
    fn of(lid: Lid, keys: &KeyBatch) -> Option<Self> {
        let first = keys.number(0).filter(|_| lid == Lid::Wrapped)?;
        let distance = keys
            .number(1)
            .and_then(|second| second.checked_sub(first))
            .unwrap_or(0);
        Some(Self {
            key: u64::from(distance > 0),
            first,
            distance,
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        let mut decimal = itoa::Buffer::new();
        out.extend_from_slice(b"LAST_INSERT_ID(");
        out.extend_from_slice(decimal.format(self.first).as_bytes());
        out.push(b')');
        if self.distance > 0 {
            out.push(b'+');
            out.extend_from_slice(decimal.format(self.distance).as_bytes());
        }
    }
}

/// Keys from one on, all numbers as far from each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spaced {
    pub(crate) next: u64,
    pub(crate) spacing: u64,
}

impl Spaced {
    fn of(keys: &KeyBatch, key: u64) -> Option<Self> {
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

/// Whether a byte before or behind a key cannot become part of it, or it a part of that.
pub(crate) fn is_apart(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b'=')
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
            SiteKind::First | SiteKind::Only => {}
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
        write_name(&self.plan.key_name, self.out);
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
            SiteKind::Last | SiteKind::Only => {}
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
    fn rows(
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
