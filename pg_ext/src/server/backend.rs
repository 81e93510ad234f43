//! State of one backend process. PostgreSQL backends run one thread, so a plain static is enough and
//! costs nothing on the hot path, where a thread-local would cost a call.

use std::cell::Cell;

/// A value owned by this backend process.
pub struct BackendCell<T>(Cell<T>);

// SAFETY: a PostgreSQL backend executes all extension code on its main thread, and forked children get
// their own copy of the page; so no two threads ever reach the same cell.
unsafe impl<T> Sync for BackendCell<T> {}

impl<T> BackendCell<T> {
    /// A cell that holds `value` in every new backend.
    pub const fn new(value: T) -> Self {
        Self(Cell::new(value))
    }

    /// Puts `value` in and gives back what was there.
    pub fn replace(&self, value: T) -> T {
        self.0.replace(value)
    }
}

impl<T: Copy> BackendCell<T> {
    /// The value now.
    #[inline]
    pub fn get(&self) -> T {
        self.0.get()
    }

    /// Puts `value` in.
    #[inline]
    pub fn set(&self, value: T) {
        self.0.set(value);
    }
}
