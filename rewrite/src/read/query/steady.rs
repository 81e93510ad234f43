//! Calls in a query whose rows bring keys out of a column that is to be named more than once.
//!
//! Servers read what stands in place of a table together with the query around it where they can, and compute its column wherever the column is
//! named: `FROM (SELECT f() AS k FROM u) d` calls `f` once for each `k` (seen on MariaDB 10.11 and MySQL 9.7).

use crate::lex::builtins::{is_built_in, is_called_at_once, is_steady_call};
use crate::lex::cursor::Cursor;
use crate::lex::keywords::is_no_call;
use crate::lex::token::{Kind, Token};
use crate::read::query::table_parameters::InTables;
use crate::refusal::Unread;

impl Cursor<'_> {
    /// Whether a column of the query that begins here and ends there comes to the same however often it is named for a row, and no call in the
    /// query may leave something behind, but for those of which the outline tells (`has_effects`).
    pub(crate) fn is_steady(mut self, end: usize) -> Result<bool, Unread> {
        let mut place = InTables::default();
        let mut last = None;
        loop {
            let token = self.token()?;
            if token.kind == Kind::End || token.start >= end {
                return Ok(true);
            }
            place.take(token, self.text);
            if self.calls(token, last)? && !self.is_known_call(token, last, &place) {
                return Ok(false);
            }
            last = Some(token);
        }
    }

    /// Whether a token that was just passed begins a call, or may.
    fn calls(&self, token: Token, last: Option<Token>) -> Result<bool, Unread> {
        let mut ahead = *self;
        let is_name = matches!(token.kind, Kind::Word | Kind::Name);
        if !is_name || !ahead.accept_mark(b'(')? || ahead.peek()?.is(self.text, "SELECT") {
            return Ok(false);
        }
        // The name of a table with its columns, or a type.
        let is_named_so =
            last.is_some_and(|last| last.kind == Kind::Mark(b')') || last.is(self.text, "AS"));
        if is_named_so || self.at_columns(token.start)? {
            return Ok(false);
        }
        // DEFAULT may be an expression, which is computed then.
        let is_keyword =
            is_no_call(token.of(self.text), self.modes.server) && !token.is(self.text, "DEFAULT");
        Ok(token.kind == Kind::Name || is_behind_point(last) || !is_keyword)
    }

    /// Whether that is a built-in function whose call does no harm where it stands.
    fn is_known_call(&self, token: Token, last: Option<Token>, place: &InTables) -> bool {
        let (of, server) = (token.of(self.text), self.modes.server);
        let is_at_once = self.byte(0) == b'(' || !is_called_at_once(of);
        let is_builtin = token.kind == Kind::Word && !is_behind_point(last) && is_at_once;
        let is_known = match place.is_inside() {
            true => is_steady_call(of, server),
            false => is_built_in(of, server) && !token.is(self.text, "DEFAULT"),
        };
        is_builtin && is_known
    }
}

fn is_behind_point(last: Option<Token>) -> bool {
    last.is_some_and(|last| last.kind == Kind::Mark(b'.'))
}

#[cfg(test)]
mod tests {
    use crate::lex::cursor::Cursor;
    use crate::modes::{Flavour, Modes, Server};

    fn is_steady(text: &str) -> bool {
        let modes = Modes::plain(Server {
            flavour: Flavour::MySql,
            version: 90_704,
        });
        let cursor = Cursor::new(text.as_bytes(), &modes);
        cursor.is_steady(text.len()) == Ok(true)
    }

    #[test]
    fn what_comes_to_the_same_once_more_may_stand_in_place_of_a_table() {
        for text in [
            "SELECT id, a FROM u",
            "SELECT d.k FROM (SELECT IFNULL(id, 7) AS k FROM u WHERE b < NOW()) d",
            "WITH d (k, a) AS (SELECT MAX(id), a FROM u GROUP BY a) SELECT k, a FROM d",
            "SELECT d.k FROM (SELECT 5, 6) AS d (k, a)",
            "SELECT d.k FROM (SELECT CAST(id AS DECIMAL (10, 0)) AS k FROM u) d (k)",
            "SELECT k FROM u, LATERAL (SELECT u.id AS k) d",
            "SELECT id FROM u PARTITION (p0) FORCE INDEX(`PRIMARY`) WHERE MATCH (a) AGAINST ('b')",
            "SELECT k FROM JSON_TABLE('[1]', '$[*]' COLUMNS (k INT PATH '$')) d",
            "SELECT k FROM (SELECT CONVERT(id, DECIMAL(10,2)) AS k, MID(a, 2), JSON_KEYS(b), ST_X(c) FROM u) d",
            "SELECT k FROM JSON_TABLE('[1]', '$[*]' COLUMNS (k INT PATH '$', a VARCHAR(10) PATH '$.a')) d",
            "SELECT id, ST_AsGeoJSON(p), MBRContains(p, q), GROUPING(a), VECTOR_DIM(v) FROM u",
            // Only a few built-in functions are others with a blank.
            "SELECT id, IFNULL (a, 0) FROM u WHERE DATEDIFF (x, y) > 3",
            "SELECT k FROM (SELECT COALESCE (a, b) AS k FROM u) d",
            "SELECT id FROM a STRAIGHT_JOIN (b) WHERE 1 MEMBER OF (c)",
            // What is no part of the column.
            "SELECT id, RAND(), (SELECT RAND()) FROM u WHERE a > RAND() AND a IN (SELECT RAND())",
        ] {
            assert!(is_steady(text), "{text}");
        }
    }

    #[test]
    fn what_may_come_to_another_value_may_not() {
        for text in [
            "SELECT k FROM (SELECT f() AS k FROM u) d",
            "SELECT k FROM (SELECT f () AS k FROM u) d",
            "SELECT k FROM (SELECT `f`(1) AS k FROM u) d",
            "SELECT k FROM (SELECT s.abs(1) AS k FROM u) d",
            "SELECT k FROM (SELECT CAST(FLOOR(RAND() * 2) AS SIGNED) AS k FROM u) d",
            "WITH d AS (SELECT UUID_SHORT() AS k FROM u) SELECT k FROM d",
            "SELECT k FROM u JOIN (v JOIN (SELECT SYSDATE() + 0 AS k) d)",
            "SELECT k FROM (SELECT DEFAULT(a) AS k FROM u) d",
            "SELECT k FROM u, LATERAL (SELECT f(u.id) AS k) d",
            "SELECT k FROM (SELECT MAX (id) AS k FROM u) d",
            // What may leave something behind, wherever it stands.
            "SELECT id, SUBSTR (a, 1) FROM u",
            "SELECT id, MEDIAN(a) FROM u",
            "SELECT id, f(a) FROM u",
            "SELECT id FROM u WHERE s.f(a)",
            "SELECT id, DEFAULT(a) FROM u",
        ] {
            assert!(!is_steady(text), "{text}");
        }
    }
}
