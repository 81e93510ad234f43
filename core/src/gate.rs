//! Who is in a gate: one at a time makes a bound durable and publishes it, others wait.

use crate::sync::{AtomicI32, Ordering};

/// The process that is in a gate; all zero is a free one.
///
/// Whoever enters sees all that the one before did inside: entering acquires what leaving released. So what only those inside read and
/// write needs no order of its own.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Holder(AtomicI32);

impl Holder {
    /// Enters if nobody is inside. `process` is not 0.
    pub fn try_enter(&self, process: i32) -> bool {
        let entered = self
            .0
            .compare_exchange(0, process, Ordering::Acquire, Ordering::Relaxed);
        entered.is_ok()
    }

    /// Leaves: by whoever is inside.
    pub fn leave(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Who is inside at this moment. It orders nothing: whoever goes by it enters, or looks again.
    pub fn get(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|process| *process != 0)
    }
}
