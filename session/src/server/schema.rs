//! Changes of the servers' tables, counted by all connections of one program: that tables have changed, not how.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::rules::names::in_lower_case;
use crate::server::met::{MetTable, MetTables};

/// Counts what may have changed tables: statements of this program's connections, and schema refreshes, before which others may
/// have changed them.
#[derive(Debug, Default)]
pub struct SchemaChanges {
    /// Statements that define tables, and schema refreshes that found a difference.
    defined: AtomicU64,
    /// What may have changed tables unseen: time between schema refreshes, calls of procedures.
    unseen: AtomicU64,
    /// How many of `defined` the rules know of that new connections follow.
    looked: AtomicU64,
    /// Tables, by schema and name in lower case, with triggers that may read LAST_INSERT_ID(), as the last schema refresh found them.
    watched: RwLock<BTreeSet<(Vec<u8>, Vec<u8>)>>,
    /// Tables of rules that none has shown.
    met: MetTables,
}

impl SchemaChanges {
    /// Tables were changed.
    pub fn note_defined(&self) {
        self.defined.fetch_add(1, Ordering::AcqRel);
    }

    /// Tables may have been changed.
    pub fn note_unseen(&self) {
        self.unseen.fetch_add(1, Ordering::AcqRel);
    }

    /// A schema refresh has ended that began when [`SchemaChanges::defined`] was this; `is_other`: it found a difference.
    pub fn note_schema_refresh(&self, began_at: u64, is_other: bool) {
        let before = match is_other {
            true => self.defined.fetch_add(1, Ordering::AcqRel),
            false => began_at,
        };
        // It may have missed what was defined meanwhile.
        let known = began_at.saturating_add(u64::from(is_other && before == began_at));
        self.looked.fetch_max(known, Ordering::AcqRel);
        self.note_unseen();
    }

    /// What a schema refresh has found, of all listeners: tables, by schema and name, with triggers that may read LAST_INSERT_ID(). Comes
    /// before [`SchemaChanges::note_schema_refresh`].
    pub fn note_watched<'a>(&self, tables: impl Iterator<Item = (&'a str, &'a str)>) {
        let name = |name: &str| in_lower_case(name).into_bytes();
        let tables = tables.map(|(schema, table)| (name(schema), name(table)));
        let found = tables.collect();
        *self.watched.write().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// Whether a table is one of these, for connections whose rules are older. A table of another server that has the same name, or the
    /// same name in another case, counts too: then LAST_INSERT_ID() is put right afterwards without need.
    pub(crate) fn is_watched(&self, schema: &[u8], table: &[u8]) -> bool {
        let watched = self.watched.read().unwrap_or_else(PoisonError::into_inner);
        let name = |name: &[u8]| in_lower_case(&String::from_utf8_lossy(name)).into_bytes();
        !watched.is_empty() && watched.contains(&(name(schema), name(table)))
    }

    /// Tables of rules that no schema refresh has shown, and that the servers are to be asked about by the program's own account: those that
    /// statements wait for since they were asked about last, and at a schema refresh (`again`) all.
    pub fn tables_to_ask(&self, again: bool) -> Vec<MetTable> {
        self.met.to_ask(again)
    }

    /// Whether the program's own account may see such a table. It gets keys from now on, or none. Returns whether it is new that it gets none.
    pub fn note_shown(&self, table: &MetTable, is_shown: bool) -> bool {
        let is_new = self.met.learn(table, is_shown);
        if is_new {
            // Prepared statements are judged again.
            self.note_unseen();
        }
        is_new
    }

    /// How many answers of that kind there were.
    pub fn answers(&self) -> u64 {
        self.met.answers()
    }

    /// Such tables.
    pub(super) fn met(&self) -> &MetTables {
        &self.met
    }

    /// How often tables were changed.
    pub fn defined(&self) -> u64 {
        self.defined.load(Ordering::Acquire)
    }

    /// How many of those the rules of new connections know of.
    pub(crate) fn looked(&self) -> u64 {
        self.looked.load(Ordering::Acquire)
    }

    /// How often tables may have been changed.
    pub(crate) fn all(&self) -> u64 {
        self.defined()
            .wrapping_add(self.unseen.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::SchemaChanges;

    /// A letter is folded alike wherever it stands in a name.
    #[test]
    fn watched_tables_are_found_in_another_case() {
        let changes = SchemaChanges::default();
        changes.note_watched([("ΣΑΣ", "ORDİNİ")].into_iter());
        assert!(changes.is_watched("σασ".as_bytes(), b"ordini"));
        assert!(changes.is_watched("ΣΑΣ".as_bytes(), "ordİni".as_bytes()));
        assert!(!changes.is_watched("σας".as_bytes(), b"ordini"));
    }

    #[test]
    fn a_look_does_not_know_of_what_came_while_it_looked() {
        let changes = SchemaChanges::default();
        changes.note_defined();
        let began_at = changes.defined();
        changes.note_schema_refresh(began_at, false);
        assert_eq!((changes.looked(), changes.defined()), (1, 1));
        changes.note_defined();
        changes.note_schema_refresh(began_at, true);
        assert_eq!((changes.looked(), changes.defined()), (1, 3));
        changes.note_schema_refresh(changes.defined(), true);
        assert_eq!((changes.looked(), changes.defined()), (4, 4));
        let before = changes.all();
        changes.note_unseen();
        assert_eq!((changes.all(), changes.looked()), (before + 1, 4));
    }
}
