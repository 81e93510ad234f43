//! What a walk over the rows of an INSERT finds: where each row's key goes.

use crate::lex::cursor::Cursor;
use crate::lex::scan::Scanned;
use crate::plan::site::{KeyParameter, Site, SiteKind, site_kind};
use crate::read::key_value::{Found, NullFails};
use crate::read::key_wanted::{Value, Wanted};
use crate::refusal::{KeyExpression, Unread, Unsupported};

/// Where the key stands in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPosition {
    /// Nowhere; a row has so many values, `None`: none, as there is no column list.
    Absent { values: Option<usize> },
    /// At an index among so many values.
    At { index: usize, values: usize },
}

/// What walking over the rows found.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(super) place: KeyPosition,
    no_auto_value_on_zero: Option<bool>,
    pub(crate) rows: u64,
    pub(crate) keys: u64,
    pub(crate) explicit: bool,
    /// A row asks for a key if zeros do, which is not known.
    pub(crate) ambiguous: bool,
    /// A row asks for a key by a zero.
    pub(crate) for_zero: bool,
    /// A value certainly asks for a key, or may by its parameter.
    pub(crate) certain: bool,
    pub(crate) sites: Vec<Site>,
    pub(crate) key_parameters: Vec<KeyParameter>,
    pub(crate) seen: Scanned,
    pub(crate) on_duplicate: bool,
    /// Behind `(` and before `)` of a row alias's columns.
    pub(crate) alias_list: Option<(usize, usize)>,
    /// The SET form names the key.
    pub(super) assigned: bool,
    /// A row's key is its own because NULL would be an error.
    pub(super) by_not_null: bool,
    /// That is certain only if no row stands beside it. Why the key could not be read otherwise.
    pub(super) alone: Option<KeyExpression>,
}

impl Walked {
    pub(crate) fn new(place: KeyPosition, no_auto_value_on_zero: Option<bool>) -> Self {
        Self {
            place,
            no_auto_value_on_zero,
            rows: 0,
            keys: 0,
            explicit: false,
            ambiguous: false,
            for_zero: false,
            certain: false,
            sites: Vec::with_capacity(1),
            key_parameters: Vec::new(),
            seen: Scanned::default(),
            on_duplicate: false,
            alias_list: None,
            assigned: false,
            by_not_null: false,
            alone: None,
        }
    }

    /// Whether the statement does not name the key's column.
    pub(crate) fn absent(&self) -> bool {
        matches!(self.place, KeyPosition::Absent { .. }) && !self.assigned
    }

    /// Whether an absent key goes last.
    pub(crate) fn last(&self) -> bool {
        self.absent() && (self.seen.name || self.seen.name_in_query)
    }

    /// Behind the key of a row, which what stands before it does not refer to; from here on what does is noted.
    pub(super) fn behind_key<'t>(&mut self, cursor: Cursor<'t>) -> Cursor<'t> {
        (self.seen.name, self.seen.name_in_query) = (false, false);
        cursor
    }

    /// Whether a value between the place behind a row's key and `end` refers to that, or may.
    pub(super) fn refers_to_key(
        &self,
        behind: Cursor<'_>,
        end: usize,
        wanted: Wanted<'_>,
    ) -> Result<bool, Unread> {
        let is_within = self.seen.name_in_query;
        Ok(self.seen.name || (is_within && behind.refers_from_within(end, wanted)?))
    }

    /// Moves the keys of an absent column behind the other values; `parameters` is how many there are in all rows.
    pub(crate) fn put_keys_last(&mut self, parameters: u32) {
        let mut behind = parameters;
        for site in self.sites.iter_mut().rev() {
            let before = site.parameters;
            (site.kind, site.start, site.parameters) = match site.kind {
                SiteKind::First => (SiteKind::Last, site.end, behind),
                SiteKind::Assign => (SiteKind::AssignLast, site.end, behind),
                other => (other, site.start, before),
            };
            behind = before;
        }
    }

    /// So many rows more, each of which gets a key; their sites are there.
    pub(crate) fn add_rows(&mut self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.rows = self.rows.saturating_add(count);
        self.keys = self.keys.saturating_add(count);
    }

    /// The number of the row at hand.
    pub(crate) fn row(&self) -> Result<u32, Unsupported> {
        u32::try_from(self.rows).map_err(|_| Unsupported::TooLong)
    }

    fn add_site(
        &mut self,
        start: usize,
        end: usize,
        parameters: u32,
        kind: SiteKind,
    ) -> Result<(), Unread> {
        let row = self.row()?;
        self.sites.push(Site {
            start: offset(start)?,
            end: offset(end)?,
            row,
            parameters,
            kind,
        });
        Ok(())
    }

    /// A row without the key's column; its values lie from `start` to `end`, behind `parameters`.
    pub(super) fn add_absent(
        &mut self,
        start: usize,
        end: usize,
        parameters: u32,
        kind: SiteKind,
    ) -> Result<(), Unread> {
        self.add_site(start, end, parameters, kind)?;
        self.keys += 1;
        Ok(())
    }

    /// A row with a value in the key's column; `parameters` is how many came before it.
    pub(super) fn add_value(&mut self, found: &Found, parameters: u32) -> Result<(), Unread> {
        self.by_not_null |= found.null_fails.is_some();
        if let Some(NullFails::Alone(reason)) = found.null_fails {
            self.alone = self.alone.or(Some(reason));
        }
        let Some(kind) = site_kind(found.value, self.no_auto_value_on_zero) else {
            self.explicit = true;
            self.seen.by_mode |= found.value == Value::Zero;
            return Ok(());
        };
        self.add_site(found.start, found.end, parameters, kind)?;
        self.for_zero |= found.value == Value::Zero;
        match kind {
            SiteKind::Parameter => {
                self.certain = true;
                let row = u32::try_from(self.rows).map_err(|_| Unsupported::TooLong)?;
                let parameter = u16::try_from(parameters).map_err(|_| Unsupported::Parameters)?;
                self.key_parameters.push(KeyParameter { row, parameter });
            }
            SiteKind::UnlessZeroIsValue => {
                self.ambiguous = true;
                self.keys += 1;
            }
            SiteKind::Replace
            | SiteKind::First
            | SiteKind::Last
            | SiteKind::Only
            | SiteKind::Assign
            | SiteKind::AssignLast => {
                self.certain = true;
                self.keys += 1;
            }
        }
        Ok(())
    }
}

/// A place in the text, as sites hold it.
pub(crate) fn offset(at: usize) -> Result<u32, Unsupported> {
    u32::try_from(at).map_err(|_| Unsupported::TooLong)
}
