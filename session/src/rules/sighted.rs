//! What the last schema refresh found of the tables that rules match.

use std::collections::{BTreeSet, HashMap};

/// What the last schema refresh found of a table that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// It has the rule's column. A table is taken to have it where there was no schema refresh.
    With,
    /// It has the column, in which the rule's keys have no room.
    Narrow,
    /// It does not have it.
    Without,
    /// It was not there.
    Never,
}

/// A table that a rule matches, and what was found of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenTable {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// What was found of it.
    pub sighting: Sighting,
}

/// Tables that were found, by name and schema as they are compared.
#[derive(Debug, Default)]
pub(super) struct Sighted {
    tables: HashMap<Vec<u8>, HashMap<Vec<u8>, Sighting>>,
    /// Whether these are all there are.
    is_all: bool,
}

impl Sighted {
    /// Adds one.
    pub(super) fn add(&mut self, schema: Vec<u8>, name: Vec<u8>, sighting: Sighting) {
        self.tables
            .entry(name)
            .or_default()
            .insert(schema, sighting);
    }

    /// There are no others.
    pub(super) fn end(&mut self) {
        self.is_all = true;
    }

    /// What was found of a table.
    pub(super) fn of(&self, schema: &[u8], name: &[u8]) -> Sighting {
        let seen = self.tables.get(name).and_then(|of| of.get(schema));
        match seen {
            Some(sighting) => *sighting,
            None if self.is_all => Sighting::Never,
            None => Sighting::With,
        }
    }
}

/// Tables that have no fence and ids of their own which are still to be given, by schema and name as they are compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ahead {
    tables: BTreeSet<(Vec<u8>, Vec<u8>)>,
    /// Their rules.
    rules: BTreeSet<usize>,
}

impl Ahead {
    pub(super) fn add(&mut self, rule: usize, schema: Vec<u8>, name: Vec<u8>) {
        self.rules.insert(rule);
        self.tables.insert((schema, name));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub(super) fn has(&self, schema: &[u8], name: &[u8]) -> bool {
        let mut tables = self.tables.iter();
        tables.any(|(of, its)| of == schema && its == name)
    }

    pub(super) fn has_rule(&self, rule: usize) -> bool {
        self.rules.contains(&rule)
    }
}
