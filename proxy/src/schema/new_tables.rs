//! Statements on tables that are new to the program wait here until their server was asked whether the program's own account may see them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::unshown::NEW_TABLES_MS_MAX;

/// How long a statement waits for what the server says of its table, milliseconds: for all that one question may take, and the way of its answer. Of those
/// that follow where one brings no answer the last may be under way then.
pub(crate) const ANSWER_MS_MAX: u64 = NEW_TABLES_MS_MAX + 1_000;
/// How often the log says why a listener's server does not answer, seconds: not for each statement.
const WARN_EVERY_S: u64 = 60;

/// How many tables that no `admin` may see the log names within a while: of the rest it says that there are more.
const DENIED_MAX: u32 = 20;
const DENIED_EVERY_S: u64 = 60;

/// What the log says of a table that no `admin` may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// A line.
    Line,
    /// A line, and that it names no more of them for a while.
    LastLine,
    /// Nothing.
    Nothing,
}

/// Those that the log has named.
#[derive(Debug, Default)]
struct Named {
    since: Option<Instant>,
    count: u32,
}

/// Brings together statements that wait and whoever asks.
#[derive(Debug, Default)]
pub struct NewTables {
    waiting: Notify,
    /// `keywright_session::SchemaChanges::answers`.
    answers: watch::Sender<u64>,
    /// When the log said last why a listener's server does not answer.
    warned_at: Mutex<BTreeMap<String, Instant>>,
    /// Tables that the log has named since no `admin` may see them.
    named: Mutex<Named>,
    /// By listener, the server that its `admin` led to when a schema refresh read it last, in the words of the store.
    servers: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

impl NewTables {
    /// Has the servers asked, unless they are being asked, and waits until there are more answers than so many.
    pub(crate) async fn answered(&self, answers: u64) {
        let mut now = self.answers.subscribe();
        self.wake();
        // Its sender is here.
        let _ = now.wait_for(|now| *now > answers).await;
    }

    /// A statement waits.
    pub fn wake(&self) {
        self.waiting.notify_one();
    }

    /// Returns when a statement has begun to wait since it last did.
    pub async fn waited_for(&self) {
        self.waiting.notified().await;
    }

    /// There are so many answers.
    pub fn tell(&self, answers: u64) {
        // Those who ask several servers at once may be late.
        self.answers
            .send_modify(|known| *known = (*known).max(answers));
    }

    /// A schema refresh has read this server by a listener's `admin`.
    pub fn note_server(&self, listener: &str, server: &Arc<[u8]>) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.insert(listener.to_owned(), Arc::clone(server));
    }

    /// The server that a listener's `admin` led to when a schema refresh read it last; `None`: it never did.
    pub fn server(&self, listener: &str) -> Option<Arc<[u8]>> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(listener).cloned()
    }

    /// What the log is to say of one more table that no `admin` may see, which counts as done.
    pub fn name_denied(&self) -> Naming {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let every = Duration::from_secs(DENIED_EVERY_S);
        if named.since.is_none_or(|since| since.elapsed() >= every) {
            *named = Named {
                since: Some(Instant::now()),
                count: 0,
            };
        }
        named.count = named.count.saturating_add(1);
        match named.count.cmp(&DENIED_MAX) {
            Ordering::Less => Naming::Line,
            Ordering::Equal => Naming::LastLine,
            Ordering::Greater => Naming::Nothing,
        }
    }

    /// Whether the log is to say now why a listener's server does not answer, which counts as done.
    pub fn may_warn(&self, listener: &str) -> bool {
        let mut warned_at = self
            .warned_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let every = Duration::from_secs(WARN_EVERY_S);
        let last = warned_at.get(listener);
        let is_due = last.is_none_or(|last| last.elapsed() >= every);
        if is_due {
            warned_at.insert(listener.to_owned(), Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::join;
    use tokio::time::timeout;

    use super::{DENIED_MAX, Naming, NewTables};

    const WAIT_S_MAX: u64 = 30;

    #[test]
    fn the_log_does_not_say_it_for_each_statement() {
        let new_tables = NewTables::default();
        assert!(new_tables.may_warn("127.0.0.1:1"));
        assert!(new_tables.may_warn("127.0.0.1:2"));
        assert!(!new_tables.may_warn("127.0.0.1:1"));
    }

    #[test]
    fn the_log_does_not_name_all_tables_of_a_crowd() {
        let new_tables = NewTables::default();
        for _ in 1..DENIED_MAX {
            assert_eq!(new_tables.name_denied(), Naming::Line);
        }
        assert_eq!(new_tables.name_denied(), Naming::LastLine);
        for _ in 0..DENIED_MAX {
            assert_eq!(new_tables.name_denied(), Naming::Nothing);
        }
    }

    #[tokio::test]
    async fn who_waits_has_it_asked_and_hears_of_the_answer() {
        let new_tables = NewTables::default();
        let test = async {
            let asks = async {
                new_tables.waited_for().await;
                new_tables.tell(1);
            };
            join!(new_tables.answered(0), asks);
            // It came before anybody waited.
            new_tables.answered(0).await;
            new_tables.tell(3);
            new_tables.tell(2);
            new_tables.answered(2).await;
        };
        let test = timeout(Duration::from_secs(WAIT_S_MAX), test);
        test.await.expect("nobody hears of it");
    }
}
