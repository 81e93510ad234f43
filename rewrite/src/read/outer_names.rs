//! Names in the subqueries of a row that may mean the key of that row, and no column of the tables that the subqueries read.

use crate::lex::cursor::Cursor;
use crate::lex::name::undouble;
use crate::lex::token::{Kind, Token};
use crate::read::key_value::Wanted;
use crate::refusal::Unread;

/// What is between two parentheses.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    is_query: bool,
    /// Its SELECT reads a table.
    reads_table: bool,
    /// It has the key's name, without a table.
    has_name: bool,
}

impl Level {
    /// Whether the name can be no column of what it reads.
    fn is_open(self) -> bool {
        self.is_query && self.has_name && !self.reads_table
    }
}

impl Cursor<'_> {
    /// Whether a subquery between here and `end` may refer to the row's key: by its name where no FROM is beside it, or by the name of the table that the
    /// rows go into. Beside a FROM the name counts as a column of what is read there.
    pub(crate) fn refers_from_within(
        mut self,
        end: usize,
        wanted: Wanted<'_>,
    ) -> Result<bool, Unread> {
        let (mut outer, mut level) = (Vec::new(), Level::default());
        let mut before = [None::<Token>; 2];
        loop {
            let token = self.token()?;
            if token.kind == Kind::End || token.start >= end {
                return Ok(false);
            }
            let [qualifier, last] = before;
            let is_qualified = last.is_some_and(|last| last.kind == Kind::Mark(b'.'));
            match token.kind {
                Kind::Mark(b'(') => outer.push(std::mem::take(&mut level)),
                Kind::Mark(b')') if level.is_open() => return Ok(true),
                Kind::Mark(b')') => {
                    let inner = level;
                    level = outer.pop().unwrap_or_default();
                    level.has_name |= inner.has_name && !inner.is_query;
                }
                // Another part of a UNION.
                Kind::Word if !is_qualified && token.is(self.text, "SELECT") => {
                    if level.is_open() {
                        return Ok(true);
                    }
                    level = Level {
                        is_query: true,
                        ..Level::default()
                    };
                }
                Kind::Word if !is_qualified && token.is(self.text, "FROM") => {
                    level.reads_table |= level.is_query && !self.peek()?.is(self.text, "DUAL");
                }
                Kind::Word | Kind::Name if self.is_column(token, last, wanted.name)? => {
                    match qualifier.filter(|_| is_qualified) {
                        Some(table) if is_same(&self.bare(table), wanted.table) => return Ok(true),
                        Some(_) => {}
                        None => level.has_name = true,
                    }
                }
                _ => {}
            }
            before = [last, Some(token)];
        }
    }

    /// Whether a token that was just passed is a column of this name: no alias, no table and no function.
    fn is_column(&self, token: Token, last: Option<Token>, name: &[u8]) -> Result<bool, Unread> {
        let is_alias = last.is_some_and(|last| last.is(self.text, "AS"));
        let is_named_so = !is_alias && self.bare(token).eq_ignore_ascii_case(name);
        Ok(is_named_so && !matches!(self.peek()?.kind, Kind::Mark(b'.' | b'(')))
    }

    /// A name without its quotes.
    fn bare(&self, token: Token) -> Vec<u8> {
        let of = token.of(self.text);
        match (token.kind, of) {
            (Kind::Name, [quote, inner @ .., _]) => undouble(inner, *quote),
            _ => of.to_vec(),
        }
    }
}

/// Whether two names may be the same. In which way those beyond ASCII are compared is for the server to say.
fn is_same(name: &[u8], other: &[u8]) -> bool {
    name.eq_ignore_ascii_case(other) || !name.is_ascii() || !other.is_ascii()
}
