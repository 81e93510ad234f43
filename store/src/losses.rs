//! Whether a connection to the store was lost since somebody last looked at what the store says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

/// What counts as lost when a program begins: of what was before its first connection it knows nothing, so it looks once.
const BEFORE: u64 = 1;

/// A server that has run for no longer counts as just started where nothing was lost yet, whole seconds.
const NEW_UP_S_MAX: u64 = 1;

/// Losses, and the looks behind them. Behind a loss the server may be another one, or may have older data.
#[derive(Debug)]
pub(crate) struct Losses {
    /// How many there were, with [`BEFORE`].
    lost: AtomicU64,
    /// How many there had been when somebody looked last.
    looked: AtomicU64,
    moments: Mutex<Moments>,
    /// Held by whoever looks.
    pub(crate) looking: AsyncMutex<()>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    /// When the store answered last before a loss.
    answered_at: Option<Instant>,
    /// Nothing is reserved before.
    settles_until: Option<Instant>,
}

impl Default for Losses {
    fn default() -> Self {
        Self {
            lost: AtomicU64::new(BEFORE),
            looked: AtomicU64::new(0),
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

    /// How many losses there are. Another number than before: something was lost since.
    pub(crate) fn count(&self) -> u64 {
        self.lost.load(Ordering::Acquire)
    }

    /// How many losses there are, if nobody has looked behind the last.
    pub(crate) fn to_look_at(&self) -> Option<u64> {
        let lost = self.count();
        (lost != self.looked.load(Ordering::Acquire)).then_some(lost)
    }

    /// Somebody has looked behind so many, and nothing is reserved before that moment.
    pub(crate) fn has_looked(&self, lost: u64, settles_until: Option<Instant>) {
        if settles_until.is_some() {
            self.moments().settles_until = settles_until;
        }
        self.looked.store(lost, Ordering::Release);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Losses;

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
        assert_eq!(losses.new_up_s_max(), Some(1));
        // Whatever else it has asked the server before.
        losses.note_answer();
        assert_eq!(losses.new_up_s_max(), Some(1));
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
}
