//! INSERT … SELECT: each row's key is computed by the server out of the first key and the row's number.
//!
//! Tried on MariaDB 10.11 and MySQL 9.7 with statements of many shapes, whose rows get their keys in the order in which
//! native auto-increment gives them, and whose other values stay what they are:
//! - A query of at most one row gets the key as a literal behind its select list.
//! - MariaDB's ROWNUM() and MySQL's ROW_NUMBER() OVER () behind the select list number rows as they are read. That is
//!   the order of insertion where nothing sorts, groups, unites or leaves out rows afterwards.
//! - Otherwise the query as it stands becomes a table of WITH, and the rows of that are numbered. Its rows are held in a
//!   temporary table, which changes some computed values: those are refused.
//!
//! How many rows there will be is not known. A row beyond the keys makes the statement fail, with an error that cannot
//! be softened by sql_mode or IGNORE: a number out of range. It may then be tried again with more keys.

use crate::lex::cursor::Cursor;
use crate::lex::scan::Scanned;
use crate::lex::token::Kind;
use crate::modes::{Flavour, Modes};
use crate::plan::insert_plan::LastInsertId;
use crate::plan::key_column::{KeyColumn, all_listed, full_list, listed};
use crate::plan::query_columns::{Brought, ResultColumn};
use crate::plan::row_sites::KeyPosition;
use crate::plan::select_plan::{Counter, QueryPlan, Spread};
use crate::plan::site::site_kind;
use crate::plan::table_of_with::Query;
use crate::read::insert::{Columns, Insert, Source};
use crate::read::key_wanted::{KeyForm, Value, Wanted};
use crate::read::query::clause::Clause;
use crate::read::query::cross_check::{Comparison, SecondReading};
use crate::read::query::outline::{Item, Outline, Tail, with};
use crate::refusal::{KeyExpression, SelectConstruct, Unread, Unsupported};

/// What a query gives as key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    value: Value,
    /// Because of what sql_mode is.
    by_mode: bool,
    start: usize,
    end: usize,
    /// Nothing but digits.
    is_plain: bool,
    /// A key of the application's own in which a function is called.
    is_call: bool,
}

impl Given {
    /// By each row of a query of columns, whose result is known to have keys.
    fn brought(outline: &Outline) -> Self {
        Self {
            value: Value::Explicit,
            by_mode: true,
            start: outline.start,
            end: outline.start,
            is_plain: false,
            is_call: false,
        }
    }

    /// Whether it is a key of the application's own that is no number.
    fn is_own(self, form: KeyForm) -> bool {
        form != KeyForm::Integer && self.value == Value::Explicit
    }
}

impl Insert {
    /// Decides how the rows of a query get their keys. `second` is [`Insert::read_again`] of the same text, `columns` what the server says
    /// of the result of [`Insert::query_to_ask`].
    ///
    /// # Errors
    /// [`Unread::Unsupported`] for what cannot be done exactly; [`Unread::Refused`] for what the server refuses by itself.
    pub fn plan_query(
        &self,
        text: &[u8],
        modes: &Modes,
        key: &KeyColumn<'_>,
        second: &SecondReading,
        columns: Option<&[ResultColumn]>,
    ) -> Result<QueryPlan, Unread> {
        self.may_get_keys(key)?;
        let mut cursor = Cursor::new(text, modes);
        (cursor.at, cursor.inside) = (self.rows, self.inside);
        let mut seen = Scanned::default();
        let (rows, mut ahead) = (cursor, cursor);
        ahead.skip_statement(&mut seen)?;
        let outline = cursor.outline()?;
        if ahead.set_var {
            return Err(Unsupported::SetVar.into());
        }
        let place = self.place(text, key)?;
        let another = second.compare(&outline);
        if another == Comparison::Differs {
            return with(SelectConstruct::ReadOtherwise);
        }
        let brought =
            columns.map(|columns| self.brings_keys(&outline, place, (text, modes), key, columns));
        let (brings_keys, guard) = match brought {
            None | Some(Brought::NotSo) => (false, Vec::new()),
            Some(Brought::Always) => (true, Vec::new()),
            Some(Brought::Guarded(edits)) => (true, edits),
        };
        let mut wanted = self.wanted(modes, key);
        wanted.care.is_strict &= !seen.calls;
        let found = match brings_keys {
            true => Some(Given::brought(&outline)),
            false => outline.found(place, Cursor::new(text, modes), wanted, second)?,
        };
        let is_behind_columns = !matches!(self.columns, Columns::Absent { .. });
        let behind = match self.columns.are_listed() {
            true => outline.computed_behind(Cursor::new(text, modes), &self.head.table.table),
            false => Vec::new(),
        };
        let spread = outline.spread(modes.server.flavour, is_behind_columns, &behind);
        let spread = match found.is_some_and(|given| given.is_own(key.form)) {
            // Nothing is put into it, whatever its shape.
            true => spread.unwrap_or(Spread::Around),
            false => spread?,
        };
        let mut plan = self.plan_without_edits(&outline, (spread, found), key, &seen);
        plan.by_order |= brings_keys;
        let span = match found {
            None => None,
            Some(given) => match outline.asking(given, another, modes, plan.spread)? {
                Some(span) => Some(span),
                None => {
                    plan.explicit = true;
                    plan.edits = guard;
                    plan.by_mode |= given.value == Value::Zero;
                    return Ok(plan);
                }
            },
        };
        outline.takes_keys(plan.spread, modes.server.flavour, rows)?;
        let parentheses = outline.left_out(plan.spread, modes.server.flavour, is_behind_columns);
        let query = Query {
            outline: &outline,
            text,
            behind: &behind,
        };
        self.put(query, span, (place, parentheses), key, modes, &mut plan)?;
        plan.part_from(text);
        if let Some(at) = plan.key_at().filter(|_| seen.parameters > 0) {
            plan.parameters_before = rows.parameters_before(at)?;
        }
        Ok(plan)
    }

