//! What a program does for one server that it feeds: figures, and what keeps it from being fed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::trouble::{Subject, Troubles};
use crate::failure::Failure;
use crate::settings::FeedSettings;

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
    troubles: Mutex<Troubles>,
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
            troubles: Mutex::default(),
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
            trouble: self.lock().first().map(str::to_owned),
        }
    }

    /// Nothing more is handed over.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Troubles> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first of a kind is news, its repetitions are not for a long while.
    pub(super) fn failed(&self, subject: &Subject, failure: &Failure) {
        let server = &self.settings.address;
        let is_news = self.lock().failed(subject, failure.to_string());
        if is_news {
            warn!(server, %subject, cause = failure.cause().name(), %failure, "cannot feed");
        } else {
            debug!(server, %subject, cause = failure.cause().name(), %failure, "still not fed");
        }
    }

    pub(super) fn succeeded(&self, subject: &Subject) {
        let known = self.lock().succeeded(subject);
        if let Some(subject) = known {
            info!(server = self.settings.address, %subject, "feeding again");
        }
    }

    /// These want something now. Who has wanted nothing for long is in trouble no more.
    pub(super) fn wanted_by(&self, subjects: impl Iterator<Item = Subject>) {
        let over = self.lock().wanted_by(subjects, Instant::now());
        for subject in over {
            info!(server = self.settings.address, %subject, "wants nothing any more");
        }
    }
}
