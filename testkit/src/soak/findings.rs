//! What is found out while things happen: ids, refusals, and the first fault.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ledger::Ledger;
use super::verdict::Verdict;

/// Shared by all who draw.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) ledger: Ledger,
    refusals: Mutex<BTreeMap<String, u64>>,
    fault: Mutex<Option<String>>,
    stop: AtomicBool,
    sessions: AtomicU32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Findings {
    /// A number for another session.
    pub(super) fn next_session(&self) -> u32 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes what became of a statement that failed; whether the session is over.
    pub(super) fn meets(&self, what: &str, verdict: Verdict) -> bool {
        match verdict {
            Verdict::ThrownOut => true,
            Verdict::Refused(state) => {
                *lock(&self.refusals).entry(state).or_default() += 1;
                false
            }
            Verdict::Fault(why) => {
                self.fault(format!("{what}: {why}"));
                true
            }
        }
    }

    /// Notes the first fault, which ends the soak.
    pub(super) fn fault(&self, why: String) {
        lock(&self.fault).get_or_insert(why);
        self.stop();
    }

    pub(super) fn first_fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    pub(super) fn refusals(&self) -> BTreeMap<String, u64> {
        lock(&self.refusals).clone()
    }

    /// Nobody draws any more.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
