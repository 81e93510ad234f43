//! Tables of rules that no schema refresh has shown, met by all connections of one program. Most are new, and the next refresh shows them. Of one
//! that the program's own account may not see nobody knows how far its ids have come, and it has no fence: it gets no keys. So statements wait until
//! the server was asked.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// How many are remembered. Those beyond get no keys until there is room.
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

/// What the server has said of it to the program's own account. What has no answer is asked about before the rest, for which there may not be time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Nothing yet: it was not asked, or has not answered.
    Unanswered,
    /// The account may not see it.
    Unshown,
    /// The account may, if it is there.
    Shown,
}

/// What is known of one that was met.
#[derive(Debug)]
struct Met {
    standing: Standing,
    /// Whether it was met without an answer since the server was last asked.
    is_wanted: AtomicBool,
    /// Whether it was met since the last schema refresh.
    is_recent: AtomicBool,
}

impl Met {
    /// Of one that is met for the first time.
    fn new() -> Self {
        Self {
            standing: Standing::Unanswered,
            is_wanted: AtomicBool::new(true),
            is_recent: AtomicBool::new(true),
        }
    }

    /// Whether it makes room for another. Whoever meets it again waits for another answer. One that clients go on filling in vain stays: each answer
    /// about it would be news.
    fn makes_room(&self) -> bool {
        match self.standing {
            Standing::Unanswered => false,
            Standing::Unshown => !self.is_recent.load(Ordering::Relaxed),
            Standing::Shown => true,
        }
    }
}

type Tables = BTreeMap<MetTable, Met>;

/// Those that were met.
#[derive(Debug, Default)]
pub(super) struct MetTables {
    tables: RwLock<Tables>,
    /// Answers that have come.
    answers: AtomicU64,
}

impl MetTables {
    /// Meets one. Where there is no room for it, nothing is known of it.
    pub(super) fn meet(&self, table: &MetTable) -> Standing {
        let may_have_room = {
            let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(met) = tables.get(table) {
                met.is_recent.store(true, Ordering::Relaxed);
                if met.standing == Standing::Unanswered {
                    met.is_wanted.store(true, Ordering::Relaxed);
                }
                return met.standing;
            }
            // All connections would wait for one another only to find that there is no room.
            tables.len() < MET_MAX || tables.values().any(Met::makes_room)
        };
        if may_have_room {
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            if !tables.contains_key(table) && has_room(&mut tables) {
                tables.insert(table.clone(), Met::new());
            }
        }
        Standing::Unanswered
    }

    /// Those that are to be asked about, which counts as done: those without an answer that were met since they were asked about last, and if a refresh
    /// begins (`again`) all. Those that are not met any more do not stay, but for those that are not shown: each of their answers would be news.
    pub(super) fn to_ask(&self, again: bool) -> Vec<MetTable> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if again {
            tables.retain(|_, met| {
                let is_recent = mem::take(met.is_recent.get_mut());
                is_recent || met.standing == Standing::Unshown
            });
        }
        let mut asked = Vec::new();
        for (table, met) in tables.iter_mut() {
            let is_wanted =
                mem::take(met.is_wanted.get_mut()) && met.standing == Standing::Unanswered;
            if again || is_wanted {
                asked.push(((met.standing, !is_wanted), table.clone()));
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
        // Before the tables are free again: whoever finds no answer there has counted without this one.
        self.answers.fetch_add(1, Ordering::AcqRel);
        now == Standing::Unshown && before != now
    }

    /// How many answers have come.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Acquire)
    }
}

