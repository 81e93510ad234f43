//! What statements that are gathered or prepared may take of memory, over all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keywright_session::Budget;

/// A statement and what it is rewritten to: both are there at the same time.
const COPIES: usize = 2;

/// The memory of all connections for statements that must be there whole.
#[derive(Debug)]
pub struct Memory {
    taken_bytes: AtomicUsize,
    bytes_max: usize,
}

impl Memory {
    /// Of so many bytes at most.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            taken_bytes: AtomicUsize::new(0),
            bytes_max,
        }
    }
}

impl Default for Memory {
    /// Without a limit.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

/// The texts of prepared statements, of which there is one copy.
impl Budget for Memory {
    fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| {
            let after = taken.checked_add(bytes)?;
            (after <= self.bytes_max).then_some(after)
        };
        let taken = &self.taken_bytes;
        let took = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        took.is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.taken_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What one buffer has taken of it; given back when the buffer is gone.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Memory>,
    bytes: usize,
}

impl Share {
    pub(crate) fn new(of: Arc<Memory>) -> Self {
        Self { of, bytes: 0 }
    }

    /// Takes what a buffer of that size needs instead of what was taken; false, and nothing changes, if there is not so much.
    pub(crate) fn hold(&mut self, buffer_bytes: usize) -> bool {
        let wanted = buffer_bytes.saturating_mul(COPIES);
        let (before, bytes_max) = (self.bytes, self.of.bytes_max);
        let replaced = |taken: usize| {
            let after = taken.saturating_sub(before).checked_add(wanted)?;
            (wanted <= before || after <= bytes_max).then_some(after)
        };
        let taken = &self.of.taken_bytes;
        let held = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, replaced);
        if held.is_ok() {
            self.bytes = wanted;
        }
        held.is_ok()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_there_is_and_all_comes_back() {
        let memory = Arc::new(Memory::new(100));
        let (mut one, mut other) = (
            Share::new(Arc::clone(&memory)),
            Share::new(Arc::clone(&memory)),
        );
        assert!(one.hold(30));
        assert!(!other.hold(30));
        assert!(other.hold(20));
        assert!(!one.hold(31));
        assert!(one.hold(10));
        assert!(other.hold(40));
        drop((one, other));
        assert!(Share::new(memory).hold(50));
    }
}
