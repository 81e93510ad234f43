//! Reads the outline of a query whose rows are inserted.

use crate::lex::builtins::{is_aggregate, passes_call};
use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind, Token};
use crate::read::query::clause::Clause;
use crate::read::query::outline::{Item, Limit, Outline, Tail, with};
use crate::refusal::{SelectConstruct, Unread, Unsupported};

/// Where reading stands in a query.
struct Reading {
    outline: Outline,
    part: Part,
    depth: u32,
    /// The level of the outermost subquery around the place.
    query: Option<u32>,
    last: Option<Token>,
    item: Option<Item>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Between SELECT and the first item.
    Options,
    List,
    Clauses,
    /// Behind UNION and the like, before SELECT.
    Between,
    /// The values of ON DUPLICATE KEY UPDATE.
    Tail,
}

impl Cursor<'_> {
    /// Reads a query to the end of the text; the place is before its first token.
    pub(crate) fn outline(&mut self) -> Result<Outline, Unread> {
        let mut parentheses = 0_u32;
        self.skip_blanks()?;
        let outermost = self.at;
        while self.accept_mark(b'(')? {
            parentheses += 1;
        }
        self.skip_blanks()?;
        let mut reading = Reading {
            outline: Outline {
                start: self.at,
                parts: vec![Vec::new()],
                ..Outline::default()
            },
            part: Part::Options,
            depth: 0,
            query: None,
            last: None,
            item: None,
        };
        if self.accept("WITH")? {
            reading.outline.clauses.insert(Clause::With);
            reading.outline.has_effects = self.skip_to_select()?;
        } else if !self.accept("SELECT")? {
            return with(SelectConstruct::NoSelect);
        }
        loop {
            if self.inside {
                return with(SelectConstruct::Comment);
            }
            let token = self.token()?;
            match token.kind {
                Kind::End => break,
                Kind::Mark(b';') if reading.depth == 0 => {
                    if self.token()?.kind != Kind::End {
                        return Err(Unsupported::Several.into());
                    }
                    break;
                }
                Kind::Mark(b')') if reading.depth == 0 => {
                    if parentheses == 0 {
                        return Err(Unread::Refused);
                    }
                    self.leave_parentheses(parentheses, &mut reading)?;
                    reading.outline.parentheses = Some((outermost, self.at));
                    parentheses = 0;
                }
                _ => reading.take(self, token)?,
            }
        }
        if parentheses > 0 || reading.depth > 0 {
            return Err(Unread::Refused);
        }
        if reading.part == Part::Between {
            return with(SelectConstruct::EndsWithUnion);
        }
        reading.finish()
    }

    /// Past the parentheses behind a query; nothing but ON DUPLICATE KEY UPDATE may follow them.
    fn leave_parentheses(&mut self, open: u32, reading: &mut Reading) -> Result<(), Unread> {
        for _ in 1..open {
            if !self.accept_mark(b')')? {
                return with(SelectConstruct::BehindParentheses);
            }
        }
        reading.close_item();
        let next = self.peek()?;
        match next.kind {
            Kind::End | Kind::Mark(b';') => {}
            _ if next.is(self.text, "ON") => {}
            _ => return with(SelectConstruct::BehindParentheses),
        }
        reading.part = Part::Clauses;
        Ok(())
    }

    /// Past the tables of WITH, and past the SELECT behind them. True if there is something on the way that must not be
    /// carried out twice.
    fn skip_to_select(&mut self) -> Result<bool, Unread> {
        let mut depth = 0_u32;
        let mut effects = false;
        let mut is_behind_table = false;
        loop {
            let token = self.token()?;
            let was_behind_table = std::mem::take(&mut is_behind_table);
            let begins_other = token.is(self.text, "TABLE") || token.is(self.text, "VALUES");
            match token.kind {
                // `WITH c AS (…) (SELECT …)`, and what is no SELECT.
                Kind::Mark(b'(') if was_behind_table && depth == 0 => {
                    return with(SelectConstruct::ParenthesesBehindWith);
                }
                Kind::Word if depth == 0 && begins_other => {
                    return with(SelectConstruct::NoSelect);
                }
                Kind::End => return with(SelectConstruct::NoSelect),
                Kind::Mark(b'(') => depth += 1,
                Kind::Mark(b')') if depth == 1 => {
                    (depth, is_behind_table) = (0, true);
                }
                Kind::Mark(b')') => depth = depth.checked_sub(1).ok_or(Unread::Refused)?,
                Kind::Assign => return with(SelectConstruct::Assigns),
                Kind::Word if depth == 0 && token.is(self.text, "SELECT") => {
                    return Ok(effects);
                }
                Kind::Word => effects |= self.has_effects(token)?,
                _ => {}
            }
        }
    }
}

