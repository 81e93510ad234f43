//! A second reader of queries whose rows are inserted. A key that is given is passed on as it is, so a part of a query that was
//! overlooked, or rows that a ROLLUP adds, would get keys of the server's own. What both readers see alike is taken; where they
//! differ the statement is refused. What this one cannot read, which is much of both servers' grammar, is left to the first.

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableFactor, TableWithJoins, UnaryOperator,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind, Token};
use crate::modes::Modes;
use crate::read::insert::{Insert, Source};
use crate::read::never_null::may_be_known;
use crate::read::query::clause::{Clause, Clauses};
use crate::read::query::outline::{Item, Limit, Outline};
use crate::refusal::Unread;

/// Longer queries are not read again, tokens: what this reader makes of them nests as deep as they are long.
const TOKENS_MAX: usize = 2_000;
/// Nor are those that nest deeper than so many parentheses, of which some take twice the time for each.
const DEPTH_MAX: usize = 12;
/// Bytes above 0x7F become characters from here on, so that nothing of the text is lost.
const PRIVATE_USE: u32 = 0xE000;

/// What a second reader makes of the query whose rows are inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondReading(Option<Shape>);

/// How two readings of a query compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Agrees,
    Differs,
    /// There is only one.
    Alone,
}

/// The outline of a query. Of a union it has what any part has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Shape {
    parts: Vec<Vec<Listed>>,
    /// Those of [`ALIKE`] and [`NO_MORE`].
    clauses: Clauses,
    is_limited: bool,
}

/// Clauses that both readers are to see, or neither.
const ALIKE: Clauses = Clauses::of(&[
    Clause::With,
    Clause::Distinct,
    Clause::From,
    Clause::GroupBy,
    Clause::Having,
    Clause::OrderBy,
]);

/// Clauses that the first reader may see where there are none, and is not to overlook.
const NO_MORE: Clauses = Clauses::of(&[Clause::Rollup, Clause::Window]);

/// An item of a select list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    Constant,
    /// A string behind the name of its character set, or a call of a function that makes a value.
    Made,
    Star,
    Other,
}

impl Insert {
    /// Reads the query again with another reader. Only [`Insert::plan_query`] needs that.
    pub fn read_again(&self, text: &[u8], modes: &Modes) -> SecondReading {
        SecondReading(match self.source {
            Source::Query => shape(self, text, modes),
            Source::Values | Source::Rows | Source::Set => None,
        })
    }
}

fn shape(insert: &Insert, text: &[u8], modes: &Modes) -> Option<Shape> {
    let mut cursor = Cursor::new(text, modes);
    (cursor.at, cursor.inside) = (insert.rows, insert.inside);
    let query = cursor.query_for_another().ok()??;
    let mut parser = Parser::new(&MySqlDialect {}).try_with_sql(&query).ok()?;
    let query = parser.parse_query().ok()?;
    let has_ended = parser.peek_token_ref().token == sqlparser::tokenizer::Token::EOF;
    // What has something strange in it is like nothing.
    has_ended.then(|| Shape::of(&query).unwrap_or_default())
}

impl Cursor<'_> {
    /// The query from here on, without the statement's tail, as text for a reader that knows of no modes; `None`: too long.
    fn query_for_another(mut self) -> Result<Option<String>, Unread> {
        let mut written = Written::default();
        let mut depth = 0_usize;
        let mut count = 0;
        loop {
            let before = self.at;
            let token = self.token()?;
            match token.kind {
                Kind::End => break,
                Kind::Mark(b';') if depth == 0 => break,
                Kind::Mark(b'(') => depth += 1,
                Kind::Mark(b')') => depth = depth.saturating_sub(1),
                Kind::Word
                    if depth == 0 && token.is(self.text, "ON") && self.at_duplicate_key()? =>
                {
                    break;
                }
                _ => {}
            }
            count += 1;
            if count > TOKENS_MAX || depth > DEPTH_MAX {
                return Ok(None);
            }
            let gap = self.text.get(before..token.start).unwrap_or_default();
            written.gap(gap, self.inside);
            written.token(token, &self);
        }
        Ok(Some(written.text))
    }
}

