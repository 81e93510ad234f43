//! Names in the subqueries of a row that may mean the key of that row, and no column of the tables that the subqueries read.

mod level;

use crate::lex::cursor::Cursor;
use crate::lex::name::{TableName, undouble};
use crate::lex::token::{Kind, Token};
use crate::read::key_wanted::Wanted;
use crate::read::outer_names::level::{Level, Part, Place};
use crate::refusal::Unread;

/// Words that no alias is, so that a table before them has none.
const NO_ALIASES: [&str; 21] = [
    "CROSS",
    "FORCE",
    "GROUP",
    "HAVING",
    "IGNORE",
    "INNER",
    "INTO",
    "JOIN",
    "LEFT",
    "LIMIT",
    "LOCK",
    "NATURAL",
    "ON",
    "ORDER",
    "PROCEDURE",
    "RIGHT",
    "STRAIGHT_JOIN",
    "UNION",
    "USE",
    "USING",
    "WHERE",
];

/// Words that are an alias or not, as the server has it, or that an alias may follow.
const PERHAPS_ALIASES: [&str; 11] = [
    "EXCEPT",
    "FETCH",
    "FOR",
    "FULL",
    "INTERSECT",
    "MINUS",
    "OFFSET",
    "PARTITION",
    "RETURNING",
    "TABLESAMPLE",
    "WINDOW",
];

/// Words behind which no table of a FROM stands.
const ENDS_OF_FROM: [&str; 16] = [
    "EXCEPT",
    "FETCH",
    "FOR",
    "GROUP",
    "HAVING",
    "INTERSECT",
    "INTO",
    "LIMIT",
    "LOCK",
    "MINUS",
    "OFFSET",
    "ORDER",
    "PROCEDURE",
    "UNION",
    "WHERE",
    "WINDOW",
];

/// Words that make what stands in place of a table a query, beside SELECT.
const QUERIES: [&str; 7] = [
    "EXCEPT",
    "INTERSECT",
    "MINUS",
    "TABLE",
    "UNION",
    "VALUES",
    "WITH",
];

/// What stands behind a table.
enum Alias {
    None,
    Named(Vec<u8>),
    /// It may be one.
    Unknown,
}

/// What the name of a column is qualified by.
enum Qualifier {
    /// Another table than the one that the rows go into.
    Other,
    /// A name of that table.
    Target(TableName),
    /// It may be one.
    Unknown,
}

