//! Those who wait until the store has confirmed that this program still is the active one, as `order::confirm` argues.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use keywright_core::Cause;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::order::confirm::Confirmations;

/// What became of a confirmation, for one who waits for it.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// It stands.
    Stands,
    /// It does not: what was taken is given up.
    GivenUp,
    /// Nobody knows, and another one may stand.
    Unknown(Failure),
    /// The store cannot confirm.
    Refused(Failure),
}

/// What is known of ids that were taken of a strict tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// They may be told.
    Stands,
    /// They may not, ever: another program issues, or may. Whoever asked for them asks again.
    GivenUp,
}

/// Counts for the statistics.
#[derive(Debug, Default)]
pub(crate) struct ConfirmFigures {
    /// Those that stand.
    pub(crate) confirmations: AtomicU64,
    /// How long they took.
    pub(crate) confirm_us: AtomicU64,
    /// Those who waited for them and were let go.
    pub(crate) confirmed: AtomicU64,
    /// Confirmations that the store did not give.
    pub(crate) unconfirmed: AtomicU64,
}

/// Who waits, and who wakes whom.
#[derive(Debug, Default)]
pub(crate) struct Confirming {
    confirmations: Mutex<Confirmations<oneshot::Sender<Verdict>>>,
    pub(crate) wake: Notify,
    pub(crate) figures: ConfirmFigures,
}

impl Confirming {
    /// Waits until it is confirmed that this epoch still is. The request was read, and its ids are taken.
    ///
    /// # Errors
    /// The store cannot confirm it, or nobody knows until then: the ids are given up.
    pub(crate) async fn confirm(
        &self,
        epoch: u64,
        deadline: Instant,
    ) -> Result<Confirmation, Failure> {
        let mut last = None;
        loop {
            let (tell, told) = oneshot::channel();
            self.confirmations().join(epoch, tell);
            self.wake.notify_one();
            match timeout_at(deadline, told).await {
                Ok(Ok(Verdict::Stands)) => return Ok(Confirmation::Stands),
                Ok(Ok(Verdict::GivenUp)) => return Ok(Confirmation::GivenUp),
                Ok(Ok(Verdict::Refused(failure))) => return Err(failure),
                Ok(Ok(Verdict::Unknown(failure))) => last = Some(failure),
                Ok(Err(_)) => {
                    return Err(Failure::new(
                        Cause::Draining,
                        "no keys are issued any more: shutting down",
                    ));
                }
                Err(_) => return Err(unconfirmed(last)),
            }
        }
    }

    /// The epoch that is to be confirmed now.
    pub(crate) fn begin(&self) -> Option<u64> {
        let mut confirmations = self.confirmations();
        confirmations.begin()
    }

    /// Tells all for whom a confirmation was.
    pub(crate) fn end(&self, verdict: &Verdict) {
        let all = self.confirmations().end();
        let figures = &self.figures;
        match verdict {
            Verdict::Stands => {
                let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
                figures.confirmed.fetch_add(count, Ordering::Relaxed);
            }
            Verdict::GivenUp => {}
            Verdict::Unknown(_) | Verdict::Refused(_) => {
                figures.unconfirmed.fetch_add(1, Ordering::Relaxed);
            }
        }
        tell(all, verdict);
    }

    /// Nobody is confirmed any more: who waits is told that it ends.
    pub(crate) fn close(&self) {
        drop(self.confirmations().close());
    }

    pub(crate) fn count(&self, took_us: u64) {
        let figures = &self.figures;
        figures.confirmations.fetch_add(1, Ordering::Relaxed);
        figures.confirm_us.fetch_add(took_us, Ordering::Relaxed);
    }

    fn confirmations(&self) -> MutexGuard<'_, Confirmations<oneshot::Sender<Verdict>>> {
        self.confirmations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who has given up meanwhile hears nothing.
fn tell(all: Vec<oneshot::Sender<Verdict>>, verdict: &Verdict) {
    for waiting in all {
        drop(waiting.send(verdict.clone()));
    }
}

/// It was asked for as long as a request waits.
fn unconfirmed(last: Option<Failure>) -> Failure {
    let message = "the store has not confirmed in time that this program is the one that gives keys of ordered tags";
    let failure = match last {
        Some(last) => Failure::new(Cause::NobodyActive, format!("{message}: {last}")),
        None => Failure::new(Cause::NobodyActive, message),
    };
    failure.hint("ask again; the log says what is in the way if that lasts")
}
