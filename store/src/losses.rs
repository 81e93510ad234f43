//! Whether a connection to the store was lost since somebody last looked at what the store says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

/// Losses, and the looks behind them. Behind a loss the server may be another one, or may have older data.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// How many there were.
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

impl Losses {
    /// A connection was lost, or something on one failed.
    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::AcqRel);
    }

    /// The store has answered.
    pub(crate) fn note_answer(&self) {
        if self.to_look_at().is_none() {
            self.moments().answered_at = Some(Instant::now());
        }
    }

    /// When it answered last before a connection was lost.
    pub(crate) fn answered_at(&self) -> Option<Instant> {
        self.moments().answered_at
    }

    /// How many losses there are, if nobody has looked behind the last.
    pub(crate) fn to_look_at(&self) -> Option<u64> {
        let lost = self.lost.load(Ordering::Acquire);
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

    #[test]
    fn a_loss_during_a_look_is_looked_at_again() {
        let losses = Losses::default();
        assert_eq!(losses.to_look_at(), None);
        losses.note_answer();
        let answered_at = losses.answered_at();
        losses.lose();
        let first = losses.to_look_at().unwrap();
        // Before somebody has looked it still is the moment before the loss.
        losses.note_answer();
        assert_eq!(losses.answered_at(), answered_at);
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
}