#[derive(Default)]
struct Written {
    text: String,
}

impl Written {
    /// What stands between two tokens: another reader is to find the end of a comment by itself.
    fn gap(&mut self, gap: &[u8], inside: bool) {
        match inside || gap.windows(3).any(|part| part == b"/*!") {
            // Which of these count depends on the server.
            true => self.text.push(' '),
            false => self.bytes(gap),
        }
    }

    fn token(&mut self, token: Token, cursor: &Cursor<'_>) {
        let modes = cursor.modes;
        match token.kind {
            Kind::Text if modes.no_backslash_escapes || modes.ansi_quotes => {
                self.text.push_str("'x'")
            }
            Kind::Name if modes.ansi_quotes => self.text.push_str("`x`"),
            _ => self.bytes(token.of(cursor.text)),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let char_of = |byte: &u8| match byte.is_ascii() {
            true => Some(char::from(*byte)),
            false => char::from_u32(PRIVATE_USE + u32::from(*byte)),
        };
        self.text.extend(bytes.iter().filter_map(char_of));
    }
}

impl Shape {
    /// None if there is something in it that neither server knows.
    fn of(query: &Query) -> Option<Self> {
        let mut shape = Self {
            is_limited: query.limit_clause.is_some() || query.fetch.is_some(),
            ..Self::default()
        };
        let is_with = query.with.is_some();
        shape.clauses.insert_if(Clause::With, is_with);
        let is_ordered = query.order_by.is_some();
        shape.clauses.insert_if(Clause::OrderBy, is_ordered);
        let is_strange = query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty();
        if is_strange {
            return None;
        }
        let mut rest = vec![query.body.as_ref()];
        while let Some(part) = rest.pop() {
            match part {
                SetExpr::Select(select) => shape.add(select)?,
                SetExpr::SetOperation { left, right, .. } => rest.extend([right.as_ref(), left]),
                // A whole query in parentheses; beside others the first reader refuses it.
                SetExpr::Query(inner) if rest.is_empty() && shape.parts.is_empty() && !is_with => {
                    let outer = shape;
                    shape = Self::of(inner)?;
                    shape.clauses.add(outer.clauses);
                    shape.is_limited |= outer.is_limited;
                }
                _ => return Some(Self::default()),
            }
        }
        Some(shape)
    }

    fn add(&mut self, select: &Select) -> Option<()> {
        let is_strange = select.top.is_some()
            || select.exclude.is_some()
            || select.prewhere.is_some()
            || select.value_table_mode.is_some()
            || !select.lateral_views.is_empty()
            || !select.connect_by.is_empty()
            || !select.cluster_by.is_empty()
            || !select.distribute_by.is_empty()
            || !select.sort_by.is_empty();
        if is_strange {
            return None;
        }
        let (grouped, rollup) = match &select.group_by {
            GroupByExpr::All(_) => return None,
            GroupByExpr::Expressions(by, modifiers) => (
                !by.is_empty(),
                !modifiers.is_empty() || by.iter().any(is_rollup),
            ),
        };
        let is_distinct = !matches!(select.distinct, None | Some(Distinct::All));
        let is_from =
            !matches!(select.from.as_slice(), [] | [_]) || select.from.iter().any(is_table);
        let is_window = !select.named_window.is_empty()
            || select.qualify.is_some()
            || select.projection.iter().any(has_window);
        for (clause, is_there) in [
            (Clause::GroupBy, grouped),
            (Clause::Rollup, rollup),
            (Clause::Distinct, is_distinct),
            (Clause::Having, select.having.is_some()),
            (Clause::From, is_from),
            (Clause::Window, is_window),
        ] {
            self.clauses.insert_if(clause, is_there);
        }
        self.parts
            .push(select.projection.iter().map(listed).collect());
        Some(())
    }
}

/// Whether it is anything but DUAL.
fn is_table(table: &TableWithJoins) -> bool {
    let is_dual = match &table.relation {
        TableFactor::Table { name, .. } => name.to_string().eq_ignore_ascii_case("dual"),
        _ => false,
    };
    !is_dual || !table.joins.is_empty()
}

fn is_rollup(by: &Expr) -> bool {
    match by {
        Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) => true,
        Expr::Function(function) => {
            let name = function.name.to_string();
            ["rollup", "cube"]
                .iter()
                .any(|known| known.eq_ignore_ascii_case(&name))
        }
        _ => false,
    }
}

