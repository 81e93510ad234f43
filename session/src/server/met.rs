//! Tables that get keys and that no schema refresh has shown, met by all connections of one program. Most are new, and the next refresh shows
//! them. Of one that the program's own account may not see nobody knows how far its ids have come, and it has no fence: it gets no keys.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// How many are remembered. Those beyond get keys until there is room again.
const MET_MAX: usize = 1_024;

/// A table that no schema refresh has shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetTable {
    /// Its server, in the words of the store.
    pub server: Arc<[u8]>,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The column of its rule.
    pub column: String,
}

/// What the server says of it to the program's own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It was not asked yet.
    New,
    /// The account may see it, if it is there.
    Shown,
    /// The account may not.
    Unshown,
}

/// Those that were met.
#[derive(Debug, Default)]
pub(super) struct MetTables {
    tables: RwLock<BTreeMap<MetTable, Standing>>,
}

impl MetTables {
    /// Meets one. Whether the account may not see it.
    pub(super) fn meet(&self, table: &MetTable) -> bool {
        let is_full = {
            let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(standing) = tables.get(table) {
                return *standing == Standing::Unshown;
            }
            // All connections would wait for one another only to find that there is no room.
            tables.len() >= MET_MAX
        };
        if !is_full {
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            if tables.len() < MET_MAX {
                tables.entry(table.clone()).or_insert(Standing::New);
            }
        }
        false
    }

    /// It is not there any more.
    pub(super) fn forget(&self, table: &MetTable) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.remove(table);
    }

    /// Those that are to be asked about: new ones, and if a refresh begins (`again`) those that were not shown before, too.
    pub(super) fn to_ask(&self, again: bool) -> Vec<MetTable> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if again {
            tables.retain(|_, standing| *standing != Standing::Shown);
        }
        let is_asked = |standing: &Standing| match standing {
            Standing::New => true,
            Standing::Unshown => again,
            Standing::Shown => false,
        };
        let tables = tables.iter();
        let asked = tables.filter(|(_, standing)| is_asked(standing));
        asked.map(|(table, _)| table.clone()).collect()
    }

    /// What the server has said. Whether it is new that one is not shown.
    pub(super) fn learn(&self, table: &MetTable, is_shown: bool) -> bool {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let Some(standing) = tables.get_mut(table) else {
            return false;
        };
        let now = match is_shown {
            true => Standing::Shown,
            false => Standing::Unshown,
        };
        let before = std::mem::replace(standing, now);
        now == Standing::Unshown && before != now
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{MET_MAX, MetTable, MetTables};

    fn table(name: &str) -> MetTable {
        MetTable {
            server: Arc::from(b"s".as_slice()),
            schema: "d".to_owned(),
            name: name.to_owned(),
            column: "id".to_owned(),
        }
    }

    #[test]
    fn what_was_not_shown_is_asked_about_again() {
        let met = MetTables::default();
        assert!(!met.meet(&table("t")) && !met.meet(&table("u")));
        assert_eq!(met.to_ask(false), [table("t"), table("u")]);
        assert!(met.learn(&table("t"), false), "that is new");
        assert!(!met.learn(&table("u"), true));
        assert!(met.meet(&table("t")) && !met.meet(&table("u")));
        assert_eq!(met.to_ask(false), []);
        assert_eq!(met.to_ask(true), [table("t")]);
        assert!(!met.learn(&table("t"), false), "it is known");
        assert!(!met.learn(&table("t"), true));
        assert!(!met.meet(&table("t")));
        assert_eq!(met.to_ask(true), []);
    }

    #[test]
    fn what_is_gone_or_was_never_met_is_not_learnt() {
        let met = MetTables::default();
        assert!(!met.learn(&table("t"), false));
        met.meet(&table("t"));
        met.learn(&table("t"), false);
        met.forget(&table("t"));
        assert!(!met.meet(&table("t")));
    }

    #[test]
    fn no_more_are_remembered_than_so_many() {
        let met = MetTables::default();
        for number in 0..=MET_MAX {
            met.meet(&table(&number.to_string()));
        }
        // Others may read meanwhile: nothing is written.
        let reading = met.tables.read();
        assert!(!met.meet(&table("one more")));
        drop(reading);
        assert_eq!(met.to_ask(true).len(), MET_MAX);
    }
}
