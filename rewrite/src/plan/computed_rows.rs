//! The rows of an INSERT whose keys the server may be asked for: which of them are computed, and whether all of those change nothing.

use crate::lex::cursor::Cursor;
use crate::lex::scan::{Scanned, Stop};
use crate::lex::token::Kind;
use crate::plan::row_sites::KeyPosition;
use crate::read::computed::Computed;
use crate::read::key_wanted::Wanted;
use crate::refusal::{KeyExpression, Unread, Unsupported};

/// A computed key, its row, and how many parameters stand before it.
pub(super) struct InRow {
    pub(super) row: usize,
    pub(super) parameters: u32,
    pub(super) key: Computed,
}

/// All that there are, and how many rows; `None`: one is not known to change nothing.
pub(super) type OfRows = Option<(Vec<InRow>, usize)>;

impl Cursor<'_> {
    /// Past all rows.
    pub(super) fn computed_of_rows(
        &mut self,
        mut wanted: Wanted<'_>,
        constructor: bool,
        place: KeyPosition,
    ) -> Result<OfRows, Unread> {
        let KeyPosition::At { index, .. } = place else {
            return Ok(None);
        };
        let (mut keys, mut row, mut seen) = (Vec::new(), 0, Scanned::default());
        loop {
            if constructor && !self.accept("ROW")? {
                return Ok(None);
            }
            if !self.accept_mark(b'(')? {
                return Ok(None);
            }
            if index > 0 {
                let (stop, _) = self.skip_values(index, wanted.name, &mut seen)?;
                if stop != Stop::Comma {
                    return Ok(None);
                }
                self.at += 1;
            }
            let parameters = seen.parameters;
            match self.constant_or_computed(wanted, &mut seen)? {
                Some(key) => keys.extend(key.map(|key| InRow {
                    row,
                    parameters,
                    key,
                })),
                None => return Ok(None),
            }
            let (stop, _) = self.skip_values(usize::MAX, wanted.name, &mut seen)?;
            if stop != Stop::Close {
                return Ok(None);
            }
            self.at += 1;
            row += 1;
            if !self.accept_mark(b',')? {
                return Ok(Some((keys, row)));
            }
            wanted = wanted.behind_first();
        }
    }

    /// Past the assignments of a SET.
    pub(super) fn computed_of_set(&mut self, wanted: Wanted<'_>) -> Result<OfRows, Unread> {
        let (mut keys, mut seen) = (Vec::new(), Scanned::default());
        loop {
            let column = self.path()?.last;
            if !matches!(self.token()?.kind, Kind::Mark(b'=') | Kind::Assign) {
                return Ok(None);
            }
            if !column.eq_ignore_ascii_case(wanted.name) {
                self.skip_assigned(wanted.name, &mut seen)?;
            } else {
                let parameters = seen.parameters;
                match self.constant_or_computed(wanted, &mut seen)? {
                    Some(key) => keys.extend(key.map(|key| InRow {
                        row: 0,
                        parameters,
                        key,
                    })),
                    None => return Ok(None),
                }
            }
            if !self.accept_mark(b',')? {
                return Ok(Some((keys, 1)));
            }
        }
    }

    /// Past a key: a constant is `Some(None)`.
    fn constant_or_computed(
        &mut self,
        wanted: Wanted<'_>,
        seen: &mut Scanned,
    ) -> Result<Option<Option<Computed>>, Unread> {
        let (mut ahead, mut seen_ahead) = (*self, *seen);
        match ahead.key_value(wanted, &mut seen_ahead) {
            Ok(_) => {
                (*self, *seen) = (ahead, seen_ahead);
                Ok(Some(None))
            }
            Err(Unread::Unsupported(Unsupported::Key(
                KeyExpression::Call
                | KeyExpression::Variable
                | KeyExpression::Subquery
                | KeyExpression::Operator,
            ))) => Ok(self.computed(wanted.form)?.map(Some)),
            Err(other) => Err(other),
        }
    }
}
