//! Tables of rules that no schema refresh has shown, met by all connections of one program. Most are new, and the next refresh shows them. Of one
//! that the program's own account may not see nobody knows how far its ids have come, and it has no fence: it gets no keys. So statements wait until
//! the server was asked.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::server::listed::ListedTables;
use crate::server::met_table::MetTable;

/// How many of one server are remembered. Those beyond get no keys until there is room.
const MET_MAX: usize = 1_024;

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
    /// The number of its last answer; 0: it has none.
    answer: u64,
    /// Whether it was met without an answer, and nobody has begun to ask since.
    is_wanted: AtomicBool,
    /// Whether somebody asks, since a statement waits.
    is_asked: bool,
    /// Whether it was met since the last schema refresh.
    is_recent: AtomicBool,
}

impl Met {
    /// Of one that is met for the first time.
    fn new() -> Self {
        Self {
            standing: Standing::Unanswered,
            answer: 0,
            is_wanted: AtomicBool::new(true),
            is_asked: false,
            is_recent: AtomicBool::new(true),
        }
    }

    /// Whether it makes room for another. Whoever meets it again waits for another answer.
    fn makes_room(&self) -> bool {
        match self.standing {
            Standing::Unanswered => false,
            Standing::Unshown | Standing::Shown => true,
        }
    }

    /// What has less of it makes room first: what nobody meets any more, then what gets no keys anyway, then what was answered first.
    fn worth(&self) -> (bool, Standing, u64) {
        let is_recent = self.is_recent.load(Ordering::Relaxed);
        (is_recent, self.standing, self.answer)
    }
}

/// Of one server.
type Tables = BTreeMap<MetTable, Met>;
type Servers = BTreeMap<Arc<[u8]>, Tables>;

/// Those that were met.
#[derive(Debug, Default)]
pub(super) struct MetTables {
    /// By server: one that does not answer takes no room from others.
    servers: RwLock<Servers>,
    /// Answers that have come.
    answers: AtomicU64,
}

impl MetTables {
    /// Meets one. Where there is no room for it, nothing is known of it.
    pub(super) fn meet(&self, table: &MetTable) -> Standing {
        let may_have_room = {
            let servers = self.read();
            let tables = servers.get(&table.server);
            if let Some(met) = tables.and_then(|tables| tables.get(table)) {
                met.is_recent.store(true, Ordering::Relaxed);
                if met.standing == Standing::Unanswered && !met.is_asked {
                    met.is_wanted.store(true, Ordering::Relaxed);
                }
                return met.standing;
            }
            // All connections would wait for one another only to find that there is no room.
            tables.is_none_or(|of| of.len() < MET_MAX || of.values().any(Met::makes_room))
        };
        if may_have_room {
            let mut servers = self.write();
            let tables = servers.entry(Arc::clone(&table.server)).or_default();
            if !tables.contains_key(table) && has_room(tables) {
                tables.insert(table.clone(), Met::new());
            }
        }
        Standing::Unanswered
    }

    /// Whether it was met, and has not made room since.
    pub(super) fn has(&self, table: &MetTable) -> bool {
        let servers = self.read();
        let tables = servers.get(&table.server);
        tables.is_some_and(|tables| tables.contains_key(table))
    }

    /// Those that are to be asked about. For statements that wait: those without an answer that were met since somebody began to ask, which is done
    /// now, and ends with [`MetTables::end_question`]. If a refresh begins (`again`): all, and what is waited for stays so, since the rest may take
    /// long. Those that nobody has answered and nobody meets any more do not stay then.
    pub(super) fn to_ask(&self, again: bool) -> Vec<MetTable> {
        let mut servers = self.write();
        if again {
            for tables in servers.values_mut() {
                tables.retain(|_, met| {
                    let is_recent = mem::take(met.is_recent.get_mut());
                    is_recent || met.standing != Standing::Unanswered
                });
            }
            servers.retain(|_, tables| !tables.is_empty());
        }
        let mut asked = Vec::new();
        for (table, met) in servers.values_mut().flatten() {
            let is_wanted = *met.is_wanted.get_mut() && met.standing == Standing::Unanswered;
            if is_wanted && !again {
                *met.is_wanted.get_mut() = false;
                met.is_asked = true;
            }
            if is_wanted || again {
                asked.push(((met.standing, !is_wanted), table.clone()));
            }
        }
        asked.sort_by_key(|(before, _)| *before);
        asked.into_iter().map(|(_, table)| table).collect()
    }

    /// Nobody asks about these any more. Who still waits for an answer has it asked again by meeting its table.
    pub(super) fn end_question(&self, tables: &[MetTable]) {
        let mut servers = self.write();
        for table in tables {
            let of_server = servers.get_mut(&table.server);
            if let Some(met) = of_server.and_then(|tables| tables.get_mut(table)) {
                met.is_asked = false;
            }
        }
    }

    /// What the server has said; if the question began when there were so many answers (`began_at`), unless there was one about this table since. Whether
    /// it is new that one is not shown.
    pub(super) fn learn(&self, table: &MetTable, is_shown: bool, began_at: Option<u64>) -> bool {
        let mut servers = self.write();
        // Before the tables are free again: whoever finds no answer there has counted without this one. One about a table that has made room counts,
        // too: who waits for it is to meet it again.
        let answer = self.answers.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        let of_server = servers.get_mut(&table.server);
        let Some(met) = of_server.and_then(|tables| tables.get_mut(table)) else {
            return false;
        };
        if began_at.is_some_and(|began_at| met.answer > began_at) {
            return false;
        }
        met.answer = answer;
        let now = match is_shown {
            true => Standing::Shown,
            false => Standing::Unshown,
        };
        let before = mem::replace(&mut met.standing, now);
        now == Standing::Unshown && before != now
    }

    /// A schema refresh has read a server's tables. Those that it shows need no answer any more. Of the rest that the account may see, those that nobody
    /// has met since it began are gone, or are asked about again when they are met.
    pub(super) fn settle(&self, listed: &ListedTables) {
        let mut servers = self.write();
        if let Some(tables) = servers.get_mut(listed.server()) {
            tables.retain(|table, met| {
                let is_over = met.standing == Standing::Shown && !*met.is_recent.get_mut();
                !is_over && !listed.has(table)
            });
        }
    }

    /// How many answers have come.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Acquire)
    }

    fn read(&self) -> RwLockReadGuard<'_, Servers> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Servers> {
        self.servers.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is room for one more; if not, one that can be met again makes it.
fn has_room(tables: &mut Tables) -> bool {
    if tables.len() < MET_MAX {
        return true;
    }
    let old = tables.iter().filter(|(_, met)| met.makes_room());
    let old = old.min_by_key(|(_, met)| met.worth());
    let Some(old) = old.map(|(table, _)| table.clone()) else {
        return false;
    };
    tables.remove(&old);
    true
}

#[cfg(test)]
mod tests;