/// Words between SELECT and the select list.
const OPTIONS: [&str; 8] = [
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_NO_CACHE",
    "SQL_CACHE",
    "SQL_CALC_FOUND_ROWS",
];

impl Reading {
    fn take(&mut self, cursor: &mut Cursor<'_>, token: Token) -> Result<(), Unread> {
        let text = cursor.text;
        let is = |word| token.is(text, word);
        let qualified = self.last.is_some_and(|last| last.kind == Kind::Mark(b'.'));
        if token.kind == Kind::Assign {
            return with(SelectConstruct::Assigns);
        }
        if token.kind == Kind::Word {
            self.outline.has_effects |= cursor.has_effects(token)?;
        }
        let may_be_clause = token.kind == Kind::Word && !qualified && self.depth == 0;
        if may_be_clause && self.part != Part::Tail && self.clause(cursor, token)? {
            let end = cursor.at;
            self.last = Some(Token { end, ..token });
            return Ok(());
        }
        if may_be_clause && self.part == Part::Tail && is("RETURNING") {
            self.outline.tail = Tail::OnDuplicateReturning;
        }
        if self.part == Part::Options {
            if is("DISTINCT") || is("DISTINCTROW") {
                self.outline.clauses.insert(Clause::Distinct);
                return Ok(());
            }
            if OPTIONS.into_iter().any(is) {
                self.outline.clauses.insert(Clause::Option);
                return Ok(());
            }
            if is("ALL") {
                return Ok(());
            }
            self.part = Part::List;
        }
        if self.part == Part::Between && !is("ALL") && !is("DISTINCT") {
            return with(SelectConstruct::UnionParts);
        }
        if self.part == Part::List {
            self.list(cursor, token, qualified)?;
        }
        self.nest(token, text);
        self.last = Some(token);
        Ok(())
    }

