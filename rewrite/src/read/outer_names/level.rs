//! What stands between two parentheses, as far as it says of which table a column is.

use crate::lex::name::TableName;

/// How many names of one kind a level keeps. Where there are more, the key counts as referred to.
const NAMES_MAX: usize = 16;

/// Where a parenthesis opens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// In an expression.
    #[default]
    Expression,
    /// In place of a table: a query, or tables that are joined.
    Table,
    /// In place of a table, or behind the name of a table function: what stands in it does not see all tables beside it.
    Apart,
}

/// What is being read of a query, or of tables that are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// What stands before FROM.
    #[default]
    List,
    /// FROM, where a table comes next.
    Table,
    /// FROM, where the parenthesis of a table function comes next.
    Function,
    /// FROM, behind a table.
    From,
    /// What stands behind FROM.
    Behind,
}

/// What is between two parentheses.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) place: Place,
    pub(super) part: Part,
    pub(super) is_query: bool,
    /// Its SELECT reads a table.
    pub(super) reads_table: bool,
    /// It has the key's name, without a table.
    pub(super) has_name: bool,
    /// Tables of its FROM, by their aliases where they have one.
    tables: Vec<TableName>,
    /// What the key's name is qualified by, where a table of its FROM may be meant.
    qualifiers: Vec<TableName>,
    /// The same, where no table of its FROM is meant.
    free: Vec<TableName>,
    /// It has more qualifiers than are kept.
    is_full: bool,
}

impl Level {
    pub(super) fn opened(place: Place) -> Self {
        let part = match place {
            Place::Table => Part::Table,
            Place::Expression | Place::Apart => Part::List,
        };
        Self {
            place,
            part,
            ..Self::default()
        }
    }

    /// Whether the name can be no column of what it reads.
    pub(super) fn is_open(&self) -> bool {
        self.is_query && self.has_name && !self.reads_table
    }

    /// Whether a qualified name in it has found no table yet.
    pub(super) fn has_qualifiers(&self) -> bool {
        self.is_full || !self.qualifiers.is_empty() || !self.free.is_empty()
    }

    /// Where a parenthesis stands that opens in it.
    pub(super) fn place_within(&mut self) -> Place {
        let place = match self.part {
            Part::Table => Place::Table,
            Part::Function => Place::Apart,
            Part::List | Part::From | Part::Behind => return Place::Expression,
        };
        self.part = Part::From;
        place
    }

    /// At another SELECT: the first one, or that of another part of a UNION.
    pub(super) fn begin_select(&mut self) {
        self.settle();
        self.is_query = true;
        self.part = Part::List;
        (self.reads_table, self.has_name) = (false, false);
    }

    /// A table of its FROM. One that is not kept leaves the names qualified by it to the key.
    pub(super) fn add_table(&mut self, table: TableName) {
        add(&mut self.tables, table);
    }

    /// What the key's name is qualified by.
    pub(super) fn add_qualifier(&mut self, qualifier: TableName) {
        self.is_full |= !add(&mut self.qualifiers, qualifier);
    }

    /// Takes what a level within it leaves open; whether a name there is, or may be, none of the tables around it.
    pub(super) fn close(&mut self, mut inner: Self) -> bool {
        // A query between these parentheses may be one in place of a table.
        let is_joined = self.place != Place::Expression && !self.is_query;
        let sees_tables = match inner.place {
            Place::Expression => !(inner.is_query && is_joined),
            Place::Table => !inner.is_query,
            Place::Apart => false,
        };
        if inner.is_query {
            inner.settle();
        } else {
            self.has_name |= inner.has_name;
            for table in std::mem::take(&mut inner.tables) {
                self.add_table(table);
            }
        }
        if inner.has_qualifiers() && (inner.is_full || !sees_tables) {
            return true;
        }
        for qualifier in inner.qualifiers.into_iter().chain(inner.free) {
            self.add_qualifier(qualifier);
        }
        self.is_full
    }

    /// At the end of a SELECT, or before the first one, whose tables what stands before it does not see.
    fn settle(&mut self) {
        let tables = std::mem::take(&mut self.tables);
        for qualifier in std::mem::take(&mut self.qualifiers) {
            let is_read = self.is_query && tables.iter().any(|table| is_of(&qualifier, table));
            self.is_full |= !is_read && !add(&mut self.free, qualifier);
        }
    }
}

/// Whether a qualifier certainly means this table. Servers may tell upper from lower case in both.
fn is_of(qualifier: &TableName, table: &TableName) -> bool {
    let is_in_schema = qualifier.schema.is_none() || qualifier.schema == table.schema;
    is_in_schema && qualifier.table == table.table
}

/// Adds a name that is not among the others; whether there was room.
fn add(names: &mut Vec<TableName>, name: TableName) -> bool {
    let is_there = names.contains(&name);
    let has_room = names.len() < NAMES_MAX;
    if has_room && !is_there {
        names.push(name);
    }
    is_there || has_room
}
