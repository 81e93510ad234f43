//! What the last schema refresh found of the tables that rules match.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::rules::rule::TableTraits;

/// What the last schema refresh found of a table that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyColumnState {
    /// It has the rule's column. A table is taken to have it where there was no schema refresh.
    Present,
    /// It has the column, in which the rule's keys have no room.
    TooNarrow,
    /// It does not have it.
    Missing,
    /// It was not there.
    NoTable,
}

/// A table that a rule matches, or a view, and what was found of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSnapshot {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// What was found of its key column.
    pub key_column: KeyColumnState,
    /// Whether that is NOT NULL. `None`: this is not known.
    pub is_not_null: Option<bool>,
    /// What holds for it. `None`: what its rule says.
    pub traits: Option<TableTraits>,
}

/// What was found of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) key_column: KeyColumnState,
    pub(super) is_not_null: Option<bool>,
}

/// Tables that were found, by name and schema as they are compared.
#[derive(Debug, Default)]
pub(super) struct TableSnapshots {
    tables: HashMap<Vec<u8>, HashMap<Vec<u8>, Seen>>,
    /// Whether these are all there are.
    is_all: bool,
}

impl TableSnapshots {
    /// Adds one.
    pub(super) fn add(&mut self, schema: Vec<u8>, name: Vec<u8>, seen: Seen) {
        self.tables.entry(name).or_default().insert(schema, seen);
    }

    /// There are no others.
    pub(super) fn end(&mut self) {
        self.is_all = true;
    }

    fn seen(&self, schema: &[u8], name: &[u8]) -> Option<&Seen> {
        self.tables.get(name).and_then(|of| of.get(schema))
    }

    /// What was found of a table's key column.
    pub(super) fn of(&self, schema: &[u8], name: &[u8]) -> KeyColumnState {
        match self.seen(schema, name) {
            Some(seen) => seen.key_column,
            None if self.is_all => KeyColumnState::NoTable,
            None => KeyColumnState::Present,
        }
    }

    /// Whether that is NOT NULL, if it is known.
    pub(super) fn is_not_null(&self, schema: &[u8], name: &[u8]) -> Option<bool> {
        self.seen(schema, name)?.is_not_null
    }
}

/// Tables that get no keys, by schema and name as they are compared: they have ids of their own which are still to be given, or keys by another rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ahead {
    tables: BTreeSet<(Vec<u8>, Vec<u8>)>,
    /// Their rules.
    rules: BTreeSet<usize>,
    /// By rule: why one of them gets none, where no switch puts it right.
    reasons: BTreeMap<usize, String>,
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

    pub(super) fn add_reason(&mut self, rule: usize, reason: &str) {
        let of_rule = self.reasons.entry(rule);
        of_rule.or_insert_with(|| reason.to_owned());
    }

    pub(super) fn reason(&self, rule: usize) -> Option<&str> {
        self.reasons.get(&rule).map(String::as_str)
    }
}