    /// Follows parentheses, and where subqueries begin and end.
    fn nest(&mut self, token: Token, text: &[u8]) {
        match token.kind {
            Kind::Mark(b'(') => self.depth += 1,
            Kind::Mark(b')') => {
                if self.query == Some(self.depth) {
                    self.query = None;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            Kind::Word if token.is(text, "SELECT") => {
                self.query = self.query.or(Some(self.depth));
            }
            _ => {}
        }
    }

    /// A token of the select list.
    fn list(&mut self, cursor: &Cursor<'_>, token: Token, qualified: bool) -> Result<(), Unread> {
        let text = cursor.text;
        if self.depth == 0 && token.kind == Kind::Mark(b',') {
            if self.item.is_none() {
                return with(SelectConstruct::SelectList);
            }
            self.close_item();
            return Ok(());
        }
        let first = self.item.is_none();
        let item = self.item.get_or_insert(Item {
            start: token.start,
            end: token.end,
            star: false,
            may_lose_digits: false,
        });
        item.end = token.end;
        item.star |= token.kind == Kind::Mark(b'*') && self.depth == 0 && (first || qualified);
        let called = cursor.peek()?.kind == Kind::Mark(b'(');
        if token.kind == Kind::Word && !qualified {
            let is_aggregate =
                self.query.is_none() && cursor.byte(0) == b'(' && is_aggregate(token.of(text));
            let clauses = &mut self.outline.clauses;
            clauses.insert_if(Clause::Window, token.is(text, "OVER"));
            clauses.insert_if(Clause::Aggregate, is_aggregate);
            self.outline.has_unix_timestamp |= token.is(text, "UNIX_TIMESTAMP");
        }
        if token.kind == Kind::Name && called {
            let quoted = token.of(text);
            let inner = quoted.get(1..quoted.len().saturating_sub(1));
            self.outline.has_unix_timestamp |=
                inner.is_some_and(|name| name.eq_ignore_ascii_case(b"unix_timestamp"));
        }
        let may_lose_digits = match token.kind {
            Kind::Hex | Kind::Bits | Kind::Variable | Kind::Parameter | Kind::Mark(b'/') => true,
            Kind::Word if called && !qualified => !passes_call(token.of(text)),
            // It may be a built-in function all the same.
            Kind::Name => called && !qualified,
            _ => false,
        };
        if let Some(item) = &mut self.item {
            item.may_lose_digits |= may_lose_digits;
        }
        Ok(())
    }

    fn close_item(&mut self) {
        if let Some(item) = self.item.take()
            && let Some(part) = self.outline.parts.last_mut()
        {
            part.push(item);
        }
    }

    /// Whether a word outside parentheses starts a clause, which is then noted.
    fn clause(&mut self, cursor: &mut Cursor<'_>, token: Token) -> Result<bool, Unread> {
        let text = cursor.text;
        let is = |word| token.is(text, word);
        if is("SELECT") && self.part == Part::Between {
            self.outline.parts.push(Vec::new());
            self.part = Part::Options;
            return Ok(true);
        }
        if is("SELECT") {
            return with(SelectConstruct::Another);
        }
        if is("ON") && cursor.at_duplicate_key()? {
            self.begin_tail(*cursor)?;
            return Ok(true);
        }
        if self.clause_behind_list(cursor, token)? {
            self.close_item();
            self.part = Part::Clauses;
            return Ok(true);
        }
        // MINUS is an operator in ORACLE mode only; otherwise a name.
        let begins_other =
            is("UNION") || is("EXCEPT") || is("INTERSECT") || (is("MINUS") && cursor.at_part()?);
        if begins_other {
            self.close_item();
            self.outline.clauses.insert(Clause::Union);
            self.part = Part::Between;
        }
        Ok(begins_other)
    }

    /// ON DUPLICATE KEY UPDATE begins, whose first word was read.
    fn begin_tail(&mut self, cursor: Cursor<'_>) -> Result<(), Unread> {
        let outline = &mut self.outline;
        if outline.tail == Tail::None {
            outline.tail = Tail::OnDuplicate;
            outline.has_own_tail = cursor.has_own_tail()?;
            outline.end = self.last.map_or(outline.start, |last| last.end);
        }
        self.close_item();
        self.part = Part::Tail;
        Ok(())
    }

    /// Whether a word starts one of the clauses that follow the select list of a SELECT; it is noted.
    fn clause_behind_list(
        &mut self,
        cursor: &mut Cursor<'_>,
        token: Token,
    ) -> Result<bool, Unread> {
        let text = cursor.text;
        let is = |word| token.is(text, word);
        let outline = &mut self.outline;
        match () {
            () if is("FROM") => {
                let none = cursor.accept("DUAL")?;
                let is_there = !none || matches!(cursor.peek()?.kind, Kind::Mark(b',' | b'.'));
                outline.clauses.insert_if(Clause::From, is_there);
            }
            () if is("WHERE") => {}
            () if is("GROUP") => outline.clauses.insert(Clause::GroupBy),
            () if outline.clauses.has(Clause::GroupBy)
                && (is("ROLLUP") || is("CUBE") || is("SETS")) =>
            {
                outline.clauses.insert(Clause::Rollup);
                return Ok(false);
            }
            () if is("HAVING") => outline.clauses.insert(Clause::Having),
            () if is("ORDER") => {
                outline.clauses.insert(Clause::OrderBy);
                outline.is_ordered_by_name = !cursor.at_column_numbers()?;
            }
            () if is("LIMIT") => cursor.limit(outline)?,
            () if is("FOR") || is("LOCK") => {
                // Hints of indexes and tables with a history say FOR too.
                let next = cursor.peek()?;
                let mut locks = ["UPDATE", "SHARE", "IN"].iter();
                if locks.any(|word| next.is(text, word)) {
                    outline.clauses.insert(Clause::Locking);
                    outline.locking = Some(token.start);
                }
            }
            () if is("INTO") || is("PROCEDURE") => return with(SelectConstruct::IntoOrProcedure),
            () if is("RETURNING") => return with(SelectConstruct::Returning),
            // Words that may be names in the select list.
            // Rows are left out behind their windows, and so behind their numbers: QUALIFY of MySQL.
            () if self.part == Part::Clauses && (is("WINDOW") || is("QUALIFY")) => {
                outline.clauses.insert(Clause::Window);
            }
            () if self.part == Part::Clauses && is("FETCH") => {
                outline.clauses.insert(Clause::Offset);
                outline.limit = Limit::of(outline.limit.rows());
            }
            () if self.part == Part::Clauses && is("OFFSET") && cursor.at_count()? => {
                outline.clauses.insert(Clause::Offset);
                if outline.limit == Limit::None {
                    outline.limit = Limit::Behind;
                }
            }
            () => return Ok(false),
        }
        Ok(true)
    }

    fn finish(mut self) -> Result<Outline, Unread> {
        self.close_item();
        if self.outline.tail == Tail::None {
            self.outline.end = self.last.map_or(self.outline.start, |last| last.end);
        }
        if self.outline.parts.iter().any(Vec::is_empty) {
            return with(SelectConstruct::SelectList);
        }
        Ok(self.outline)
    }
}
