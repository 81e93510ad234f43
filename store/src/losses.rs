//! Whether a connection to the store was lost since somebody last looked at what the store says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

/// What counts as lost when a program begins: of what was before its first connection it knows nothing, so it looks once.
const BEFORE: u64 = 1;

/// A server that has run for no longer counts as just started where nothing was lost yet, whole seconds. MySQL and MariaDB may say one second too much.
const NEW_UP_S_MAX: u64 = 2;

/// A server that does not say how long it has run counts as just started again only so long after nothing was reserved for that reason, milliseconds.
/// Otherwise keys would stop for as long as something fails now and then.
const SETTLED_MS_MIN: u64 = 10_000;

/// Losses, and the looks behind them. Behind a loss the server may be another one, or may have older data.
#[derive(Debug)]
pub(crate) struct Losses {
    /// How many there were, with [`BEFORE`].
    lost: AtomicU64,
    /// How many there had been when somebody looked last.
    looked: AtomicU64,
    /// How many looks have found that the store's server may have been started since this program knew it.
    restarts: AtomicU64,
    moments: Mutex<Moments>,
    /// Held by whoever looks.
    pub(crate) looking: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct Moments {
    /// The server that somebody looked at last.
    server: Option<String>,
    /// When the store answered last before a loss.
    answered_at: Option<Instant>,
    /// Nothing is reserved before.
    settles_until: Option<Instant>,
    /// Until when nothing was reserved from servers that were met a moment ago.
    settled: Vec<(String, Instant)>,
    /// Where this program has recorded whose place the server took.
    recorded_at: Option<Place>,
}

/// Where something was written: on which server, and behind how many looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    server: String,
    looked: u64,
}

impl Default for Losses {
    fn default() -> Self {
        Self {
            lost: AtomicU64::new(BEFORE),
            looked: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
            moments: Mutex::default(),
            looking: AsyncMutex::default(),
        }
    }
}

impl Losses {
    /// A connection was lost, or something on one failed.
    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::AcqRel);
    }

    /// The store has answered.
    pub(crate) fn note_answer(&self) {
        if self.count() == BEFORE || self.to_look_at().is_none() {
            self.moments().answered_at = Some(Instant::now());
        }
    }

    /// A server that has run for no longer may have been started since this program knows it, whole seconds; `None`: any may.
    ///
    /// One that a program meets first may have been started just before. One that did not answer at first may just have been started however long
    /// it has run by its own word, which counts the time that it took to recover.
    pub(crate) fn new_up_s_max(&self) -> Option<u64> {
        if self.count() == BEFORE {
            return Some(NEW_UP_S_MAX);
        }
        let answered_at = self.moments().answered_at;
        // It counts whole seconds.
        answered_at.map(|answered_at| answered_at.elapsed().as_secs().saturating_add(1))
    }

    /// Whether a server that does not say how long it has run is to be taken for one that was restarted.
    pub(crate) fn may_settle_again(&self) -> bool {
        self.moments().settles_until.is_none_or(is_over)
    }

    /// Another number than before: the store's server may have been started since.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Acquire)
    }

    /// Where what is written now is. It is another place than before when somebody has looked behind a loss since.
    pub(crate) fn place(&self, server: &str) -> Place {
        Place {
            server: server.to_owned(),
            looked: self.looked.load(Ordering::Acquire),
        }
    }

    /// Whether this program has recorded there whose place the server took.
    pub(crate) fn is_recorded_at(&self, place: &Place) -> bool {
        self.moments().recorded_at.as_ref() == Some(place)
    }

    /// It has, and that is committed.
    pub(crate) fn note_recorded(&self, at: Place) {
        self.moments().recorded_at = Some(at);
    }

    /// How many losses there are.
    fn count(&self) -> u64 {
        self.lost.load(Ordering::Acquire)
    }

    /// How many losses there are, if nobody has looked behind the last.
    pub(crate) fn to_look_at(&self) -> Option<u64> {
        let lost = self.count();
        (lost != self.looked.load(Ordering::Acquire)).then_some(lost)
    }

    /// Somebody has looked behind so many. Of a server that may have been started since, nothing is reserved before that moment.
    pub(crate) fn has_looked(&self, lost: u64, settles_until: Option<Instant>) {
        if settles_until.is_some() {
            self.moments().settles_until = settles_until;
            self.restarts.fetch_add(1, Ordering::AcqRel);
        }
        self.looked.store(lost, Ordering::Release);
    }

    /// Whether somebody has looked at another server before this one: a replica may have taken its place, without the last of what others have seen.
    pub(crate) fn is_another(&self, server: &str) -> bool {
        let moments = self.moments();
        moments.server.as_deref().is_some_and(|its| its != server)
    }

    /// Whether nothing was reserved from this one for that reason a moment ago. Otherwise keys would stop for as long as a program is led to one and another in turn.
    pub(crate) fn may_settle_on(&self, server: &str) -> bool {
        let moments = self.moments();
        let mut settled = moments.settled.iter();
        settled.all(|(its, until)| its != server || is_over(*until))
    }

    /// Somebody has looked at this one, of which nothing is reserved before that moment.
    pub(crate) fn note_server(&self, server: &str, settles_until: Option<Instant>) {
        let mut moments = self.moments();
        moments.server = Some(server.to_owned());
        moments.settled.retain(|(_, until)| !is_over(*until));
        if let Some(until) = settles_until {
            moments.settled.push((server.to_owned(), until));
        }
    }

    /// Whether nothing is reserved yet.
    pub(crate) fn settles(&self) -> bool {
        let until = self.moments().settles_until;
        until.is_some_and(|until| Instant::now() < until)
    }

    fn moments(&self) -> MutexGuard<'_, Moments> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether nothing is reserved again for the reason that ended then.
