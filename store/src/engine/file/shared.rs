//! What is known of a file before it is open, and what all who have it open share.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

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
    pub(super) threads: Arc<Semaphore>,
}

impl SharedFile {
    pub(super) fn suspended(&self) -> Option<FileError> {
        self.suspended.get().map(|error| match error {
            FileError::Replaced => FileError::Replaced,
            error => FileError::Suspended(error.to_string()),
        })
    }

    pub(super) fn suspend(&self, error: &FileError) {
        let _ = self.suspended.set(error.clone());
    }
}
