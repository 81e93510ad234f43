//! Queries within a query that sort their rows.
//!
//! MariaDB leaves out such an ORDER BY and reads the inner query's tables directly. Where the outer one has ROWNUM() it keeps the
//! order, and so holds the inner rows in a temporary table, which changes some computed values: `a / 3` loses digits, and `0x08`
//! is a string there (seen on 10.11.14).

use crate::lex::builtins::passes_call;
use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind, Token};
use crate::refusal::Unread;

/// Clauses for which the server holds the rows in any case.
const HOLDS_ROWS: [&str; 9] = [
    "DISTINCT",
    "EXCEPT",
    "FETCH",
    "GROUP",
    "HAVING",
    "INTERSECT",
    "LIMIT",
    "OVER",
    "UNION",
];

/// What is between two parentheses.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    is_query: bool,
    /// Between SELECT and FROM, or in parentheses there.
    in_list: bool,
    sorts: bool,
    holds_rows: bool,
    /// Some value of its list, or of a query within, may be another after a temporary table has held it.
    may_lose_digits: bool,
}

impl Level {
    /// Takes a token that is no parenthesis.
    fn take(&mut self, token: Token, text: &[u8], is_called: bool, is_qualified: bool) {
        match token.kind {
            Kind::Hex | Kind::Bits | Kind::Variable | Kind::Parameter | Kind::Mark(b'/') => {
                self.may_lose_digits |= self.in_list;
            }
            Kind::Word | Kind::Name if is_qualified => {}
            Kind::Name => self.may_lose_digits |= is_called && self.in_list,
            Kind::Word if is_called && self.in_list => {
                self.may_lose_digits |= !passes_call(token.of(text));
                self.holds_rows |= token.is(text, "OVER");
            }
            Kind::Word if self.is_query => {
                let is = |word: &str| token.is(text, word);
                self.in_list = is("SELECT") || (self.in_list && !is("FROM"));
                self.sorts |= is("ORDER");
                self.holds_rows |= HOLDS_ROWS.into_iter().any(is);
            }
            _ => {}
        }
    }
}

impl Cursor<'_> {
    /// Whether a query within this one sorts rows of computed values that a temporary table may change.
    ///
    /// # Errors
    /// The text cannot be read.
    pub(crate) fn sorts_computed_within(mut self) -> Result<bool, Unread> {
        let mut outer: Vec<Level> = Vec::new();
        let mut level = Level::default();
        let mut is_qualified = false;
        loop {
            let token = self.token()?;
            let next = self.peek()?;
            match token.kind {
                Kind::End => return Ok(false),
                Kind::Mark(b'(') => {
                    let is_query = next.is(self.text, "SELECT") || next.is(self.text, "WITH");
                    outer.push(level);
                    level = Level {
                        is_query,
                        in_list: level.in_list && !is_query,
                        ..Level::default()
                    };
                }
                Kind::Mark(b')') => {
                    let inner = level;
                    if inner.is_query && inner.sorts && !inner.holds_rows && inner.may_lose_digits {
                        return Ok(true);
                    }
                    // Behind the parentheses of the query that is inserted.
                    level = outer.pop().unwrap_or_default();
                    level.may_lose_digits |= inner.may_lose_digits;
                }
                _ => {
                    let is_called = next.kind == Kind::Mark(b'(');
                    level.take(token, self.text, is_called, is_qualified);
                }
            }
            is_qualified = token.kind == Kind::Mark(b'.');
        }
    }
}
