//! What is known of a file before it is open, and what all who have it open share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::Semaphore;

use super::commits::{Commit, Commits};
use super::error::FileError;

/// Where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSettings {
    /// Absolute.
    pub(crate) path: PathBuf,
    /// Also where it may be lost, or its locks may not hold.
    pub(crate) any_file_system: bool,
}

/// What all connections of this program to a file share.
#[derive(Debug)]
pub(super) struct SharedFile {
    /// How long a lock is waited for, milliseconds.
    pub(super) busy_ms: u64,
    /// Why nothing is asked of it any more.
    pub(super) suspended: OnceLock<FileError>,
    /// The last commit that this program knows of.
    pub(super) seen: Mutex<Option<Commit>>,
    pub(super) threads: Arc<Semaphore>,
}

impl SharedFile {
    pub(super) fn suspended(&self) -> Option<FileError> {
        self.suspended.get().map(|error| match error {
            told @ (FileError::Replaced | FileError::Overwritten) => told.clone(),
            error => FileError::Suspended(error.to_string()),
        })
    }

    /// Whether nobody did before.
    pub(super) fn suspend(&self, error: &FileError) -> bool {
        self.suspended.set(error.clone()).is_ok()
    }

    /// Whether this program has seen a commit of the file.
    pub(super) fn has_seen(&self) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some()
    }

    /// Whether the file still has what this program has seen of it. It is asked by who has its lock, so that nobody commits meanwhile.
    pub(super) fn is_as_seen(&self, found: &Commits) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().is_none_or(|seen| found.has(seen))
    }

    /// Remembers a commit that is in the file, unless a later one is known: whoever made that may have been faster to say so.
    pub(super) fn remember(&self, commit: Commit) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref().is_none_or(|seen| commit.is_later_than(seen)) {
            *seen = Some(commit);
        }
    }
}
