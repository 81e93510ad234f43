//! Parameters and user variables in queries that stand in place of a table.
//!
//! The server says at PREPARE of which type the columns of such a query are, and takes another when a parameter is bound to a value of
//! another type, or a variable was set to one (seen on MariaDB 10.11 with both: a column that was an integer held 0.4).

use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind, Token};
use crate::refusal::Unread;

/// Where reading stands: whether in a query that stands in place of a table.
#[derive(Default)]
pub(super) struct InTables {
    /// Of each open parenthesis, whether a query stands in it.
    queries: Vec<bool>,
    /// In how many of them one does: a look at each for every parameter would take quadratic time.
    open_queries: usize,
    /// Between SELECT and FROM of the query itself.
    in_list: bool,
    /// Behind WHERE of the query itself.
    is_behind: bool,
    is_qualified: bool,
}

impl InTables {
    /// Takes the next token of the query.
    pub(super) fn take(&mut self, token: Token, text: &[u8]) {
        let was_qualified = std::mem::take(&mut self.is_qualified);
        match token.kind {
            Kind::Mark(b'(') => self.queries.push(false),
            Kind::Mark(b')') => {
                let was_query = self.queries.pop().unwrap_or(false);
                self.open_queries -= usize::from(was_query);
            }
            Kind::Mark(b'.') => self.is_qualified = true,
            Kind::Word if !was_qualified => self.keyword(token, text),
            _ => {}
        }
    }

    fn keyword(&mut self, word: Token, text: &[u8]) {
        let is = |keyword| word.is(text, keyword);
        match self.queries.last_mut() {
            Some(query) if !*query => {
                *query = ["SELECT", "VALUES", "TABLE", "WITH"].into_iter().any(is);
                self.open_queries += usize::from(*query);
            }
            Some(_) => {}
            None => {
                self.is_behind |= is("WHERE");
                self.in_list = is("SELECT") || (self.in_list && !is("FROM"));
            }
        }
    }

    /// Whether what was taken last stands in such a query.
    pub(super) fn is_inside(&self) -> bool {
        !self.in_list && !self.is_behind && self.open_queries > 0
    }
}

impl Cursor<'_> {
    /// Whether a parameter or a user variable stands in a query of WITH or FROM, of the query that begins here and ends there.
    pub(crate) fn has_table_parameter(mut self, end: usize) -> Result<bool, Unread> {
        let mut place = InTables::default();
        loop {
            let token = self.token()?;
            if token.kind == Kind::End || token.start >= end || place.is_behind {
                return Ok(false);
            }
            place.take(token, self.text);
            let may_be_another = matches!(token.kind, Kind::Parameter | Kind::Variable)
                && !token.of(self.text).starts_with(b"@@");
            if may_be_another && place.is_inside() {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::lex::cursor::Cursor;
    use crate::modes::{Flavour, Modes, Server};

    fn has_one(text: &str) -> bool {
        let modes = Modes::plain(Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        });
        let cursor = Cursor::new(text.as_bytes(), &modes);
        cursor.has_table_parameter(text.len()) == Ok(true)
    }

    #[test]
    fn it_stands_in_a_query_that_is_open() {
        for (text, has) in [
            ("SELECT a FROM (SELECT ? AS a) AS x", true),
            ("SELECT a FROM ((SELECT (SELECT 1), (@x) AS a)) AS x", true),
            ("WITH x AS (VALUES (?)) SELECT a FROM x", true),
            (
                "SELECT a FROM (SELECT 1 AS a) AS x JOIN y ON (b = ?)",
                false,
            ),
            ("SELECT (SELECT ?) FROM (SELECT @@sql_mode) AS x", false),
            ("SELECT a FROM x WHERE b IN (SELECT ?)", false),
        ] {
            assert_eq!(has_one(text), has, "{text}");
        }
    }

    /// A minute or more where each parameter looks at each parenthesis.
    #[test]
    fn very_many_parameters_behind_very_many_parentheses_are_read_at_once() {
        const COUNT: usize = 400_000;
        let text = format!("SELECT a FROM {}{}", "(".repeat(COUNT), "?,".repeat(COUNT));
        let begun = Instant::now();
        assert!(!has_one(&text));
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
