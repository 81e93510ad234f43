//! An INSERT of one row whose key is a query that reads tables. It must be carried out where it stands, with the locks that it takes
//! there; so the row fails if it comes to none.

use crate::lex::cursor::Cursor;
use crate::lex::scan::{Scanned, Stop};
use crate::lex::token::Kind;
use crate::modes::Modes;
use crate::plan::key_column::KeyColumn;
use crate::plan::query_columns::{NoKey, write_guard};
use crate::plan::row_sites::KeyPosition;
use crate::read::insert::{Insert, Source};
use crate::read::key_wanted::{KeyForm, Wanted};
use crate::refusal::Unread;

/// A key that is a query.
#[derive(Debug, Clone, Copy)]
pub struct KeyOfQuery {
    start: usize,
    end: usize,
}

impl Insert {
    /// The key of a statement that is refused for a query as key, if that can be carried out twice without a trace. `None`: it cannot, or it
    /// could not be told that it came to none.
    pub fn key_of_query(
        &self,
        text: &[u8],
        modes: &Modes,
        key: &KeyColumn<'_>,
    ) -> Option<KeyOfQuery> {
        let wanted = self.wanted(modes, key);
        // Else a number below 0 may be stored as 0.
        let is_told = wanted.care.is_signed || wanted.care.is_strict;
        // IGNORE makes a warning of a query with many rows, and NULL of its value.
        let is_plain = key.form == KeyForm::Integer
            && !self.head.ignore
            && modes.no_auto_value_on_zero == Some(false);
        if !is_told || !is_plain {
            return None;
        }
        let mut cursor = self.values_to_ask_for(text, modes, false)?;
        let found = match self.source {
            Source::Values | Source::Rows => {
                let place = self.place(text, key).ok()?;
                cursor.query_of_row(wanted, self.source == Source::Rows, place)
            }
            Source::Set | Source::Query => cursor.query_of_set(wanted),
        };
        let (start, end) = found.ok().flatten()?;
        Some(KeyOfQuery { start, end })
    }
}

impl KeyOfQuery {
    /// What the server is to prepare, to tell the query's type.
    pub fn question(&self, text: &[u8]) -> Vec<u8> {
        [b"SELECT ", self.written(text)].concat()
    }

    /// The statement with this in place of the query.
    pub fn replaced(&self, text: &[u8], value: &[u8]) -> Vec<u8> {
        let before = text.get(..self.start).unwrap_or_default();
        let behind = text.get(self.end..).unwrap_or_default();
        [before, b" ", value, b" ", behind].concat()
    }

    /// The statement that fails if the query comes to NULL or 0, by an error that [`is_no_key`](crate::is_no_key) knows.
    pub fn guarded(&self, text: &[u8]) -> Vec<u8> {
        let mut guard = Vec::new();
        write_guard(self.written(text), NoKey::ZERO, &mut guard);
        self.replaced(text, &guard)
    }

    fn written<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Where the query stands.
type Found = Option<(usize, usize)>;

impl Cursor<'_> {
    /// Past the only row.
    fn query_of_row(
        &mut self,
        wanted: Wanted<'_>,
        constructor: bool,
        place: KeyPosition,
    ) -> Result<Found, Unread> {
        let KeyPosition::At { index, .. } = place else {
            return Ok(None);
        };
        let mut seen = Scanned::default();
        let begins = (!constructor || self.accept("ROW")?) && self.accept_mark(b'(')?;
        if begins && index > 0 {
            let (stop, _) = self.skip_values(index, wanted.name, &mut seen)?;
            if stop != Stop::Comma {
                return Ok(None);
            }
            self.at += 1;
        }
        let found = self.pure_query()?;
        let ends = matches!(self.peek()?.kind, Kind::Mark(b',' | b')'));
        let (stop, _) = self.skip_values(usize::MAX, wanted.name, &mut seen)?;
        if !begins || !ends || stop != Stop::Close {
            return Ok(None);
        }
        self.at += 1;
        let is_only = !self.accept_mark(b',')?;
        Ok(found.filter(|_| is_only))
    }

    /// Past the assignments of a SET.
    fn query_of_set(&mut self, wanted: Wanted<'_>) -> Result<Found, Unread> {
        let (mut found, mut seen) = (None, Scanned::default());
        loop {
            let column = self.path()?.last;
            if !matches!(self.token()?.kind, Kind::Mark(b'=') | Kind::Assign) {
                return Ok(None);
            }
            if column.eq_ignore_ascii_case(wanted.name) {
                found = self.pure_query()?;
                let next = self.peek()?;
                let ends = matches!(next.kind, Kind::Mark(b',' | b';') | Kind::End | Kind::Word);
                if found.is_none() || !ends {
                    return Ok(None);
                }
            }
            self.skip_assigned(wanted.name, &mut seen)?;
            if !self.accept_mark(b',')? {
                return Ok(found);
            }
        }
    }
}
