//! An INSERT or REPLACE up to its first row.

use crate::lex::cursor::Cursor;
use crate::lex::name::NameSpan;
use crate::lex::token::Kind;
use crate::modes::{CharsetClass, Flavour, Modes};
use crate::read::insert_head::InsertHead;
use crate::refusal::{Unread, Unsupported};

/// An INSERT or REPLACE read up to its first row. The rows are walked once, by [`Insert::plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    pub(crate) head: InsertHead,
    pub(crate) columns: Columns,
    pub(crate) source: Source,
    /// Where the rows, or the assignments, start.
    pub(crate) rows: usize,
    pub(crate) inside: bool,
    pub(crate) set_var: bool,
    /// No columns are listed, and the first row has no values.
    first_row_empty: bool,
    /// The rows have no values, and an alias, by which all columns may be named.
    pub(crate) names_empty_rows: bool,
}

/// The column list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Columns {
    /// None; one could be put at this offset.
    Absent { at: usize },
    /// `()`, which names all columns where there are values, as no list does; the offset behind `(`.
    Empty { at: usize },
    /// `(a, b)`: the names, and the offsets behind `(` and before `)`.
    Listed {
        names: Vec<NameSpan>,
        at: usize,
        end: usize,
    },
}

impl Columns {
    /// Whether it says which columns the values are for.
    pub(crate) fn are_listed(&self) -> bool {
        match self {
            Self::Absent { .. } | Self::Empty { .. } => false,
            Self::Listed { .. } => true,
        }
    }
}

/// Where the values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// `VALUES (…), (…)`.
    Values,
    /// MySQL's `VALUES ROW(…), ROW(…)`.
    Rows,
    /// `SET a = 1`.
    Set,
    /// `SELECT …`, `WITH … SELECT …`, perhaps in parentheses.
    Query,
}

impl Insert {
    /// Reads on from the table's name.
    ///
    /// # Errors
    /// [`Unread::Unsupported`] for rows out of `TABLE` and other constructs; [`Unread::Refused`] when the text ends too early.
    pub fn read(head: InsertHead, text: &[u8], modes: &Modes) -> Result<Self, Unread> {
        if let Some(forbidden) = head.forbidden {
            return Err(forbidden.into());
        }
        let mut cursor = Cursor::new(text, modes);
        (cursor.at, cursor.inside, cursor.set_var) = (head.end, head.inside, head.set_var);
        if cursor.accept("PARTITION")? {
            cursor.skip_parentheses()?;
        }
        let columns = cursor.columns()?;
        let source = cursor.source()?;
        if source == Source::Set && !matches!(columns, Columns::Absent { .. }) {
            return Err(Unread::Refused);
        }
        if cursor.set_var {
            return Err(Unsupported::SetVar.into());
        }
        let first_row_empty = !columns.are_listed()
            && matches!(source, Source::Values | Source::Rows)
            && cursor.at_empty_row()?;
        let names_empty_rows = first_row_empty && cursor.at_empty_rows_with_alias()?;
        Ok(Self {
            head,
            columns,
            source,
            rows: cursor.at,
            inside: cursor.inside,
            set_var: cursor.set_var,
            first_row_empty,
            names_empty_rows,
        })
    }

    /// What was read before.
    pub fn head(&self) -> &InsertHead {
        &self.head
    }

    /// The part of the text that decides all of this: in the same modes, another text that begins so reads the same up to its
    /// rows. `None` where more of the text was looked at.
    pub fn beginning<'t>(&self, text: &'t [u8], modes: &Modes) -> Option<&'t [u8]> {
        let is_plain = modes.charset != CharsetClass::TrailByteMayBeBackslash
            && self.source == Source::Values
            && self.columns.are_listed();
        // What stands behind VALUES was looked at too: it is to be the `(` of a row in both.
        let rest = text.get(self.rows..).filter(|_| is_plain)?;
        let length = match rest {
            [b'(', ..] => 1,
            [b' ', b'(', ..] => 2,
            _ => return None,
        };
        text.get(..self.rows + length)
    }

    /// Whether the statement lists no columns but has values, or an alias for rows without any: then [`Insert::plan`] needs the live
    /// column order.
    pub fn needs_columns(&self) -> bool {
        let names_all = !self.columns.are_listed() && !self.first_row_empty;
        self.source != Source::Set && (names_all || self.names_empty_rows)
    }

    /// Whether the rows come from a query: then [`Insert::plan_query`] makes the plan.
    pub fn is_query(&self) -> bool {
        self.source == Source::Query
    }

    /// Whether it says IGNORE.
    pub fn ignore(&self) -> bool {
        self.head.ignore
    }
}

