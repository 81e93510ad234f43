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
                });
            }
            (Ok(_), false) => KeyExpression::Operator,
            (Err(Unread::Unsupported(Unsupported::Key(reason))), _) => reason,
            (Err(other), _) => return Err(other),
        };
        if !start.is_own_key(wanted, reason)? {
            return Err(Unsupported::Key(reason).into());
        }
        *self = start;
        let mut own = Scanned::default();
        self.skip_assigned(wanted.name, &mut own)?;
        seen.add(own);
        Ok(Found {
            value: Value::Explicit,
            start: start.at,
            end: self.at,
        })
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
