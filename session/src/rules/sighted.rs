//! What was seen of the tables that rules match.

use std::collections::{HashMap, HashSet};

/// What the last look at the server saw of a table that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// It has the rule's column; or nobody looked, and it is taken to have it.
    With,
    /// It does not have it.
    Without,
    /// It was not there.
    Never,
}

/// Names of tables and, of each, of schemas.
type Names = HashMap<Vec<u8>, HashSet<Vec<u8>>>;

/// Tables that were seen, by their names as they are compared.
#[derive(Debug, Default)]
pub(super) struct Sighted {
    /// `None`: nobody looked.
    with: Option<Names>,
    without: Names,
}

impl Sighted {
    /// Tables that have their rule's column. All others that were looked at must be [`Sighted::add_without`].
    pub(super) fn set_with(&mut self, tables: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) {
        let mut with = Names::new();
        for (schema, table) in tables {
            with.entry(table).or_default().insert(schema);
        }
        self.with = Some(with);
    }

    /// A table that has not.
    pub(super) fn add_without(&mut self, schema: Vec<u8>, table: Vec<u8>) {
        self.without.entry(table).or_default().insert(schema);
    }

    /// What was seen of a table.
    pub(super) fn of(&self, schema: &[u8], table: &[u8]) -> Sighting {
        let is_in = |names: &Names| {
            let schemas = names.get(table);
            schemas.is_some_and(|schemas| schemas.contains(schema))
        };
        if self.with.as_ref().is_some_and(is_in) {
            Sighting::With
        } else if is_in(&self.without) {
            Sighting::Without
        } else if self.with.is_some() {
            Sighting::Never
        } else {
            Sighting::With
        }
    }

    /// Whether nothing is known of any table.
    pub(super) fn is_empty(&self) -> bool {
        self.with.is_none() && self.without.is_empty()
    }
}
