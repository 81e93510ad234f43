//! Changes of the servers' tables, counted by all connections of one program: that tables have changed, not how.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::rules::names::in_lower_case;
use crate::server::listed::ListedTables;
use crate::server::met::{MetTables, Standing};
use crate::server::met_table::MetTable;

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
    /// What the last schema refresh of each listener's server has shown.
    listed: RwLock<Vec<Arc<ListedTables>>>,
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

    /// What the last schema refresh of each listener's server has shown. Of a server that was not read since it is the very list of before.
    pub fn note_listed(&self, listed: Vec<Arc<ListedTables>>) {
        let before = {
            let mut known = self.listed.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *known, listed.clone())
        };
        for read in &listed {
            if !before.iter().any(|before| Arc::ptr_eq(before, read)) {
                self.met.settle(read);
            }
        }
    }

    /// A statement wants keys of a table that its connection's rules do not know. Of one that a later schema refresh has shown nothing is asked.
    pub(super) fn meet(&self, table: &MetTable) -> Standing {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        match listed.iter().any(|listed| listed.has(table)) {
            true => Standing::Shown,
            false => self.met.meet(table),
        }
    }

    /// Whether a table was met already, or a later schema refresh has shown it.
    pub(super) fn has_met(&self, table: &MetTable) -> bool {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.iter().any(|listed| listed.has(table)) || self.met.has(table)
    }

    /// Tables of rules that no schema refresh has shown, and that the servers are to be asked about by the program's own account: those that
    /// statements wait for and that nobody asks about yet, until [`SchemaChanges::note_asked`], and at a schema refresh (`again`) all.
    pub fn tables_to_ask(&self, again: bool) -> Vec<MetTable> {
        self.met.to_ask(again)
    }

    /// The servers were asked about these, whatever came of it.
    pub fn note_asked(&self, tables: &[MetTable]) {
        self.met.end_question(tables);
    }

    /// Whether the program's own account may see such a table. It gets keys from now on, or none. Returns whether it is new that it gets none.
    pub fn note_shown(&self, table: &MetTable, is_shown: bool) -> bool {
        self.learn(table, is_shown, None)
    }

    /// The account may not see it, as was found out by a question that began when [`SchemaChanges::answers`] was this: an answer that came since counts
    /// for more. Returns whether that is new.
    pub fn note_unshown(&self, table: &MetTable, began_at: u64) -> bool {
        self.learn(table, false, Some(began_at))
    }

    fn learn(&self, table: &MetTable, is_shown: bool, began_at: Option<u64>) -> bool {
        let is_new = self.met.learn(table, is_shown, began_at);
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
    use std::sync::Arc;

    use super::{ListedTables, MetTable, SchemaChanges, Standing};

    /// A letter is folded alike wherever it stands in a name.
    #[test]
    fn watched_tables_are_found_in_another_case() {
        let changes = SchemaChanges::default();
        changes.note_watched([("ΣΑΣ", "ORDİNİ")].into_iter());
        assert!(changes.is_watched("σασ".as_bytes(), b"ordini"));
        assert!(changes.is_watched("ΣΑΣ".as_bytes(), "ordİni".as_bytes()));
        assert!(!changes.is_watched("σας".as_bytes(), b"ordini"));
    }

    /// Such a connection goes on for as long as its client does, and the server may not answer by the program's own account any more.
    #[test]
    fn connections_older_than_a_table_do_not_wait_for_what_a_schema_refresh_has_shown() {
        let changes = SchemaChanges::default();
        let table = MetTable {
            server: Arc::from(b"s".as_slice()),
            schema: "d".to_owned(),
            name: "t".to_owned(),
            column: "id".to_owned(),
        };
        assert_eq!(changes.meet(&table), Standing::Unanswered);
        let of = |names: &[&str]| {
            let tables = names.iter().map(|name| ("d", *name, "id"));
            Arc::new(ListedTables::new(b"s", false, tables))
        };
        let listed = of(&["t"]);
        changes.note_listed(vec![Arc::clone(&listed)]);
        for _ in 0..2 {
            // Refreshes that cannot read the server.
            changes.tables_to_ask(true);
            changes.note_listed(vec![Arc::clone(&listed)]);
        }
        assert_eq!(changes.meet(&table), Standing::Shown);
        assert_eq!(changes.tables_to_ask(false), []);
        // Somebody drops it, or the account may not see it any more.
        changes.note_listed(vec![of(&[])]);
        assert_eq!(changes.meet(&table), Standing::Unanswered);
        assert_eq!(changes.tables_to_ask(false), [table]);
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
