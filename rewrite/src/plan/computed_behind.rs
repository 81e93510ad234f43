//! Computed values of a sorted query that are computed behind the sorting, as they are natively.
//!
//! The sorted rows are put aside in a table of WITH. A value that is computed for that table is converted for it: on MariaDB text that is no number
//! is refused in strict mode then (1292), where natively it counts as 0 without a word, and a division loses digits (seen on 10.11.14). So
//! that table gets the columns, and the value is computed out of them for the row that goes in. Not so where the statement lists no columns: then the server
//! refuses such text natively, too.
//!
//! Only values that are read exactly: columns, numbers and texts between operators and in calls of a few functions. Only of one table, and not
//! the one that the rows go into: rows of several may be put aside natively, too, and so are those of the same table. And only where columns in
//! place of the values change nothing about what the query sorts by.

use std::ops::Range;

use crate::lex::builtins::{is_computed_alike, is_prefix_operator};
use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind, Token, is_apart};
use crate::modes::Flavour;
use crate::read::query::clause::{Clause, Clauses};
use crate::read::query::outline::{Item, Outline};

/// Parentheses within each other in such a value.
const NESTED_MAX: u32 = 16;

/// Queries with others of them put their rows aside natively, too, or their values are none of single rows.
const SORTED_ONLY: Clauses = Clauses::of(&[
    Clause::From,
    Clause::OrderBy,
    Clause::Offset,
    Clause::Locking,
]);

/// Words behind what a query sorts by.
const BEHIND_ORDER: [&str; 5] = ["LIMIT", "OFFSET", "FETCH", "FOR", "LOCK"];

/// A value that is computed behind the sorting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Behind {
    /// Its place in the select list.
    pub(super) index: usize,
    /// Where it stands in the text, with its alias.
    pub(super) place: Range<usize>,
    /// The columns that it is computed of.
    pub(super) columns: Vec<Range<usize>>,
    /// How.
    parts: Vec<Part>,
    alias: Option<Range<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Range<usize>),
    /// The column of this number.
    Column(usize),
}

impl Behind {
    /// Its columns, for the select list of the table of WITH; apart from words on both sides.
    pub(super) fn columns(&self, text: &[u8]) -> Vec<u8> {
        let is_word = |at: usize| !is_apart(text.get(at).copied().unwrap_or(b' '));
        let mut out = Vec::new();
        if is_word(self.place.start.wrapping_sub(1)) {
            out.push(b' ');
        }
        for (number, place) in self.columns.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            out.extend_from_slice(text.get(place.clone()).unwrap_or_default());
        }
        if is_word(self.place.end) {
            out.push(b' ');
        }
        out
    }

    /// Appends the value, its first column being the `first` of the table of WITH.
    pub(super) fn write(&self, text: &[u8], first: usize, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(place) => {
                    out.extend_from_slice(text.get(place.clone()).unwrap_or_default());
                }
                Part::Column(number) => {
                    out.extend_from_slice(format!("c{}", first + number).as_bytes())
                }
            }
            // Two signs would be a comment, but for a blank.
            if !matches!(part, Part::Text(place) if is_call(text, place)) {
                out.push(b' ');
            }
        }
        out.pop();
    }
}

/// The name of a function, whose parenthesis follows at once.
fn is_call(text: &[u8], place: &Range<usize>) -> bool {
    let first = text.get(place.start).copied().unwrap_or(0);
    first.is_ascii_alphabetic() && text.get(place.end) == Some(&b'(')
}

