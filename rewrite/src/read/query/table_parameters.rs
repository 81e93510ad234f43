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
    /// In how many of them one does: a look at each for every parameter would take quadratic time.
    open_queries: usize,
    /// Between SELECT and FROM of the query itself.
    in_list: bool,
    is_qualified: bool,
}

impl Reading {
    /// Takes a word that is a keyword; false behind the tables.
    fn keyword(&mut self, word: Token, text: &[u8]) -> bool {
        let is = |keyword| word.is(text, keyword);
        match self.queries.last_mut() {
            Some(query) if !*query => {
                *query = ["SELECT", "VALUES", "TABLE", "WITH"].into_iter().any(is);
                self.open_queries += usize::from(*query);
            }
            Some(_) => {}
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
                    let was_query = reading.queries.pop().unwrap_or(false);
                    reading.open_queries -= usize::from(was_query);
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
                        && reading.open_queries > 0
                        && !token.of(self.text).starts_with(b"@@") =>
                {
                    return Ok(true);
                }
                _ => {}
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