/// Whether there is room for one more; if not, one that can be met again makes it, first one that is not met any more.
fn has_room(tables: &mut Tables) -> bool {
    if tables.len() < MET_MAX {
        return true;
    }
    let old = tables.iter().filter(|(_, met)| met.makes_room());
    let old = old.min_by_key(|(_, met)| met.is_recent.load(Ordering::Relaxed));
    let Some(old) = old.map(|(table, _)| table.clone()) else {
        return false;
    };
    tables.remove(&old);
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{MET_MAX, MetTable, MetTables, Standing};

    fn table(name: &str) -> MetTable {
        MetTable {
            server: Arc::from(b"s".as_slice()),
            schema: "d".to_owned(),
            name: name.to_owned(),
            column: "id".to_owned(),
        }
    }

    #[test]
    fn what_has_no_answer_is_not_shown() {
        let met = MetTables::default();
        let before = met.answers();
        assert_eq!(met.meet(&table("t")), Standing::Unanswered);
        assert_eq!(met.to_ask(false), [table("t")]);
        assert_eq!(met.meet(&table("t")), Standing::Unanswered);
        assert_eq!(met.answers(), before);
        assert!(!met.learn(&table("t"), true));
        assert_eq!(met.meet(&table("t")), Standing::Shown);
        assert_ne!(met.answers(), before, "who waits is told");
    }

    #[test]
    fn what_was_not_shown_is_asked_about_again() {
        let met = MetTables::default();
        met.meet(&table("t"));
        met.meet(&table("u"));
        assert_eq!(met.to_ask(false), [table("t"), table("u")]);
        assert!(met.learn(&table("t"), false), "that is new");
        assert!(!met.learn(&table("u"), true));
        assert_eq!(met.meet(&table("t")), Standing::Unshown);
        assert_eq!(met.to_ask(false), []);
        assert_eq!(met.to_ask(true), [table("t"), table("u")]);
        assert!(!met.learn(&table("t"), false), "it is known");
        assert!(!met.learn(&table("t"), true));
        assert_eq!(met.meet(&table("t")), Standing::Shown);
    }

    /// Connections that are older than the table meet it for ever.
    #[test]
    fn what_was_shown_stays_so_until_there_is_another_answer() {
        let met = MetTables::default();
        met.meet(&table("t"));
        met.learn(&table("t"), true);
        assert_eq!(met.to_ask(true), [table("t")]);
        assert_eq!(met.meet(&table("t")), Standing::Shown);
        assert_eq!(met.to_ask(true), [table("t")]);
        assert_eq!(met.to_ask(true), [], "nobody has met it since");
        assert_eq!(met.meet(&table("t")), Standing::Unanswered);
        met.learn(&table("t"), true);
        assert_eq!(met.to_ask(true), [table("t")]);
        assert!(met.learn(&table("t"), false));
        assert_eq!(met.meet(&table("t")), Standing::Unshown);
    }

    #[test]
    fn what_brought_no_answer_is_asked_about_again_when_it_is_met() {
        let met = MetTables::default();
        met.meet(&table("t"));
        assert_eq!(met.to_ask(false), [table("t")]);
        assert_eq!(met.to_ask(false), [], "nobody waits for it");
        met.meet(&table("t"));
        assert_eq!(met.to_ask(false), [table("t")]);
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
        assert_eq!(met.meet(&table("t")), Standing::Unshown);
        met.meet(&table("u"));
        assert_eq!(
            met.to_ask(true),
            [table("u"), table("t")],
            "what is waited for comes first"
        );
    }

    #[test]
    fn what_was_never_met_is_not_learnt() {
        let met = MetTables::default();
        assert!(!met.learn(&table("t"), false));
        assert_eq!(met.meet(&table("t")), Standing::Unanswered);
    }

    #[test]
    fn no_more_are_remembered_than_so_many() {
        let met = MetTables::default();
        for number in 0..=MET_MAX {
            met.meet(&table(&number.to_string()));
        }
        // Others may read meanwhile: nothing is written.
        let reading = met.tables.read();
        assert_eq!(met.meet(&table("one more")), Standing::Unanswered);
        drop(reading);
        assert_eq!(met.to_ask(true).len(), MET_MAX);
    }

    #[test]
    fn what_has_its_answer_makes_room_and_nothing_gets_keys_unasked() {
        let met = MetTables::default();
        let all: Vec<MetTable> = (0..MET_MAX)
            .map(|number| table(&number.to_string()))
            .collect();
        for one in &all {
            met.meet(one);
            met.learn(one, false);
        }
        let other = table("one more");
        assert_eq!(met.meet(&other), Standing::Unanswered);
        assert_eq!(met.to_ask(false), [], "clients fill all of them in vain");
        // Now they have given up.
        met.to_ask(true);
        assert_eq!(met.meet(&other), Standing::Unanswered);
        assert_eq!(met.to_ask(false), [other.clone()]);
        met.learn(&other, true);
        for one in &all {
            met.meet(one);
        }
        // They have taken its place again.
        assert_eq!(met.meet(&other), Standing::Unanswered);
    }
}
