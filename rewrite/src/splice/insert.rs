//! Writes the new text: the old one with only the splices changed.

use keywright_core::KeyBatch;

use crate::plan::insert_plan::{LastInsertId, Plan};
use crate::plan::site::{Site, SiteKind};
use crate::splice::decimal::Decimal;
use crate::splice::error::SpliceError;
use crate::splice::writer::{Spaced, Writer};

/// Bytes that a key takes at most, with what is written around it.
const KEY_BYTES: usize = 24;

/// Bytes of `LAST_INSERT_ID()` around one of them.
const WRAPPED_BYTES: usize = 16;

impl Plan {
    /// About how many bytes [`Plan::splice`] writes.
    pub fn spliced_bytes(&self, text: &[u8]) -> usize {
        let edits: usize = self.edits.iter().map(|(_, edit)| edit.len()).sum();
        let beside = self.beside.0.len().saturating_add(self.beside.1.len());
        let keys = self
            .sites
            .len()
            .saturating_mul(KEY_BYTES.saturating_add(beside));
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
        Given::new(self.last_insert_id, keys).write(&self.sites, &mut writer)?;
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
    pub(crate) fn new(last_insert_id: LastInsertId, keys: &'a KeyBatch) -> Self {
        Self {
            keys,
            wrapped: Wrapped::of(last_insert_id, keys),
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
    fn of(last_insert_id: LastInsertId, keys: &KeyBatch) -> Option<Self> {
        let first = keys
            .number(0)
            .filter(|_| last_insert_id == LastInsertId::Wrapped)?;
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
