//! What a program does for one server that it feeds: figures, and what keeps it from being fed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::failure::Failure;
use crate::settings::FeedSettings;

/// What goes on for so long is told once more.
const TOLD_AGAIN: Duration = Duration::from_mins(10);

/// Figures of one server that is fed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedStats {
    /// Where it is.
    pub server: String,
    /// Whether it answered when it was last asked what it wants.
    pub is_up: bool,
    /// Ranges that it took, of ids and of time.
    pub ranges: u64,
    /// Ids in them.
    pub ids: u64,
    /// Ranges that were lost: it did not take them, or did not answer.
    pub lost: u64,
    /// What keeps it from being fed.
    pub trouble: Option<String>,
}

/// What a program does for one server.
#[derive(Debug)]
pub(crate) struct Feeder {
    pub(super) settings: FeedSettings,
    pub(super) is_up: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) ranges: AtomicU64,
    pub(super) ids: AtomicU64,
    pub(super) lost: AtomicU64,
    trouble: Mutex<Option<Trouble>>,
}

/// What keeps a server from being fed.
#[derive(Debug)]
struct Trouble {
    /// As it was met last.
    text: String,
    /// When the log told of it.
    told: Instant,
}

impl Trouble {
    /// Whether it is another than the failure that `text` tells of: not by how long is still to be waited.
    fn is_other(&self, text: &str) -> bool {
        !without_waits(&self.text).eq(without_waits(text))
    }
}

/// The words of a message, but for numbers of milliseconds.
fn without_waits(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(' ');
    let following = words.clone().skip(1).chain([""]);
    words
        .zip(following)
        .filter(|(word, next)| !is_wait(word, next))
        .map(|(word, _)| word)
}

fn is_wait(word: &str, next: &str) -> bool {
    next.starts_with("ms") && word.bytes().all(|byte| byte.is_ascii_digit())
}

impl Feeder {
    pub(crate) fn new(settings: FeedSettings) -> Self {
        Self {
            settings,
            is_up: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            ranges: AtomicU64::new(0),
            ids: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            trouble: Mutex::new(None),
        }
    }

    pub(crate) fn stats(&self) -> FeedStats {
        let figure = |of: &AtomicU64| of.load(Ordering::Relaxed);
        FeedStats {
            server: self.settings.address.clone(),
            is_up: self.is_up.load(Ordering::Relaxed),
            ranges: figure(&self.ranges),
            ids: figure(&self.ids),
            lost: figure(&self.lost),
            trouble: self.lock().as_ref().map(|trouble| trouble.text.clone()),
        }
    }

    /// Nothing more is handed over.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first of a kind is news, its repetitions are not for a long while.
    pub(super) fn failed(&self, failure: &Failure) {
        let server = &self.settings.address;
        let text = failure.to_string();
        let mut trouble = self.lock();
        let known = trouble
            .as_ref()
            .filter(|known| !known.is_other(&text) && known.told.elapsed() < TOLD_AGAIN)
            .map(|known| known.told);
        if known.is_some() {
            debug!(server, cause = failure.cause().name(), %failure, "still not fed");
        } else {
            warn!(server, cause = failure.cause().name(), %failure, "cannot feed");
        }
        let told = known.unwrap_or_else(Instant::now);
        *trouble = Some(Trouble { text, told });
    }

    pub(super) fn succeeded(&self) {
        if self.lock().take().is_some() {
            info!(server = self.settings.address, "feeding again");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::Trouble;

    #[test]
    fn a_wait_that_grows_shorter_is_no_news() {
        let known = Trouble {
            text: "all of 1-9 are in use; the next is free in 1208229 ms (or wait)".to_owned(),
            told: Instant::now(),
        };
        for (text, is_other) in [
            (
                "all of 1-9 are in use; the next is free in 1208229 ms (or wait)",
                false,
            ),
            (
                "all of 1-9 are in use; the next is free in 998 ms (or wait)",
                false,
            ),
            (
                "all of 1-7 are in use; the next is free in 1208229 ms (or wait)",
                true,
            ),
            (
                "all of 1-9 are in use; the next is free in 1208229 ms",
                true,
            ),
            ("tag \"orders\" is exhausted at 998", true),
        ] {
            assert_eq!(known.is_other(text), is_other, "{text}");
        }
    }
}