    /// Whether keys can be put into a query of it, before that is read.
    fn may_get_keys(&self, key: &KeyColumn<'_>) -> Result<(), Unread> {
        if self.source != Source::Query {
            return Err(Unread::Refused);
        }
        if !key.name.is_ascii() || key.name.is_empty() {
            return Err(Unsupported::KeyName.into());
        }
        if self.head.analyze || self.head.delayed {
            return with(SelectConstruct::AnalyzeOrDelayed);
        }
        Ok(())
    }

    /// What is known of it before its text is changed.
    fn plan_without_edits(
        &self,
        outline: &Outline,
        (spread, found): (Spread, Option<Given>),
        key: &KeyColumn<'_>,
        seen: &Scanned,
    ) -> QueryPlan {
        QueryPlan {
            edits: Vec::new(),
            counter: None,
            spread,
            explicit: false,
            rows_max: outline.rows_max(),
            effects: outline.has_effects || seen.calls,
            // Never by the server itself: a failed try must leave nothing behind.
            last_insert_id: match key.form {
                KeyForm::Text | KeyForm::Bytes => LastInsertId::None,
                KeyForm::Integer => LastInsertId::Literal,
            },
            on_duplicate: outline.tail != Tail::None,
            ignore: self.head.ignore,
            for_zero: found.is_some_and(|given| given.value == Value::Zero),
            by_mode: found.is_some_and(|given| given.by_mode),
            by_order: self.needs_columns(),
            parameters: seen.parameters,
            parameters_before: 0,
        }
    }

    /// Finds the changes of the text. `span` is where a value stands that asks for a key.
    fn put(
        &self,
        query: Query<'_>,
        span: Option<(usize, usize)>,
        (place, parentheses): (KeyPosition, Option<(usize, usize)>),
        key: &KeyColumn<'_>,
        modes: &Modes,
        plan: &mut QueryPlan,
    ) -> Result<(), Unread> {
        let outline = query.outline;
        if plan.spread != Spread::One {
            if modes.server.version < numbered_from(modes.server.flavour) {
                return with(SelectConstruct::Unnumbered);
            }
            if key.form != KeyForm::Integer {
                return with(SelectConstruct::KeysNoNumbers);
            }
            plan.counter = Some(match modes.server.flavour {
                Flavour::MariaDb => Counter::RowNum,
                Flavour::MySql => Counter::RowNumber,
            });
        }
        let absent = matches!(place, KeyPosition::Absent { .. });
        match &self.columns {
            Columns::Absent { at } => {
                plan.text(*at, full_list(key.name, key.live, absent, true));
            }
            Columns::Empty { at } => {
                plan.text(*at, all_listed(key.name, key.live, absent, true));
            }
            Columns::Listed { end, .. } if absent => {
                plan.text(*end, listed(key.name, true));
            }
            Columns::Listed { .. } => {}
        }
        if let Some((outermost, _)) = parentheses {
            plan.without(outermost, outline.start);
        }
        match (plan.spread, span) {
            (Spread::Around, _) => query.put_around(place, modes.server.flavour, plan)?,
            (Spread::One | Spread::Inside, Some((start, end))) => {
                plan.key(start, end, b"", b"");
            }
            (Spread::One | Spread::Inside, None) => {
                let end = outline.list_end();
                plan.key(end, end, b",", b"");
            }
        }
        if let Some((_, behind)) = parentheses {
            plan.without(outline.end, behind);
        }
        Ok(())
    }
}

/// The first version with ROWNUM(), or with ROW_NUMBER() and WITH.
fn numbered_from(flavour: Flavour) -> u32 {
    match flavour {
        Flavour::MariaDb => 100_601,
        Flavour::MySql => 80_002,
    }
}

impl Outline {
    /// The item at an index of the select list, before which no item may stand for several columns.
    fn item(items: &[Item], index: usize) -> Result<Item, Unread> {
        let before = items.get(..=index);
        match before.and_then(<[Item]>::split_last) {
            Some((item, before)) if !item.star && before.iter().all(|item| !item.star) => Ok(*item),
            Some(_) => with(SelectConstruct::KeysOfStar),
            None if items.iter().any(|item| item.star) => with(SelectConstruct::KeysOfStar),
            None => Err(Unread::Refused),
        }
    }

