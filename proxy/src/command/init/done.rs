//! What `init` says that it has done, and why it could not.

use std::cell::Cell;
use std::fmt;

use keywright_store::Failure;

/// What was done is printed, and noted that something was: whoever runs `init` again is told that nothing was left to do.
#[derive(Default)]
pub(super) struct Done(Cell<bool>);

impl Done {
    pub(super) fn tell(&self, what: fmt::Arguments<'_>) {
        self.0.set(true);
        println!("{what}");
    }

    pub(super) fn is_nothing(&self) -> bool {
        !self.0.get()
    }
}

pub(super) fn failed(failure: Failure) -> anyhow::Error {
    anyhow::anyhow!("{failure}")
}
