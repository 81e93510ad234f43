//! Whether all rows of a query may be one group, which there is without any row, too. Tried on MariaDB 10.11: a call such as `UUID()` beside an aggregate
//! comes to NULL there, or to a UUID of zeros, where no row is found.

use crate::lex::builtins::{is_aggregate, is_built_in, is_pure_call_of_text};
use crate::lex::cursor::Cursor;
use crate::lex::keywords::is_no_call;
use crate::lex::token::{Kind, Token};
use crate::read::query::clause::Clause;
use crate::read::query::outline::Outline;
use crate::refusal::Unread;

/// Where reading stands in a query, behind SELECT.
#[derive(Default)]
struct Place {
    depth: u32,
    /// The level of the outermost subquery around the place.
    query: Option<u32>,
    /// In FROM or WHERE, where no aggregate is one of this query.
    has_none: bool,
    is_behind_point: bool,
}

impl Place {
    fn take(&mut self, token: Token, text: &[u8]) {
        let is = |word| token.is(text, word);
        match token.kind {
            Kind::Mark(b'(') => self.depth += 1,
            Kind::Mark(b')') => {
                if self.query == Some(self.depth) {
                    self.query = None;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            Kind::Word if self.is_behind_point => {}
            Kind::Word if is("SELECT") => self.query = self.query.or(Some(self.depth)),
            Kind::Word if self.depth == 0 && (is("FROM") || is("WHERE")) => self.has_none = true,
            Kind::Word if self.depth == 0 && (is("ORDER") || is("WINDOW") || is("QUALIFY")) => {
                self.has_none = false;
            }
            _ => {}
        }
        self.is_behind_point = token.kind == Kind::Mark(b'.');
    }
}

impl Outline {
    /// Whether all rows may be one group: by an aggregate, or by what may be one, without GROUP BY. One in a subquery may be of the query around it. `cursor`
    /// is of its text.
    pub(crate) fn may_be_one_group(&self, mut cursor: Cursor<'_>) -> Result<bool, Unread> {
        let clauses = self.clauses;
        if clauses.has(Clause::GroupBy) && self.parts.len() == 1 {
            return Ok(false);
        }
        if clauses.has(Clause::Aggregate) || clauses.has(Clause::Having) {
            return Ok(true);
        }
        let first = self.parts.iter().flatten().next();
        cursor.at = first.map_or(self.start, |item| item.start);
        let mut place = Place::default();
        loop {
            let token = cursor.token()?;
            if token.kind == Kind::End || token.start >= self.end {
                return Ok(false);
            }
            let may_be_its =
                !place.has_none && (place.query.is_none() || clauses.has(Clause::From));
            if may_be_its && cursor.may_call_aggregate(token, place.is_behind_point)? {
                return Ok(true);
            }
            place.take(token, cursor.text);
        }
    }
}

impl Cursor<'_> {
    /// Whether a token that was just passed begins a call of an aggregate function, or of one that is not known and may be one.
    fn may_call_aggregate(&self, token: Token, is_behind_point: bool) -> Result<bool, Unread> {
        let is_name = matches!(token.kind, Kind::Word | Kind::Name);
        if !is_name || self.peek()?.kind != Kind::Mark(b'(') {
            return Ok(false);
        }
        let (word, server) = (token.of(self.text), self.modes.server);
        let is_plain = token.kind == Kind::Word && !is_behind_point;
        let is_known = is_no_call(word, server) || is_built_in(word, server);
        // One of MySQL's from 8.0.24 on.
        let is_one = is_aggregate(word) || token.is(self.text, "ST_COLLECT");
        Ok(!is_plain || !is_known || is_one)
    }

    /// Whether a function is called between here and there whose value is not that of its arguments.
    pub(crate) fn has_call(mut self, end: usize) -> Result<bool, Unread> {
        loop {
            let token = self.token()?;
            if token.kind == Kind::End || token.start >= end {
                return Ok(false);
            }
            let is_call = token.kind == Kind::Word && self.peek()?.kind == Kind::Mark(b'(');
            if is_call && !is_pure_call_of_text(token.of(self.text), self.modes.server) {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lex::cursor::Cursor;
    use crate::modes::{Flavour, Modes, Server};

    fn may_be_one_group(query: &str, flavour: Flavour) -> bool {
        let version = match flavour {
            Flavour::MariaDb => 101_119,
            Flavour::MySql => 90_704,
        };
        let modes = Modes::plain(Server { flavour, version });
        let cursor = Cursor::new(query.as_bytes(), &modes);
        let mut ahead = cursor;
        let outline = ahead.outline().expect("it can be read");
        outline.may_be_one_group(cursor).expect("it can be read")
    }

    #[test]
    fn an_aggregate_of_the_query_makes_one_group_of_its_rows() {
        for (query, is_one) in [
            ("SELECT UUID(), a FROM u", false),
            (
                "SELECT UUID(), COALESCE(a, 1) + 1 FROM u WHERE a IN (1, 2)",
                false,
            ),
            (
                "SELECT UUID(), COALESCE(MAX(a), 0) + 1, 5 FROM u WHERE g = 5",
                true,
            ),
            ("SELECT UUID(), MAX (a) FROM u", true),
            ("SELECT UUID(), ST_COLLECT(a) FROM u", true),
            ("SELECT UUID(), MAX(a) FROM u GROUP BY b", false),
            ("SELECT UUID(), 1 FROM u HAVING COUNT(*) = 0", true),
            ("SELECT UUID(), 1 FROM u ORDER BY MAX(a)", true),
            (
                "SELECT UUID(), 1 FROM u WHERE a = 1 ORDER BY a + (SELECT MAX(u.a) FROM v)",
                true,
            ),
            ("SELECT UUID(), (SELECT MAX(u.a) FROM v) FROM u", true),
            ("SELECT UUID(), (SELECT MAX(a) FROM u)", false),
            (
                "SELECT UUID(), a FROM u WHERE a > (SELECT MAX(a) FROM u) ORDER BY a",
                false,
            ),
            ("SELECT UUID(), a FROM (SELECT MAX(a) AS a FROM u) d", false),
            (
                "WITH c AS (SELECT MAX(a) AS a FROM u) SELECT UUID(), a FROM c",
                false,
            ),
            // A stored function may be an aggregate.
            ("SELECT UUID(), f(a) FROM u", true),
            ("SELECT UUID(), `max`(a) FROM u", true),
            ("SELECT UUID(), d.f(a) FROM u", true),
            ("SELECT UUID(), u.from, MAX(a) FROM u", true),
            ("SELECT UUID(), u.from, f(a) FROM u", true),
        ] {
            for flavour in [Flavour::MariaDb, Flavour::MySql] {
                assert_eq!(
                    may_be_one_group(query, flavour),
                    is_one,
                    "{query} {flavour:?}"
                );
            }
        }
    }
}
