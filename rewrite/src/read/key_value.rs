//! What stands at the key column's place in one row.

use crate::lex::cursor::Cursor;
use crate::lex::scan::Scanned;
use crate::lex::token::Kind;
use crate::read::key_wanted::{KeyForm, Value, Wanted};
use crate::refusal::{KeyExpression, Unread, Unsupported};

/// A value and the bytes it takes.
pub(crate) struct Found {
    pub(crate) value: Value,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// It is computed, and may be NULL, which would be an error.
    pub(crate) null_fails: Option<NullFails>,
}

/// Where NULL is an error in a NOT NULL column of a server that is strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NullFails {
    /// In this row, however many there are.
    Always,
    /// In the only row of a statement. Among several the server may store `''` with a warning: so this keeps the key from being read there.
    Alone(KeyExpression),
}

impl Cursor<'_> {
    /// Past the key's value; the place is then before `,`, `)` or the statement's end.
    pub(crate) fn key_value(
        &mut self,
        wanted: Wanted<'_>,
        seen: &mut Scanned,
    ) -> Result<Found, Unread> {
        self.skip_blanks()?;
        if let Some(found) = self.plain_key(wanted, seen) {
            return Ok(found);
        }
        let start = *self;
        let mut tried = *seen;
        let constant = self.constant(wanted, &mut tried);
        let end = self.at;
        let followed = constant.is_ok() && self.at_value_end()?;
        let reason = match (constant, followed) {
            (Ok(_), true) if self.inside != start.inside => KeyExpression::Comment,
            (Ok(value), true) => {
                *seen = tried;
                return Ok(Found {
                    value,
                    start: start.at,
                    end,
                    null_fails: None,
                });
            }
            (Ok(_), false) => KeyExpression::Operator,
            (Err(Unread::Unsupported(Unsupported::Key(reason))), _) => reason,
            (Err(other), _) => return Err(other),
        };
        let is_own = start.is_own_key(wanted, reason)?;
        let is_read = is_own || wanted.null_fails && is_computed(reason);
        if !is_read {
            return Err(Unsupported::Key(reason).into());
        }
        *self = start;
        let mut own = Scanned::default();
        self.skip_assigned(wanted.name, &mut own)?;
        if !is_own && start.is_bare_parameter(self.at)? {
            return Err(Unsupported::Key(reason).into());
        }
        let null_fails = match is_own {
            true => None,
            false => Some(self.null_fails(start, wanted, (seen.calls, own), reason)?),
        };
        seen.add(own);
        // Without strict mode NULL is stored as `''`, with a warning.
        seen.by_mode |= null_fails.is_some();
        Ok(Found {
            value: Value::Explicit,
            start: start.at,
            end: self.at,
            null_fails,
        })
    }

    /// Where it is an error if the expression that was passed from `start` on comes to NULL. `calls`: one in the rows before it, or before it in
    /// its own, may be of a stored function; `own`: what was seen in it.
    fn null_fails(
        &self,
        start: Self,
        wanted: Wanted<'_>,
        (calls, own): (bool, Scanned),
        reason: KeyExpression,
    ) -> Result<NullFails, Unread> {
        // Before it is assigned to, the key itself is `''` in the row.
        let refers_to_key =
            own.name || (own.name_in_query && start.refers_from_within(self.at, wanted)?);
        // A function may have written to a table that rolls nothing back: then the server only warns.
        let is_certain = wanted.care.is_strict && wanted.is_strict_behind && !calls && !own.calls;
        // To MySQL ROW() is a row of a query, of which there may be one and NULL is only warned of.
        let is_unread = refers_to_key || self.inside != start.inside;
        if is_unread || (wanted.in_row && !is_certain) {
            return Err(Unsupported::Key(reason).into());
        }
        Ok(match is_certain {
            true => NullFails::Always,
            false => NullFails::Alone(reason),
        })
    }

    /// Whether what stands here up to `end` is a parameter in parentheses, or behind a plus. To MariaDB it is the parameter alone, which may be bound to DEFAULT:
    /// then it is the column's, and no NULL.
    fn is_bare_parameter(mut self, end: usize) -> Result<bool, Unread> {
        let mut is_found = false;
        loop {
            self.skip_blanks()?;
            if self.at >= end {
                return Ok(is_found);
            }
            let kind = self.token()?.kind;
            let may_stand = match is_found {
                true => kind == Kind::Mark(b')'),
                false => {
                    is_found = kind == Kind::Parameter;
                    is_found || kind == Kind::Mark(b'(') || kind == Kind::Mark(b'+')
                }
            };
            if !may_stand {
                return Ok(false);
            }
        }
    }

    /// Whether what stands here, which is no constant that asks for a key, is a key of the application's own: where only NULL asks for one,
    /// and it comes to no NULL. `reason`: why it was not read as a constant.
    fn is_own_key(mut self, wanted: Wanted<'_>, reason: KeyExpression) -> Result<bool, Unread> {
        match wanted.form {
            KeyForm::Integer => return Ok(false),
            KeyForm::Text | KeyForm::Bytes => {}
        }
        if reason == KeyExpression::Comment {
            return Ok(false);
        }
        if wanted.is_computed_own {
            return Ok(true);
        }
        let begins_inside = self.inside;
        Ok(self.never_null()? && self.inside == begins_inside && self.at_value_end()?)
    }

    /// Behind an expression of a select list that is a key of the application's own, where only NULL asks for one; `None`: it is none, or that is not
    /// known.
    pub(crate) fn behind_own_key(mut self, form: KeyForm) -> Result<Option<Self>, Unread> {
        let begins_inside = self.inside;
        let is_own = match form {
            KeyForm::Integer => false,
            KeyForm::Text | KeyForm::Bytes => self.never_null()? && self.inside == begins_inside,
        };
        Ok(is_own.then_some(self))
    }

    /// The keys that nearly all rows have, at memory speed: a number, NULL, DEFAULT, `?`, with `,` or `)` right behind.
    fn plain_key(&mut self, wanted: Wanted<'_>, seen: &mut Scanned) -> Option<Found> {
        let start = self.at;
        let rest = self.rest();
        let length = rest.iter().position(|byte| matches!(byte, b',' | b')'))?;
        let word = rest.get(..length)?;
        let integer = wanted.form == KeyForm::Integer;
        let value = match word {
            b"?" => {
                seen.parameters = seen.parameters.saturating_add(1);
                Value::Parameter
            }
            [b'1'..=b'9', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => Value::Explicit,
            b"0" if integer => Value::Zero,
            _ if word.eq_ignore_ascii_case(b"NULL") => Value::Null,
            _ if integer && !wanted.in_row && word.eq_ignore_ascii_case(b"DEFAULT") => Value::Zero,
            _ => return None,
        };
        self.at += length;
        Some(Found {
            value,
            start,
            end: self.at,
            null_fails: None,
        })
    }

    fn at_value_end(&self) -> Result<bool, Unread> {
        Ok(matches!(
            self.peek()?.kind,
            Kind::Mark(b',' | b')' | b';') | Kind::End
        ) || self.at_clause()?)
    }

    /// What may follow the last assignment of a SET.
    fn at_clause(&self) -> Result<bool, Unread> {
        let token = self.peek()?;
        Ok(["ON", "AS", "RETURNING"]
            .iter()
            .any(|word| token.is(self.text, word)))
    }
}

/// Whether what is no constant for this reason is an expression that the server computes.
fn is_computed(reason: KeyExpression) -> bool {
    matches!(
        reason,
        KeyExpression::Call
            | KeyExpression::Variable
            | KeyExpression::Subquery
            | KeyExpression::Operator
            | KeyExpression::Column
            | KeyExpression::DefaultOfOther
            | KeyExpression::Introducer
    )
}
