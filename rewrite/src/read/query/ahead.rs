//! What stands ahead in a query: words that say what the one before them is, and the numbers of LIMIT.

use crate::lex::builtins::has_effects;
use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind, Token};
use crate::read::query::clause::Clause;
use crate::read::query::outline::{Limit, Outline, with};
use crate::refusal::{SelectConstruct, Unread};

impl Cursor<'_> {
    /// Whether a word that was read is of something that must not be carried out twice, or may be such.
    pub(super) fn has_effects(&self, word: Token) -> Result<bool, Unread> {
        let mut ahead = *self;
        Ok(has_effects(word.of(self.text))
            || (word.is(self.text, "NEXT") && ahead.accept("VALUE")?))
    }

    /// Whether `DUPLICATE KEY UPDATE` follows.
    pub(crate) fn at_duplicate_key(&self) -> Result<bool, Unread> {
        let mut ahead = *self;
        Ok(ahead.accept("DUPLICATE")? && ahead.accept("KEY")? && ahead.accept("UPDATE")?)
    }

    /// Whether a query follows, behind ALL or DISTINCT or in parentheses.
    pub(super) fn at_part(&self) -> Result<bool, Unread> {
        let mut ahead = *self;
        let _quantifier = ahead.accept("ALL")? || ahead.accept("DISTINCT")?;
        while ahead.accept_mark(b'(')? {}
        let first = ahead.peek()?;
        Ok(["SELECT", "VALUES", "TABLE", "WITH"]
            .iter()
            .any(|word| first.is(self.text, word)))
    }

    /// Whether BY and nothing but numbers of columns follow, up to the next clause.
    pub(super) fn at_column_numbers(&self) -> Result<bool, Unread> {
        let mut ahead = *self;
        if !ahead.accept("BY")? {
            return Ok(false);
        }
        loop {
            if ahead.token()?.kind != Kind::Decimal {
                return Ok(false);
            }
            let _direction = ahead.accept("ASC")? || ahead.accept("DESC")?;
            if !ahead.accept_mark(b',')? {
                let next = ahead.peek()?;
                let is_end = matches!(next.kind, Kind::End | Kind::Mark(b')' | b';'));
                let mut clauses = ["LIMIT", "OFFSET", "FETCH", "FOR", "LOCK", "ON"].into_iter();
                return Ok(is_end || clauses.any(|word| next.is(ahead.text, word)));
            }
        }
    }

    /// Whether a number follows, or what stands for one. Without it OFFSET is a name, which MySQL allows.
    pub(super) fn at_count(&mut self) -> Result<bool, Unread> {
        let next = self.peek()?.kind;
        Ok(matches!(next, Kind::Decimal | Kind::Parameter))
    }

    /// Past a number of LIMIT, or what stands for one; none if it is not known.
    fn limit_number(&mut self) -> Result<Option<u64>, Unread> {
        let number = self.peek()?;
        if !matches!(number.kind, Kind::Decimal | Kind::Parameter) {
            return Ok(None);
        }
        self.token()?;
        let digits = std::str::from_utf8(number.of(self.text)).ok();
        Ok(digits.and_then(|digits| digits.parse().ok()))
    }

    /// Past what follows LIMIT.
    pub(super) fn limit(&mut self, outline: &mut Outline) -> Result<(), Unread> {
        outline.limit = Limit::of(self.limit_number()?);
        // Not past blanks that lead to something else: a comment may be the last thing there is.
        if self.peek()?.kind == Kind::Mark(b',') {
            self.token()?;
            outline.clauses.insert(Clause::Offset);
            outline.limit = Limit::of(self.limit_number()?);
        } else if self.accept("OFFSET")? {
            outline.clauses.insert(Clause::Offset);
            self.limit_number()?;
        }
        if self.peek()?.is(self.text, "ROWS") {
            return with(SelectConstruct::RowsExamined);
        }
        Ok(())
    }
}