impl Cursor<'_> {
    /// Whether a subquery between here and `end` may refer to the row's key: by its name where no FROM is beside it, or by the name of the table that the
    /// rows go into where no FROM beside or around it reads a table, or has an alias, of that name. Beside such a FROM the name counts as a column of what
    /// is read there.
    pub(crate) fn refers_from_within(
        mut self,
        end: usize,
        wanted: Wanted<'_>,
    ) -> Result<bool, Unread> {
        let (mut outer, mut level) = (Vec::<Level>::new(), Level::default());
        let mut before = [None::<Token>; 4];
        loop {
            let at = self;
            let token = self.token()?;
            if token.kind == Kind::End || token.start >= end {
                return Ok(level.has_qualifiers() || outer.iter().any(Level::has_qualifiers));
            }
            let [second, third, fourth, last] = before;
            let is_qualified = last.is_some_and(|last| last.kind == Kind::Mark(b'.'));
            match token.kind {
                Kind::Mark(b'(') => {
                    let inner = Level::opened(level.place_within());
                    outer.push(std::mem::replace(&mut level, inner));
                }
                Kind::Mark(b')') if level.is_open() => return Ok(true),
                Kind::Mark(b')') => {
                    let around = outer.pop().unwrap_or_default();
                    let inner = std::mem::replace(&mut level, around);
                    let is_table = inner.place != Place::Expression;
                    if level.close(inner) {
                        return Ok(true);
                    }
                    if is_table && let Alias::Named(table) = self.alias()? {
                        level.add_table(TableName {
                            schema: None,
                            table,
                        });
                    }
                }
                Kind::Mark(b',') if level.part == Part::From => level.part = Part::Table,
                // `{OJ …}`, which is not read.
                Kind::Mark(b'{') if level.part == Part::Table => level.part = Part::Behind,
                // Perhaps another part of a UNION.
                Kind::Word if !is_qualified && token.is(self.text, "SELECT") => {
                    if level.is_open() {
                        return Ok(true);
                    }
                    level.begin_select();
                }
                Kind::Word if !is_qualified && token.is(self.text, "FROM") => {
                    level.reads_table |= level.is_query && !self.peek()?.is(self.text, "DUAL");
                    if level.is_query && level.part == Part::List {
                        level.part = Part::Table;
                    }
                }
                Kind::Word if !is_qualified && self.turns(token, &mut level) => {}
                Kind::Word | Kind::Name if !is_qualified && level.part == Part::Table => {
                    self.table_of_from(at, &mut level)?;
                }
                Kind::Word | Kind::Name if self.is_column(token, last, wanted.name)? => {
                    if !is_qualified {
                        level.has_name = true;
                    } else {
                        match self.qualifier([second, third, fourth], wanted) {
                            Qualifier::Other => {}
                            Qualifier::Target(table) => level.add_qualifier(table),
                            Qualifier::Unknown => return Ok(true),
                        }
                    }
                }
                _ => {}
            }
            before = [third, fourth, last, Some(token)];
        }
    }

    /// Whether a word is a keyword that says what comes next in a FROM, or what stands in place of a table.
    fn turns(&self, word: Token, level: &mut Level) -> bool {
        let is_one_of = |words: &[&str]| words.iter().any(|other| word.is(self.text, other));
        if level.place == Place::Table && !level.is_query && is_one_of(&QUERIES) {
            level.place = Place::Apart;
            level.part = Part::Behind;
            return true;
        }
        match level.part {
            Part::Table => is_one_of(&["LATERAL"]),
            Part::From if is_one_of(&["JOIN", "STRAIGHT_JOIN"]) => {
                level.part = Part::Table;
                true
            }
            Part::From if is_one_of(&ENDS_OF_FROM) => {
                level.part = Part::Behind;
                true
            }
            Part::List | Part::Function | Part::From | Part::Behind => false,
        }
    }

    /// Past a table of a FROM, which begins at `at`, and its alias.
    fn table_of_from(&mut self, mut at: Self, level: &mut Level) -> Result<(), Unread> {
        level.part = Part::From;
        // Of what it is, the server says.
        let Ok(table) = at.table_name() else {
            return Ok(());
        };
        *self = at;
        if self.is_before_mark(b'(')? {
            level.part = Part::Function;
            return Ok(());
        }
        match self.alias()? {
            Alias::None => level.add_table(table),
            Alias::Named(alias) => level.add_table(TableName {
                schema: table.schema,
                table: alias,
            }),
            Alias::Unknown => {}
        }
        Ok(())
    }

    /// Past the alias of a table, if there is one.
    fn alias(&mut self) -> Result<Alias, Unread> {
        let mut ahead = *self;
        let is_announced = ahead.accept("AS")?;
        let (token, text) = (ahead.token()?, self.text);
        let is_one_of = |words: &[&str]| words.iter().any(|word| token.is(text, word));
        let is_name = matches!(token.kind, Kind::Word | Kind::Name);
        if is_name && (is_announced || !(is_one_of(&NO_ALIASES) || is_one_of(&PERHAPS_ALIASES))) {
            let alias = self.bare(token);
            *self = ahead;
            return Ok(Alias::Named(alias));
        }
        let may_be_one = is_announced || token.kind == Kind::Text || is_one_of(&PERHAPS_ALIASES);
        Ok(match may_be_one {
            true => Alias::Unknown,
            false => Alias::None,
        })
    }

    /// What the tokens before the point that stands before a column say of its table: schema, point and table.
    fn qualifier(&self, before: [Option<Token>; 3], wanted: Wanted<'_>) -> Qualifier {
        let is_name = |token: &Token| matches!(token.kind, Kind::Word | Kind::Name);
        let [schema, point, table] = before;
        let Some(table) = table.filter(is_name).map(|table| self.bare(table)) else {
            return Qualifier::Other;
        };
        if !is_same(&table, wanted.table) {
            return Qualifier::Other;
        }
        let point = point.filter(|point| point.kind == Kind::Mark(b'.'));
        let schema = match (schema.filter(is_name), point) {
            (Some(schema), Some(point)) if schema.end == point.start => Some(self.bare(schema)),
            // A keyword may stand there: `SELECT .t.id`.
            (Some(_), Some(_)) => return Qualifier::Unknown,
            (None, _) | (Some(_), None) => None,
        };
        match (&schema, wanted.schema) {
            (Some(schema), Some(target)) if !is_same(schema, target) => Qualifier::Other,
            _ => Qualifier::Target(TableName { schema, table }),
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