    /// That keys can be put into it. `rows` is where it begins.
    fn takes_keys(&self, spread: Spread, flavour: Flavour, rows: Cursor<'_>) -> Result<(), Unread> {
        // Its answer does not tell LAST_INSERT_ID().
        if self.tail == Tail::OnDuplicateReturning {
            return with(SelectConstruct::Returning);
        }
        if spread == Spread::Inside
            && flavour == Flavour::MariaDb
            && rows.sorts_computed_within()?
        {
            return with(SelectConstruct::ComputedWithin);
        }
        Ok(())
    }

    /// Where the value stands that asks for a key; `None`: each row brings its own.
    fn asking(
        &self,
        given: Given,
        another: Comparison,
        modes: &Modes,
        spread: Spread,
    ) -> Result<Option<(usize, usize)>, Unread> {
        let is_rollup = self.clauses.has(Clause::Rollup);
        let is_union = self.clauses.has(Clause::Union);
        let is_proved = !is_rollup && (another == Comparison::Agrees || !is_union);
        // The row of a ROLLUP may have NULL where the key is written. MariaDB makes 0 of it, or an error.
        let is_lost =
            is_rollup && (spread != Spread::Around || modes.server.flavour == Flavour::MariaDb);
        match (
            site_kind(given.value, modes.no_auto_value_on_zero),
            given.value,
        ) {
            (_, Value::Zero) if modes.no_auto_value_on_zero.is_none() => {
                Err(Unsupported::ZeroAmbiguous.into())
            }
            (_, Value::Parameter) => with(SelectConstruct::ParameterKey),
            (None, _) if !is_proved => with(SelectConstruct::UnprovedKey),
            (None, _) => Ok(None),
            (Some(_), _) if is_lost => with(SelectConstruct::RollupOverKeys),
            (Some(_), _) => Ok(Some((given.start, given.end))),
        }
    }

    /// What is given as key, as both readings of the query have it; `None`: nothing stands there.
    fn found(
        &self,
        place: KeyPosition,
        cursor: Cursor<'_>,
        wanted: Wanted<'_>,
        second: &SecondReading,
    ) -> Result<Option<Given>, Unread> {
        let KeyPosition::At { index, .. } = place else {
            return Ok(None);
        };
        let given = self.given(index, cursor, wanted)?;
        let is_seen = match wanted.form {
            KeyForm::Integer => second.has_constant(index),
            KeyForm::Text | KeyForm::Bytes => second.has_value(index),
        };
        match is_seen {
            // Where no row is found it may come to NULL.
            true if given.is_call && self.may_be_one_group(cursor)? => {
                with(SelectConstruct::UnprovedKey)
            }
            true => Ok(Some(given)),
            false => with(SelectConstruct::ReadOtherwise),
        }
    }

    /// What is given as key, once it is known to be of one kind in all parts.
    pub(super) fn given(
        &self,
        index: usize,
        cursor: Cursor<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Given, Unread> {
        let mut parts = Vec::with_capacity(self.parts.len());
        for items in &self.parts {
            parts.push(cursor.given(Self::item(items, index)?, wanted)?);
        }
        match parts.as_slice() {
            [given] => Ok(*given),
            // Values of other kinds may become others beside each other.
            [first, ..]
                if parts
                    .iter()
                    .all(|part| part.is_plain && part.value == Value::Explicit) =>
            {
                Ok(*first)
            }
            _ => with(SelectConstruct::UnionOverKeys),
        }
    }
}

impl Cursor<'_> {
    /// How many parameters stand between here and a place in the text.
    fn parameters_before(mut self, at: usize) -> Result<u32, Unread> {
        let mut count = 0;
        loop {
            let token = self.token()?;
            if token.kind == Kind::End || token.start >= at {
                return Ok(count);
            }
            count += u32::from(token.kind == Kind::Parameter);
        }
    }

    /// What a query gives as key, and where that stands without its alias.
    fn given(mut self, item: Item, wanted: Wanted<'_>) -> Result<Given, Unread> {
        self.at = item.start;
        let (mut seen, mut is_call) = (Scanned::default(), false);
        let value = match self.behind_own_key(wanted.form)? {
            Some(behind) => {
                is_call = self.has_call(behind.at)?;
                self = behind;
                Value::Explicit
            }
            None => match self.constant(wanted, &mut seen) {
                Ok(value) => value,
                Err(Unread::Refused) => {
                    return Err(Unsupported::Key(KeyExpression::Operator).into());
                }
                Err(other) => return Err(other),
            },
        };
        let end = self.at;
        if self.at < item.end {
            self.accept("AS")?;
            let alias = self.token()?;
            let is_alias = matches!(alias.kind, Kind::Word | Kind::Name | Kind::Text);
            if !is_alias || self.at != item.end {
                return Err(Unsupported::Key(KeyExpression::Operator).into());
            }
        }
        let written = self.text.get(item.start..end).unwrap_or_default();
        Ok(Given {
            value,
            by_mode: seen.by_mode,
            start: item.start,
            end,
            is_plain: written.iter().all(u8::is_ascii_digit),
            is_call,
        })
    }
}
