//! A key that a query takes out of a column, or out of `*`. Whether each row brings one, the text does not say.
//!
//! The server is asked what the query's result is, and says of which type the key is. Where a 0 is a key (`NO_AUTO_VALUE_ON_ZERO`), an
//! integer that is not NULL is one always: tools that copy tables row by row work like that (pt-online-schema-change, gh-ost). Where a 0
//! asks for a key, the statement is changed so that it fails for a row that has 0 or NULL.

use std::ops::Range;

use crate::lex::builtins::is_prefix_operator;
use crate::lex::cursor::Cursor;
use crate::lex::quote::quote_name;
use crate::lex::token::Kind;
use crate::modes::Modes;
use crate::plan::key_column::KeyColumn;
use crate::plan::row_sites::KeyPosition;
use crate::plan::select_plan::Edit;
use crate::read::insert::{Insert, Source};
use crate::read::key_wanted::KeyForm;
use crate::read::query::clause::{Clause, Clauses};
use crate::read::query::outline::{Item, Outline, Tail};
use crate::refusal::{KeyExpression, SelectConstruct, Unread, Unsupported};
use crate::splice::out_of_range::NO_KEY;

/// What the server says of a column of a query's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name, in the client's character set.
    pub name: Vec<u8>,
    /// It holds integers.
    pub is_integer: bool,
    /// It is never NULL.
    pub is_not_null: bool,
}

/// Clauses by which columns of the select list are columns of the query, or must be: another expression in place of one could be refused.
const GROUPING: Clauses = Clauses::of(&[
    Clause::Distinct,
    Clause::GroupBy,
    Clause::Having,
    Clause::Window,
    Clause::Aggregate,
]);

/// Whether a column may be computed as often as a guard names it, and nothing is left behind where that makes the statement fail. `begin`: where the
/// query begins.
fn may_be_guarded(outline: &Outline, begin: Cursor<'_>) -> bool {
    !outline.has_effects && begin.is_steady(outline.end).unwrap_or(false)
}

/// How a query brings keys.
pub(super) enum Brought {
    /// It may not.
    NotSo,
    /// Every row has one.
    Always,
    /// With these changes it fails for a row that has none.
    Guarded(Vec<Edit>),
}

impl Insert {
    /// The statement's query, if what the server says of its result may decide that every row brings its key.
    pub fn query_to_ask(
        &self,
        text: &[u8],
        modes: &Modes,
        key: &KeyColumn<'_>,
    ) -> Option<Range<usize>> {
        if self.source != Source::Query || key.form != KeyForm::Integer {
            return None;
        }
        let place = self.place(text, key).ok()?;
        let mut cursor = Cursor::new(text, modes);
        (cursor.at, cursor.inside) = (self.rows, self.inside);
        let outline = cursor.outline().ok()?;
        let may_bring = self.may_bring_keys(&outline, place, (text, modes), key);
        may_bring.then_some(outline.start..outline.end)
    }

    /// Whether the key stands for a column of the query, in a query whose rows are those that it reads.
    fn may_bring_keys(
        &self,
        outline: &Outline,
        place: KeyPosition,
        (text, modes): (&[u8], &Modes),
        key: &KeyColumn<'_>,
    ) -> bool {
        let (KeyPosition::At { index, .. }, Some(zero_is_key), [items]) =
            (place, modes.no_auto_value_on_zero, outline.parts.as_slice())
        else {
            return false;
        };
        let is_plain = key.form == KeyForm::Integer
            && outline.tail == Tail::None
            && !outline.clauses.has(Clause::Rollup)
            && (zero_is_key || !outline.clauses.has_any(GROUPING));
        let cursor = Cursor::new(text, modes);
        let is_column = match outline.given(index, cursor, self.wanted(modes, key)) {
            Err(Unread::Unsupported(Unsupported::SelectWith(SelectConstruct::KeysOfStar))) => true,
            Err(Unread::Unsupported(Unsupported::Key(KeyExpression::Column))) if zero_is_key => {
                true
            }
            Err(Unread::Unsupported(Unsupported::Key(_))) => {
                let item = items.get(index);
                item.is_some_and(|item| cursor.column_end(*item).is_some())
            }
            Err(_) | Ok(_) => false,
        };
        let begin = Cursor {
            at: outline.start,
            ..cursor
        };
        // What cannot be read brings nothing.
        let has_type =
            is_plain && is_column && !begin.has_table_parameter(outline.end).unwrap_or(true);
        // Where 0 is a key nothing is computed but what the client wrote.
        has_type && (zero_is_key || may_be_guarded(outline, begin))
    }