impl Cursor<'_> {
    /// Past `( … )`.
    fn skip_parentheses(&mut self) -> Result<(), Unread> {
        if !self.accept_mark(b'(')? {
            return Err(Unread::Refused);
        }
        loop {
            match self.token()?.kind {
                Kind::Mark(b')') => return Ok(()),
                Kind::End | Kind::Mark(b'(') => return Err(Unread::Refused),
                _ => {}
            }
        }
    }

    /// Past the column list, if there is one.
    fn columns(&mut self) -> Result<Columns, Unread> {
        let absent = Columns::Absent { at: self.at };
        let mut ahead = *self;
        if !ahead.accept_mark(b'(')? {
            return Ok(absent);
        }
        let at = ahead.at;
        let first = ahead.peek()?;
        match first.kind {
            Kind::Mark(b'(') => return Ok(absent),
            Kind::Word if first.is(self.text, "SELECT") || first.is(self.text, "WITH") => {
                return Ok(absent);
            }
            Kind::Word if first.is(self.text, "VALUES") || first.is(self.text, "TABLE") => {
                return Err(Unsupported::TableValue.into());
            }
            _ => {}
        }
        if ahead.accept_mark(b')')? {
            *self = ahead;
            return Ok(Columns::Empty { at });
        }
        let mut names = Vec::with_capacity(8);
        loop {
            names.push(ahead.column()?);
            if ahead.accept_mark(b')')? {
                break;
            }
            if !ahead.accept_mark(b',')? {
                return Err(Unread::Refused);
            }
        }
        *self = ahead;
        let end = self.at - 1;
        Ok(Columns::Listed { names, at, end })
    }

    /// Past the keyword that says where the values come from.
    fn source(&mut self) -> Result<Source, Unread> {
        let before = *self;
        let token = self.token()?;
        let is = |word| token.is(self.text, word);
        if is("VALUES") || is("VALUE") {
            let row = self.peek()?;
            if row.is(self.text, "ROW") {
                return match (self.modes.server.flavour, is("VALUES")) {
                    (Flavour::MySql, true) => Ok(Source::Rows),
                    (Flavour::MySql | Flavour::MariaDb, _) => Err(Unread::Refused),
                };
            }
            return Ok(Source::Values);
        }
        if is("SET") {
            return Ok(Source::Set);
        }
        match token.kind {
            Kind::Word if is("SELECT") || is("WITH") => Ok(self.at_query(before)),
            Kind::Mark(b'(') => Ok(self.at_query(before)),
            Kind::Word if is("TABLE") => Err(Unsupported::TableValue.into()),
            Kind::Word if is("DEFAULT") => Err(Unread::Refused),
            Kind::End | Kind::Mark(b';') => Err(Unread::Refused),
            _ => Err(Unsupported::BehindTable.into()),
        }
    }

    /// Back to the first token of a query.
    fn at_query(&mut self, before: Self) -> Source {
        *self = before;
        Source::Query
    }

    fn at_empty_row(&self) -> Result<bool, Unread> {
        let mut ahead = *self;
        ahead.accept("ROW")?;
        Ok(ahead.accept_mark(b'(')? && ahead.accept_mark(b')')?)
    }

    /// Whether nothing but rows without values stands before the alias of rows.
    fn at_empty_rows_with_alias(&self) -> Result<bool, Unread> {
        let mut ahead = *self;
        loop {
            if !ahead.accept_mark(b'(')? || !ahead.accept_mark(b')')? {
                return Ok(false);
            }
            if !ahead.accept_mark(b',')? {
                return ahead.accept("AS");
            }
        }
    }
}
