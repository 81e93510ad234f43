//! Tables that get keys and that no schema refresh has shown, met by all connections of one program. Most are new, and the next refresh shows
//! them. Of one that the program's own account may not see nobody knows how far its ids have come, and it has no fence: it gets no keys.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// What the server says of it to the program's own account. What is new is asked about before the rest, for which there may not be time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It was not asked yet.
    New,
    /// It was asked, and has not answered.
    Asked,
    /// The account may see it, if it is there.
    Shown,
    /// The account may not.
    Unshown,
}

/// What is known of one that was met.
#[derive(Debug)]
struct Met {
    standing: Standing,
    /// Whether it was met since the last schema refresh.
    is_recent: AtomicBool,
}

impl Met {
    /// Of one that is met for the first time.
    fn new() -> Self {
        Self {
            standing: Standing::New,
            is_recent: AtomicBool::new(true),
        }
    }
}

/// Those that were met.
#[derive(Debug, Default)]
pub(super) struct MetTables {
    tables: RwLock<BTreeMap<MetTable, Met>>,
}

impl MetTables {
    /// Meets one. Whether the account may not see it.
    pub(super) fn meet(&self, table: &MetTable) -> bool {
        let is_full = {
            let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(met) = tables.get(table) {
                met.is_recent.store(true, Ordering::Relaxed);
                return met.standing == Standing::Unshown;
            }
            // All connections would wait for one another only to find that there is no room.
            tables.len() >= MET_MAX
        };
        if !is_full {
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            if tables.len() < MET_MAX {
                tables.entry(table.clone()).or_insert_with(Met::new);
            }
        }
        false
    }

    /// It is not there any more.
    pub(super) fn forget(&self, table: &MetTable) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.remove(table);
    }

    /// Those that are to be asked about, which counts as done: new ones, and if a refresh begins (`again`) those that were not shown before, too.
    /// Of a server that nobody can ask there is no answer, ever: its tables do not stay when they are not met any more.
    pub(super) fn to_ask(&self, again: bool) -> Vec<MetTable> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if again {
            tables.retain(|_, met| match met.standing {
                Standing::New | Standing::Asked => mem::take(met.is_recent.get_mut()),
                // It would get keys again until the next answer.
                Standing::Unshown => true,
                Standing::Shown => false,
            });
        }
        let mut asked = Vec::new();
        for (table, met) in tables.iter_mut() {
            let before = met.standing;
            let (standing, is_asked) = match before {
                Standing::New => (Standing::Asked, true),
                Standing::Asked | Standing::Unshown => (before, again),
                Standing::Shown => (before, false),
            };
            met.standing = standing;
            if is_asked {
                asked.push((before, table.clone()));
            }
        }
        asked.sort_by_key(|(before, _)| *before);
        asked.into_iter().map(|(_, table)| table).collect()
    }

    /// What the server has said. Whether it is new that one is not shown.
    pub(super) fn learn(&self, table: &MetTable, is_shown: bool) -> bool {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let Some(met) = tables.get_mut(table) else {
            return false;
        };
        let now = match is_shown {
            true => Standing::Shown,
            false => Standing::Unshown,
        };
        let before = mem::replace(&mut met.standing, now);
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
    fn what_brings_no_answer_waits_for_the_next_refresh() {
        let met = MetTables::default();
        met.meet(&table("t"));
        assert_eq!(met.to_ask(false), [table("t")]);
        assert_eq!(met.to_ask(false), [], "it was asked about");
        met.meet(&table("t"));
        assert_eq!(met.to_ask(false), []);
        assert_eq!(met.to_ask(true), [table("t")]);
        assert_eq!(met.to_ask(true), [], "nobody has met it since");
        met.meet(&table("t"));
        assert_eq!(met.to_ask(false), [table("t")]);
    }

    #[test]
    fn what_was_not_shown_stays_though_nobody_meets_it() {
        let met = MetTables::default();
        met.meet(&table("t"));
        met.learn(&table("t"), false);
        assert_eq!(met.to_ask(true), [table("t")]);
        assert_eq!(met.to_ask(true), [table("t")]);
        assert!(met.meet(&table("t")));
        met.meet(&table("u"));
        assert_eq!(
            met.to_ask(true),
            [table("u"), table("t")],
            "what is new comes first"
        );
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