    /// How the query brings keys, by what the server says of its result.
    pub(super) fn brings_keys(
        &self,
        outline: &Outline,
        place: KeyPosition,
        (text, modes): (&[u8], &Modes),
        key: &KeyColumn<'_>,
        columns: &[ResultColumn],
    ) -> Brought {
        let KeyPosition::At { index, values } = place else {
            return Brought::NotSo;
        };
        if values != columns.len() || !self.may_bring_keys(outline, place, (text, modes), key) {
            return Brought::NotSo;
        }
        let column = columns.get(index).filter(|column| column.is_integer);
        match (column, modes.no_auto_value_on_zero) {
            (Some(column), Some(true)) if column.is_not_null => Brought::Always,
            (Some(_), Some(false)) => {
                let care = self.wanted(modes, key).behind_first().care;
                let against = match care.is_signed || care.is_strict {
                    true => NoKey::ZERO,
                    false => NoKey::NOT_POSITIVE,
                };
                let guard = outline.guard(index, Cursor::new(text, modes), columns, against);
                guard.map_or(Brought::NotSo, |edit| Brought::Guarded(vec![edit]))
            }
            (Some(_) | None, _) => Brought::NotSo,
        }
    }
}

impl Outline {
    /// The change that makes the query fail for a row without a key. `None`: it cannot be told where the key stands.
    fn guard(
        &self,
        index: usize,
        cursor: Cursor<'_>,
        columns: &[ResultColumn],
        against: NoKey,
    ) -> Option<Edit> {
        let [items] = self.parts.as_slice() else {
            return None;
        };
        let mut stars = items.iter().enumerate().filter(|(_, item)| item.star);
        let star = stars.next();
        if stars.next().is_some() {
            return None;
        }
        let (at, item, width) = match star {
            None => return cursor.guard_column(*items.get(index)?, against),
            Some((at, item)) => (at, item, (columns.len() + 1).checked_sub(items.len())?),
        };
        let within = index.checked_sub(at).filter(|within| *within < width);
        match within {
            Some(within) => cursor.guard_star(*item, within, columns.get(at..at + width)?, against),
            None if index < at => cursor.guard_column(*items.get(index)?, against),
            None => cursor.guard_column(*items.get((index + 1).checked_sub(width)?)?, against),
        }
    }
}

impl Cursor<'_> {
    /// Where the name of a column ends that an item is, with or without an alias. `None`: it is something else.
    fn column_end(mut self, item: Item) -> Option<usize> {
        self.at = item.start;
        let first = self.peek().ok()?;
        if first.kind == Kind::Word && is_prefix_operator(first.of(self.text)) {
            return None;
        }
        self.path().ok()?;
        let end = self.at;
        if end < item.end {
            self.accept("AS").ok()?;
            let alias = self.token().ok()?;
            let is_alias = matches!(alias.kind, Kind::Word | Kind::Name | Kind::Text);
            (is_alias && self.at == item.end).then_some(())?;
        }
        Some(end)
    }

    /// Of a column that is named.
    fn guard_column(self, item: Item, against: NoKey) -> Option<Edit> {
        let end = self.column_end(item)?;
        let column = self.text.get(item.start..end)?;
        // A comment in it could count.
        memchr::memmem::find(column, b"/*")
            .is_none()
            .then_some(())?;
        let mut before = Vec::new();
        write_guard(column, against, &mut before);
        Some(Edit {
            start: item.start,
            end,
            before,
            key: false,
            after: Vec::new(),
        })
    }

    /// Of one of the columns that a `*` or `t.*` stands for: all of them are named.
    fn guard_star(
        self,
        item: Item,
        within: usize,
        columns: &[ResultColumn],
        against: NoKey,
    ) -> Option<Edit> {
        let written = self.text.get(item.start..item.end)?;
        let qualifier = written.strip_suffix(b"*")?;
        memchr::memmem::find(qualifier, b"/*")
            .is_none()
            .then_some(())?;
        let mut before = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let mut others = columns.iter().enumerate();
            let is_twice =
                others.any(|(other, it)| other != at && it.name.eq_ignore_ascii_case(&column.name));
            if is_twice || column.name.is_empty() || !column.name.is_ascii() {
                return None;
            }
            if at > 0 {
                before.push(b',');
            }
            let mut named = qualifier.to_vec();
            quote_name(&column.name, &mut named);
            match at == within {
                true => write_guard(&named, against, &mut before),
                false => before.extend_from_slice(&named),
            }
        }
        Some(Edit {
            start: item.start,
            end: item.end,
            before,
            key: false,
            after: Vec::new(),
        })
    }
}

/// Which numbers are no keys, as comparisons: that a number is one, and that it is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoKey {
    is_key: &'static [u8],
    is_none: &'static [u8],
}

impl NoKey {
    pub(super) const ZERO: Self = Self {
        is_key: b"<>0",
        is_none: b"=0",
    };
    /// Where a column may be UNSIGNED that the server would store 0 in for a number below.
    const NOT_POSITIVE: Self = Self {
        is_key: b">0",
        is_none: b"<=0",
    };
}

/// Appends a column, or a number out of range where it is no key or NULL.
pub(super) fn write_guard(column: &[u8], against: NoKey, out: &mut Vec<u8>) {
    for part in [
        b"CASE WHEN ",
        column,
        against.is_key,
        b" THEN ",
        column,
        // Beside a constant, an unsigned column could make it a DECIMAL, which is never out of range. By the number in front the error is
        // known, whatever of it is cut off.
        b" ELSE ",
        NO_KEY.as_bytes(),
        b"*(",
        column,
        b" IS NULL OR ",
        column,
        against.is_none,
        b")*",
        NO_KEY.as_bytes(),
        b" END",
    ] {
        out.extend_from_slice(part);
    }
}
