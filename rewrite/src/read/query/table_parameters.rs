//! Parameters and user variables in queries that stand in place of a table.
//!
//! The server says at PREPARE of which type the columns of such a query are, and takes another when a parameter is bound to a value of
//! another type, or a variable was set to one (seen on MariaDB 10.11 with both: a column that was an integer held 0.4).

use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind, Token};
use crate::refusal::Unread;

/// Where reading stands.
#[derive(Default)]
struct Reading {
    /// Of each open parenthesis, whether a query stands in it.
    queries: Vec<bool>,
    /// Between SELECT and FROM of the query itself.
    in_list: bool,
    is_qualified: bool,
}

impl Reading {
    /// Takes a word that is a keyword; false behind the tables.
    fn keyword(&mut self, word: Token, text: &[u8]) -> bool {
        let is = |keyword| word.is(text, keyword);
        match self.queries.last_mut() {
            Some(query) => *query |= ["SELECT", "VALUES", "TABLE", "WITH"].into_iter().any(is),
            None if is("WHERE") => return false,
            None => self.in_list = is("SELECT") || (self.in_list && !is("FROM")),
        }
        true
    }
}

impl Cursor<'_> {
    /// Whether a parameter or a user variable stands in a query of WITH or FROM, of the query that begins here and ends there.
    pub(crate) fn has_table_parameter(mut self, end: usize) -> Result<bool, Unread> {
        let mut reading = Reading::default();
        loop {
            let token = self.token()?;
            if token.kind == Kind::End || token.start >= end {
                return Ok(false);
            }
            let was_qualified = std::mem::take(&mut reading.is_qualified);
            match token.kind {
                Kind::Mark(b'(') => reading.queries.push(false),
                Kind::Mark(b')') => {
                    let _closed = reading.queries.pop();
                }
                Kind::Mark(b'.') => reading.is_qualified = true,
                Kind::Word if !was_qualified => {
                    let are_tables = reading.keyword(token, self.text);
                    if !are_tables {
                        return Ok(false);
                    }
                }
                Kind::Parameter | Kind::Variable
                    if !reading.in_list
                        && reading.queries.contains(&true)
                        && !token.of(self.text).starts_with(b"@@") =>
                {
                    return Ok(true);
                }
                _ => {}
            }
        }
    }
}
