//! What ON DUPLICATE KEY UPDATE behind a query refers to. Behind a table of WITH, the columns of the query's tables are gone, and those of the
//! table itself are found where natively both may be meant.

use crate::lex::cursor::Cursor;
use crate::lex::token::Kind;
use crate::refusal::Unread;

/// Words of expressions that are no columns.
#[rustfmt::skip]
const NO_COLUMNS: [&str; 20] = [
    "AND", "BETWEEN", "CASE", "CURRENT_DATE", "CURRENT_TIMESTAMP", "DEFAULT", "DIV", "ELSE", "END", "FALSE",
    "IN", "IS", "LIKE", "MOD", "NOT", "NULL", "OR", "THEN", "TRUE", "WHEN",
];

impl Cursor<'_> {
    /// Whether all that is assigned behind `DUPLICATE KEY UPDATE`, which comes next, is made of constants and VALUES().
    pub(crate) fn has_own_tail(mut self) -> Result<bool, Unread> {
        if !(self.accept("DUPLICATE")? && self.accept("KEY")? && self.accept("UPDATE")?) {
            return Ok(false);
        }
        let mut depth = 0_usize;
        let mut begins = true;
        loop {
            let token = self.token()?;
            let next = self.peek()?.kind;
            let is = |word: &&str| token.is(self.text, word);
            let is_called = next == Kind::Mark(b'(');
            match token.kind {
                Kind::End | Kind::Mark(b';') => return Ok(true),
                Kind::Word | Kind::Name if begins && next == Kind::Mark(b'=') => {}
                Kind::Word if is_called && ["VALUES", "VALUE"].iter().any(is) => {
                    while !matches!(self.token()?.kind, Kind::Mark(b')') | Kind::End) {}
                }
                Kind::Word if is_called || NO_COLUMNS.iter().any(is) => {}
                Kind::Word | Kind::Name | Kind::Mark(b'.') => return Ok(false),
                Kind::Mark(b'(') => depth += 1,
                Kind::Mark(b')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            begins = depth == 0 && token.kind == Kind::Mark(b',');
        }
    }
}
