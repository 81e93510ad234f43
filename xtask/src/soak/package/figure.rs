//! What a walk took, and how long it waits.

use std::time::Duration;

/// How long a line of the log may take that a page shows.
pub(super) const LOG_WAIT_MAX: Duration = Duration::from_secs(60);

/// What a walk took.
pub(super) struct Figure {
    pub(super) what: String,
    pub(super) took: Duration,
}

impl Figure {
    pub(super) fn new(what: impl Into<String>, took: Duration) -> Figure {
        Figure {
            what: what.into(),
            took,
        }
    }
}