impl Outline {
    /// The values that are computed behind the sorting, in order. `cursor`: of the same text; `into`: the table that the rows go into.
    pub(super) fn computed_behind(&self, cursor: Cursor<'_>, into: &[u8]) -> Vec<Behind> {
        let is_sorted = self.clauses.has(Clause::OrderBy)
            && self.clauses.has(Clause::From)
            && self.clauses.among(SORTED_ONLY) == self.clauses;
        let [items] = self.parts.as_slice() else {
            return Vec::new();
        };
        let is_mariadb = cursor.modes.server.flavour == Flavour::MariaDb;
        if !is_mariadb || !is_sorted || items.iter().any(|item| item.star) {
            return Vec::new();
        }
        let found: Vec<Behind> = items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| cursor.behind(index, *item))
            .collect();
        let others = items.iter().enumerate();
        let others = others.filter(|(index, _)| found.iter().all(|it| it.index != *index));
        let aliases: Vec<_> = others
            .filter_map(|(_, item)| cursor.perhaps_alias(*item))
            .chain(found.iter().filter_map(|it| it.alias.clone()))
            .collect();
        match cursor.stays_sorted(self, into, &aliases) {
            Some(()) => found,
            None => Vec::new(),
        }
    }
}

impl Cursor<'_> {
    /// An item that is computed of columns. `None`: it is something else, or is not read exactly.
    fn behind(mut self, index: usize, item: Item) -> Option<Behind> {
        self.at = item.start;
        let mut behind = Behind {
            index,
            place: item.start..item.end,
            columns: Vec::new(),
            parts: Vec::new(),
            alias: None,
        };
        self.value(&mut behind, NESTED_MAX)?;
        // A column by itself stays what it is.
        (!behind.columns.is_empty() && behind.parts.len() > 1).then_some(())?;
        if self.at < item.end {
            // Without it, a word of an expression that is not known could be taken for one.
            self.accept("AS").ok()?.then_some(())?;
            let alias = self.token().ok()?;
            matches!(alias.kind, Kind::Word | Kind::Name | Kind::Text).then_some(())?;
            behind.alias = Some(alias.start..alias.end);
        }
        (self.at == item.end && !self.inside).then_some(behind)
    }

    /// What may be the alias of an item that is not read closely.
    fn perhaps_alias(mut self, item: Item) -> Option<Range<usize>> {
        self.at = item.start;
        let (mut before, mut last) = (None, self.token().ok()?);
        while self.at < item.end {
            before = Some(last);
            last = self.token().ok()?;
        }
        let is_name = matches!(last.kind, Kind::Word | Kind::Name | Kind::Text);
        let is_alias = before.is_some_and(|before| before.kind != Kind::Mark(b'.'));
        (is_name && is_alias).then_some(last.start..last.end)
    }

    /// Past operands and the operators between them.
    fn value(&mut self, behind: &mut Behind, nested_max: u32) -> Option<()> {
        loop {
            let mut token = self.token().ok()?;
            while matches!(token.kind, Kind::Mark(b'+' | b'-')) {
                behind.text(token);
                token = self.token().ok()?;
            }
            self.operand(token, behind, nested_max)?;
            let operator = self.peek().ok()?;
            let is_operator = match operator.kind {
                Kind::Mark(b'+' | b'-' | b'*' | b'/' | b'%') => true,
                Kind::Word => operator.is(self.text, "DIV") || operator.is(self.text, "MOD"),
                _ => false,
            };
            if !is_operator {
                return Some(());
            }
            self.token().ok()?;
            behind.text(operator);
        }
    }

    fn operand(&mut self, token: Token, behind: &mut Behind, nested_max: u32) -> Option<()> {
        let nested_max = nested_max.checked_sub(1)?;
        match token.kind {
            Kind::Decimal | Kind::Float | Kind::Text => behind.text(token),
            Kind::Mark(b'(') => {
                behind.text(token);
                self.value(behind, nested_max)?;
                self.closing(behind)?;
            }
            Kind::Word if self.byte(0) == b'(' => {
                is_computed_alike(token.of(self.text)).then_some(())?;
                behind.text(token);
                behind.text(self.token().ok()?);
                self.value(behind, nested_max)?;
                loop {
                    let next = self.peek().ok()?;
                    if next.kind != Kind::Mark(b',') {
                        break;
                    }
                    self.token().ok()?;
                    behind.text(next);
                    self.value(behind, nested_max)?;
                }
                self.closing(behind)?;
            }
            Kind::Word if is_prefix_operator(token.of(self.text)) => return None,
            Kind::Word | Kind::Name => {
                self.at = token.start;
                self.path().ok()?;
                let number = behind.columns.len();
                behind.columns.push(token.start..self.at);
                behind.parts.push(Part::Column(number));
                // A call of something that is not known.
                (self.peek().ok()?.kind != Kind::Mark(b'(')).then_some(())?;
            }
            _ => return None,
        }
        Some(())
    }

    fn closing(&mut self, behind: &mut Behind) -> Option<()> {
        let token = self.token().ok()?;
        (token.kind == Kind::Mark(b')')).then(|| behind.text(token))
    }

    /// Nothing unless the query is of one other table, without queries within it, and what it sorts by stays the same where columns stand in place of
    /// values: columns of that table that are no alias of these, or few calls of functions; no number of a column.
    fn stays_sorted(
        mut self,
        outline: &Outline,
        into: &[u8],
        aliases: &[Range<usize>],
    ) -> Option<()> {
        let text = self.text;
        self.at = outline.list_end();
        let is_from_one = self.accept("FROM").ok()? && self.is_only_table(into);
        is_from_one.then_some(())?;
        let (mut depth, mut is_sorting) = (0_u32, false);
        let mut last = Kind::End;
        while self.at < outline.end {
            let token = self.token().ok()?;
            let is_free = token.kind == Kind::Word && last != Kind::Mark(b'.');
            let is = |word: &str| is_free && token.is(text, word);
            match token.kind {
                Kind::Mark(b'(') => depth += 1,
                Kind::Mark(b')') => depth = depth.checked_sub(1)?,
                _ if is("SELECT") => return None,
                _ if depth == 0 && is("ORDER") => is_sorting = true,
                _ if depth == 0 && BEHIND_ORDER.into_iter().any(is) => is_sorting = false,
                Kind::Word | Kind::Name if is_sorting => {
                    let next = self.peek().ok()?.kind;
                    let stays = match next {
                        Kind::Mark(b'(') => is_free && is_computed_alike(token.of(text)),
                        Kind::Mark(b'.') => true,
                        _ => {
                            let is_word = ["BY", "ASC", "DESC"].into_iter().any(is);
                            let is_alias = |alias: &Range<usize>| is_same(text, alias, token);
                            is_word || last == Kind::Mark(b'.') || !aliases.iter().any(is_alias)
                        }
                    };
                    stays.then_some(())?;
                }
                Kind::Mark(_) => {}
                _ if is_sorting => return None,
                _ => {}
            }
            last = token.kind;
        }
        Some(())
    }

    /// Whether one table follows, not the one that rows go into, with or without another name, and then WHERE or ORDER BY.
    fn is_only_table(mut self, into: &[u8]) -> bool {
        let ends = |cursor: &Self| {
            let next = cursor.peek();
            next.is_ok_and(|next| next.is(cursor.text, "WHERE") || next.is(cursor.text, "ORDER"))
        };
        let Ok(from) = self.table_name() else {
            return false;
        };
        // Whether names differ that are written otherwise is for the server to say.
        if !from.table.is_ascii() || !into.is_ascii() || from.table.eq_ignore_ascii_case(into) {
            return false;
        }
        if ends(&self) {
            return true;
        }
        let has_name = self.accept("AS").is_ok()
            && self
                .token()
                .is_ok_and(|name| matches!(name.kind, Kind::Word | Kind::Name));
        has_name && ends(&self)
    }
}

/// Whether a token may be the same name as an alias. Names beyond ASCII are not compared.
fn is_same(text: &[u8], alias: &Range<usize>, token: Token) -> bool {
    let bare = |name: &[u8]| -> Vec<u8> {
        let quotes = [b'`', b'"', b'\''];
        name.iter()
            .copied()
            .filter(|byte| !quotes.contains(byte))
            .collect()
    };
    let (alias, name) = (
        bare(text.get(alias.clone()).unwrap_or_default()),
        bare(token.of(text)),
    );
    !alias.is_ascii() || !name.is_ascii() || alias.eq_ignore_ascii_case(&name)
}

impl Behind {
    fn text(&mut self, token: Token) {
        self.parts.push(Part::Text(token.start..token.end));
    }
}