fn has_window(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(Expr::Function(function))
        | SelectItem::ExprWithAlias {
            expr: Expr::Function(function),
            ..
        } => function.over.is_some(),
        _ => false,
    }
}

fn listed(item: &SelectItem) -> Listed {
    match item {
        SelectItem::Wildcard(_)
        | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), _) => {
            Listed::Star
        }
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            match (is_constant(expr), is_made(expr)) {
                (true, _) => Listed::Constant,
                (false, true) => Listed::Made,
                (false, false) => Listed::Other,
            }
        }
        _ => Listed::Other,
    }
}

fn is_constant(mut expr: &Expr) -> bool {
    loop {
        expr = match expr {
            Expr::Value(_) => return true,
            Expr::Nested(inner)
            | Expr::UnaryOp {
                op: UnaryOperator::Minus | UnaryOperator::Plus,
                expr: inner,
            } => inner,
            // What this crate writes: LAST_INSERT_ID(7), and LAST_INSERT_ID(7)+1.
            Expr::BinaryOp { left, .. } => left,
            Expr::Function(function) => {
                return function
                    .name
                    .to_string()
                    .eq_ignore_ascii_case("last_insert_id");
            }
            _ => return false,
        }
    }
}

fn is_made(mut expr: &Expr) -> bool {
    while let Expr::Nested(inner) = expr {
        expr = inner.as_ref();
    }
    match expr {
        Expr::Prefixed { .. } => true,
        Expr::Function(function) => may_be_known(&function.name.to_string()),
        _ => false,
    }
}

impl SecondReading {
    /// Whether the first reader agrees.
    pub(crate) fn compare(&self, first: &Outline) -> Comparison {
        let Some(shape) = &self.0 else {
            return Comparison::Alone;
        };
        let is_alike = |part: &Vec<Listed>, items: &Vec<Item>| {
            part.len() == items.len()
                && part
                    .iter()
                    .zip(items)
                    .all(|(listed, item)| (*listed == Listed::Star) == item.star)
        };
        let is_same = shape.parts.len() == first.parts.len()
            && shape
                .parts
                .iter()
                .zip(&first.parts)
                .all(|(part, items)| is_alike(part, items))
            && shape.is_limited == (first.limit != Limit::None)
            && shape.clauses.among(ALIKE) == first.clauses.among(ALIKE)
            && first.clauses.has_all(shape.clauses.among(NO_MORE));
        match is_same {
            true => Comparison::Agrees,
            false => Comparison::Differs,
        }
    }

    /// Whether the item at an index is a constant in all parts, as far as it was read.
    pub(crate) fn has_constant(&self, index: usize) -> bool {
        self.has_one_of(&[Listed::Constant], index)
    }

    /// The same of what may be a value that is made of nothing else.
    pub(crate) fn has_value(&self, index: usize) -> bool {
        self.has_one_of(&[Listed::Constant, Listed::Made], index)
    }

    fn has_one_of(&self, wanted: &[Listed], index: usize) -> bool {
        let parts = self.0.iter().flat_map(|shape| &shape.parts);
        parts
            .map(|part| part.get(index))
            .all(|item| item.is_some_and(|item| wanted.contains(item)))
    }
}

#[cfg(test)]
mod tests;
