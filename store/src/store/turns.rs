//! Turns of refills. There may be as many refills as tags, and after a start or a stall all of them come at the same moment; connections are few. So refills wait here for their
//! turn. Leases, looks and whatever else there is are few and must not be late: they do not stand behind refills.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// Connections that refills leave to everything else, where there are more.
const CONNECTIONS_FOR_OTHERS: usize = 1;

/// The turns of one store.
#[derive(Debug)]
pub(crate) struct Turns {
    /// For refills that ask the store.
    pub(crate) asking: Semaphore,
    /// For refills that nobody has asked for and that come next. All others of them stand behind those that somebody has asked for.
    pub(crate) unasked: Semaphore,
    /// How many turns have ended in time.
    ended: AtomicU64,
    /// One that takes so long has not, milliseconds.
    pub(crate) ms_max: u64,
}

/// The turn of one refill. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'t> {
    turns: &'t Turns,
    began: Instant,
    _asking: SemaphorePermit<'t>,
    _unasked: Option<SemaphorePermit<'t>>,
}

impl Turns {
    pub(super) fn new(connections_max: usize, ms_max: u64) -> Self {
        let count = connections_max
            .saturating_sub(CONNECTIONS_FOR_OTHERS)
            .max(1);
        Self {
            asking: Semaphore::new(count),
            unasked: Semaphore::new(count),
            ended: AtomicU64::new(0),
            ms_max,
        }
    }

    /// Of a refill that may ask.
    pub(crate) fn begin<'t>(
        &'t self,
        asking: SemaphorePermit<'t>,
        unasked: Option<SemaphorePermit<'t>>,
    ) -> Turn<'t> {
        Turn {
            turns: self,
            began: Instant::now(),
            _asking: asking,
            _unasked: unasked,
        }
    }

    /// Another number than before: whoever waits comes closer.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.began.elapsed() < Duration::from_millis(self.turns.ms_max) {
            self.turns.ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}