fn is_over(until: Instant) -> bool {
    until + Duration::from_millis(SETTLED_MS_MIN) <= Instant::now()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{Losses, NEW_UP_S_MAX, SETTLED_MS_MIN};

    /// Losses of a program that has met the server, and looked.
    fn looked() -> Losses {
        let losses = Losses::default();
        let first = losses.to_look_at().unwrap();
        losses.has_looked(first, None);
        losses.note_answer();
        losses
    }

    #[test]
    fn a_loss_during_a_look_is_looked_at_again() {
        let losses = looked();
        assert_eq!(losses.to_look_at(), None);
        losses.lose();
        let first = losses.to_look_at().unwrap();
        losses.lose();
        losses.has_looked(first, None);
        let second = losses.to_look_at().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        losses.has_looked(second, Some(until));
        assert_eq!(losses.to_look_at(), None);
        assert!(losses.settles());
        losses.lose();
        losses.has_looked(second + 1, None);
        assert!(losses.settles());
    }

    #[test]
    fn a_program_that_begins_looks_once_and_takes_a_young_server_for_one_that_was_restarted() {
        let losses = Losses::default();
        assert!(losses.to_look_at().is_some());
        assert_eq!(losses.new_up_s_max(), Some(NEW_UP_S_MAX));
        // Whatever else it has asked the server before.
        losses.note_answer();
        assert_eq!(losses.new_up_s_max(), Some(NEW_UP_S_MAX));
        assert_eq!(looked().to_look_at(), None);
    }

    #[test]
    fn a_server_that_did_not_answer_a_program_that_begins_may_have_been_started_just_now() {
        let losses = Losses::default();
        losses.lose();
        // What it answers then is no evidence: others may not have looked yet.
        losses.note_answer();
        assert_eq!(losses.new_up_s_max(), None);
    }

    #[test]
    fn behind_a_loss_a_server_is_new_that_was_started_since_it_answered() {
        let losses = looked();
        let before = Instant::now().checked_sub(Duration::from_secs(30));
        losses.moments().answered_at = before;
        losses.lose();
        // Before somebody has looked it still is the moment before the loss.
        losses.note_answer();
        let up_s_max = losses.new_up_s_max().unwrap();
        assert!((31..60).contains(&up_s_max), "{up_s_max}");
    }

    /// A lease is compared with the store behind a restart, and not whenever something fails.
    #[test]
    fn only_a_look_that_finds_a_restart_counts_as_one() {
        let losses = looked();
        for (settles_until, restarts) in [(None, 0), (Some(Instant::now()), 1)] {
            losses.lose();
            assert_eq!(losses.restarts(), 0);
            let lost = losses.to_look_at().unwrap();
            losses.has_looked(lost, settles_until);
            assert_eq!(losses.restarts(), restarts);
        }
    }

    #[test]
    fn another_server_is_one_behind_the_one_that_was_looked_at() {
        let losses = Losses::default();
        assert!(!losses.is_another("one"));
        losses.note_server("one", None);
        assert!(!losses.is_another("one"));
        assert!(losses.is_another("two"));
        losses.note_server("two", None);
        assert!(losses.is_another("one") && !losses.is_another("two"));
    }

    /// A crash, a restart and a failover within seconds: each server is waited for.
    #[test]
    fn each_server_settles_once_within_some_seconds() {
        let losses = Losses::default();
        losses.note_server("one", Some(Instant::now()));
        assert!(!losses.may_settle_on("one") && losses.may_settle_on("two"));
        losses.note_server("two", Some(Instant::now()));
        assert!(!losses.may_settle_on("one") && !losses.may_settle_on("two"));
        let ms_ago = |ms| Instant::now().checked_sub(Duration::from_millis(ms));
        losses.moments().settled = Vec::new();
        losses.note_server("one", ms_ago(SETTLED_MS_MIN));
        assert!(losses.may_settle_on("one"));
    }

    #[test]
    fn a_server_that_never_says_how_long_it_has_run_does_not_stop_keys_for_ever() {
        let losses = looked();
        assert!(losses.may_settle_again());
        let settled = |ms_ago: u64| {
            let until = Instant::now().checked_sub(Duration::from_millis(ms_ago));
            losses.moments().settles_until = until;
            losses.may_settle_again()
        };
        assert!(!settled(0));
        assert!(!settled(SETTLED_MS_MIN / 2));
        assert!(settled(SETTLED_MS_MIN));
    }
}
