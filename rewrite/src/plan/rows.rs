//! One walk over the rows of an INSERT, and over what follows them.

use crate::lex::cursor::Cursor;
use crate::lex::scan::{Scanned, Stop};
use crate::lex::token::{Kind, Token};
use crate::modes::Flavour;
use crate::plan::row_sites::{KeyPosition, Walked};
use crate::plan::site::SiteKind;
use crate::read::key_wanted::{Value, Wanted};
use crate::refusal::{Unread, Unsupported};

/// For how many rows memory is taken before they are read.
const SITES_AHEAD_MAX: usize = 4096;

/// After so many rows that have more than constants in them it is not expected of the others either.
const MISSES_MAX: u32 = 8;

impl Cursor<'_> {
    /// Past all rows.
    pub(crate) fn walk_rows(
        &mut self,
        mut wanted: Wanted<'_>,
        constructor: bool,
        walked: &mut Walked,
    ) -> Result<(), Unread> {
        let start = self.at;
        let plain = match walked.place {
            KeyPosition::Absent { values } => values.filter(|_| !constructor),
            KeyPosition::At { .. } => None,
        };
        let mut misses = 0;
        loop {
            if constructor && !self.accept("ROW")? {
                return Err(Unread::Refused);
            }
            if !self.accept_mark(b'(')? {
                return Err(Unread::Refused);
            }
            match walked.place {
                KeyPosition::Absent { values } => self.walk_row(wanted, values, walked)?,
                KeyPosition::At { index, values } => {
                    self.walk_row_with_key(wanted, index, values, walked)?
                }
            }
            walked.rows += 1;
            if !self.accept_mark(b',')? {
                return Ok(());
            }
            wanted = wanted.behind_first();
            if walked.rows == 1 {
                // The others will be about as long.
                let others = self.rest().len() / (self.at - start);
                walked.sites.reserve(others.min(SITES_AHEAD_MAX));
            }
            if let Some(values) = plain.filter(|_| misses < MISSES_MAX) {
                self.walk_plain_rows(values, walked)?;
                misses += 1;
            }
        }
    }

    /// Past a row without the key's column; the place is behind its `(`.
    fn walk_row(
        &mut self,
        wanted: Wanted<'_>,
        expected: Option<usize>,
        walked: &mut Walked,
    ) -> Result<(), Unread> {
        let start = self.at;
        let parameters = walked.seen.parameters;
        let mut values = 0_usize;
        if !self.accept_mark(b')')? {
            let (stop, commas) = self.skip_values(usize::MAX, wanted.name, &mut walked.seen)?;
            if stop != Stop::Close {
                return Err(Unread::Refused);
            }
            self.at += 1;
            values = commas + 1;
        }
        if values != expected.unwrap_or(0) {
            return Err(Unread::Refused);
        }
        let kind = if values == 0 {
            SiteKind::Only
        } else {
            SiteKind::First
        };
        walked.add_absent(start, self.at - 1, parameters, kind)
    }

    /// Past a row in which the key is the value at `index`; the place is behind its `(`.
    fn walk_row_with_key(
        &mut self,
        wanted: Wanted<'_>,
        index: usize,
        expected: usize,
        walked: &mut Walked,
    ) -> Result<(), Unread> {
        let mut values = 1;
        if index > 0 {
            let (stop, commas) = self.skip_values(index, wanted.name, &mut walked.seen)?;
            if stop != Stop::Comma {
                return Err(Unread::Refused);
            }
            self.at += 1;
            values += commas + 1;
        }
        let parameters = walked.seen.parameters;
        let found = self.key_value(wanted, &mut walked.seen)?;
        walked.add_value(&found, parameters)?;
        let asks = found.value != Value::Explicit;
        let behind = walked.behind_key(*self);
        if self.accept_mark(b',')? {
            let (_, commas) = self.skip_values(usize::MAX, wanted.name, &mut walked.seen)?;
            values += commas + 1;
        }
        if !self.accept_mark(b')')? {
            return Err(Unread::Refused);
        }
        if values != expected {
            return Err(Unread::Refused);
        }
        if asks && walked.refers_to_key(behind, self.at, wanted)? {
            return Err(Unsupported::KeyReferred.into());
        }
        walked.seen.name = false;
        Ok(())
    }

    /// Past the assignments of a SET.
    pub(crate) fn walk_assignments(
        &mut self,
        wanted: Wanted<'_>,
        walked: &mut Walked,
    ) -> Result<(), Unread> {
        self.skip_blanks()?;
        let start = self.at;
        let before = walked.seen.parameters;
        let (mut asks, mut behind) = (false, *self);
        loop {
            let column = self.path()?.last;
            if !matches!(self.token()?.kind, Kind::Mark(b'=') | Kind::Assign) {
                return Err(Unread::Refused);
            }
            if !column.eq_ignore_ascii_case(wanted.name) {
                self.skip_blanks()?;
                let value = self.at;
                self.skip_assigned(wanted.name, &mut walked.seen)?;
                if self.at == value {
                    return Err(Unread::Refused);
                }
            } else if std::mem::replace(&mut walked.assigned, true) {
                return Err(Unread::Refused);
            } else {
                let parameters = walked.seen.parameters;
                let found = self.key_value(wanted, &mut walked.seen)?;
                walked.add_value(&found, parameters)?;
                asks = found.value != Value::Explicit;
                behind = walked.behind_key(*self);
            }
            if !self.accept_mark(b',')? {
                break;
            }
        }
        if asks && walked.refers_to_key(behind, self.at, wanted)? {
            return Err(Unsupported::KeyReferred.into());
        }
        if walked.absent() {
            walked.add_absent(start, self.at, before, SiteKind::Assign)?;
        }
        walked.rows = 1;
        Ok(())
    }

    /// Past what follows the rows, to the end of the text.
    pub(crate) fn walk_tail(
        &mut self,
        constructor: bool,
        walked: &mut Walked,
    ) -> Result<(), Unread> {
        let maria = self.modes.server.flavour == Flavour::MariaDb;
        let unknown = Err(Unsupported::BehindRows.into());
        if self.accept("AS")? {
            if maria || constructor {
                return Err(Unread::Refused);
            }
            self.name_part()?;
            walked.alias_list = self.alias_columns()?;
        }
        let next = self.peek()?;
        if next.is(self.text, "ON") {
            self.token()?;
            walked.on_duplicate = true;
        } else if next.kind == Kind::Mark(b')') {
            return Err(Unread::Refused);
        } else {
            let returning = maria && next.is(self.text, "RETURNING");
            if !returning && !matches!(next.kind, Kind::End | Kind::Mark(b';')) {
                return unknown;
            }
        }
        let mut seen = Scanned::default();
        self.skip_statement(&mut seen)?;
        walked.seen.add(seen);
        if self.accept_mark(b';')? {
            self.skip_blanks()?;
        }
        match self.token()? {
            Token {
                kind: Kind::End, ..
            } => Ok(()),
            _ => Err(Unsupported::Several.into()),
        }
    }

    /// Past the columns of a row alias; where they lie between their parentheses.
    fn alias_columns(&mut self) -> Result<Option<(usize, usize)>, Unread> {
        let mut ahead = *self;
        if !ahead.accept_mark(b'(')? {
            return Ok(None);
        }
        let start = ahead.at;
        loop {
            ahead.name_part()?;
            if ahead.accept_mark(b')')? {
                let end = ahead.at - 1;
                *self = ahead;
                return Ok(Some((start, end)));
            }
            if !ahead.accept_mark(b',')? {
                return Err(Unread::Refused);
            }
        }
    }
}
