//! What may be wrong with a store's file.

use keywright_core::Cause;
use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
use thiserror::Error;

/// Why the file cannot be used, or a statement was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum FileError {
    #[error("there is no such file")]
    Missing,
    /// Only `init` says so: to everybody else a file is missing, which may have been there.
    #[error("the directory {0} is not there")]
    NoDirectory(String),
    #[error("it is not a file, or has several names")]
    NotPlain,
    /// Programs that see it elsewhere have another log of what was committed.
    #[error("it is mounted by itself, without its directory")]
    Mounted,
    #[error("it has none of its tables yet")]
    Empty,
    #[error("it was not made by Keywright")]
    Foreign,
    #[error("it may not be opened: {0}")]
    Denied(String),
    #[error("it is read-only")]
    ReadOnly,
    #[error("the disk is full")]
    Full,
    #[error("another program has held its lock for more than {ms} ms")]
    Busy { ms: u64 },
    #[error("no answer within {ms} ms")]
    Late { ms: u64 },
    /// It was made elsewhere, so that its original may be in use.
    #[error("it was copied or moved: {0}")]
    Moved(String),
    /// While it was open.
    #[error("another file is in its place now, or in that of its -wal or -shm, or none")]
    Replaced,
    /// As by `cp backup store.db`, which leaves the file the same.
    #[error("an older state was written into it while a program used it")]
    Overwritten,
    #[error("it is on a file system of kind {0}, which may lose what was written, or its locks")]
    FileSystem(String),
    #[error("the setting {name} is {value}, not {wanted}")]
    Setting {
        name: &'static str,
        value: String,
        wanted: &'static str,
    },
    /// Nothing is read or written until the program starts again.
    #[error("it failed, and is not used any more: {0}")]
    Suspended(String),
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    Io(String),
    #[error("{0}")]
    NoTable(String),
    #[error("{0}")]
    Duplicate(String),
    /// SQLite's integers are signed.
    #[error("{0} is more than it can hold")]
    TooLarge(u64),
    #[error("{0}")]
    Other(String),
}

impl FileError {
    /// `busy_ms`: how long a lock is waited for.
    pub(super) fn of(error: &rusqlite::Error, busy_ms: u64) -> Self {
        let text = error.to_string();
        let Some(found) = error.sqlite_error() else {
            return Self::Other(text);
        };
        let (code, extended) = (found.code, found.extended_code);
        match code {
            // Its -shm could not be made longer, opened or mapped: nothing of the file was read or written.
            ErrorCode::SystemIoFailure if extended == SQLITE_IOERR_SHMSIZE => Self::Full,
            ErrorCode::SystemIoFailure
                if matches!(extended, SQLITE_IOERR_SHMOPEN | SQLITE_IOERR_SHMMAP) =>
            {
                Self::Denied(text)
            }
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { ms: busy_ms },
            ErrorCode::ReadOnly => Self::ReadOnly,
            ErrorCode::DiskFull => Self::Full,
            ErrorCode::SystemIoFailure => Self::Io(text),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Damaged(text),
            ErrorCode::PermissionDenied
            | ErrorCode::CannotOpen
            | ErrorCode::AuthorizationForStatementDenied => Self::Denied(text),
            ErrorCode::ConstraintViolation => Self::Duplicate(text),
            _ if text.contains("no such table") || text.contains("no such column") => {
                Self::NoTable(text)
            }
            _ => Self::Other(text),
        }
    }

    pub(super) fn of_io(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::Missing,
            std::io::ErrorKind::PermissionDenied => Self::Denied(error.to_string()),
            std::io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io(error.to_string()),
        }
    }

    /// Whether what the file holds is not known any more: what the kernel could not write it may have forgotten, and read as written; and
    /// who has a file open that has no name any more may not open the one in its place beside it.
    pub(super) fn suspends(&self) -> bool {
        matches!(
            self,
            Self::Io(_) | Self::Damaged(_) | Self::Replaced | Self::Overwritten
        )
    }

    /// Whether the file was there and could be talked to.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(
            self,
            Self::NoTable(_) | Self::Duplicate(_) | Self::TooLarge(_) | Self::Other(_)
        )
    }

    pub(crate) fn is_missing_table(&self) -> bool {
        matches!(self, Self::NoTable(text) if text.contains("no such table"))
    }

    pub(crate) fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(_))
    }

    pub(crate) fn cause(&self) -> Cause {
        match matches!(
            self,
            Self::Damaged(_) | Self::Overwritten | Self::TooLarge(_)
        ) {
            true => Cause::BoundDamaged,
            false => Cause::StoreUnavailable,
        }
    }

    /// What the reader can do.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            // Whoever makes a new one in place of one that is away gets the first ids again.
            Self::Missing => Some(
                "is its disk mounted? keywright init is for a store that never was, or was lost: then keywright advance, too",
            ),
            Self::NoDirectory(_) => Some(
                "is its disk mounted? for a new store make the directory, which the program's user must be able to write",
            ),
            Self::Empty | Self::NoTable(_) => Some("run keywright init"),
            Self::Foreign | Self::NotPlain => Some("name another file in url of [store]"),
            Self::Mounted => Some("mount its directory, into each container that uses the file"),
            Self::Denied(_) | Self::ReadOnly => {
                Some("the program's user must be able to write the file and its directory")
            }
            Self::Full => Some("make room: it goes on by itself"),
            Self::Busy { ms: _ } => Some("is a program stopped that uses the file?"),
            Self::Late { ms: _ } => {
                Some("is the disk slow, or a program stopped that uses the file?")
            }
            Self::Moved(_) => Some(
                "if the other file is used no more: keywright init --accept-moved-file; if it was used since, keywright advance, too",
            ),
            Self::Replaced => Some("stop all programs that use it, then start them again"),
            Self::Overwritten => Some(
                "stop all programs that use it; restore it anew, or keywright init --accept-moved-file; then keywright store restored",
            ),
            Self::FileSystem(_) => {
                Some("keep it on a disk of this machine, or say any_file_system = true")
            }
            Self::Suspended(_) | Self::Io(_) | Self::Damaged(_) => {
                Some("look at the disk, then start the program again")
            }
            Self::Setting { .. } | Self::Duplicate(_) | Self::TooLarge(_) | Self::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi::{
        Error, SQLITE_FULL, SQLITE_IOERR_FSYNC, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN,
        SQLITE_IOERR_SHMSIZE,
    };

    use super::FileError;

    /// What was written is in doubt only where the kernel may have lost it.
    #[test]
    fn a_log_that_has_no_room_in_memory_or_on_the_disk_ends_nothing() {
        let of = |code| FileError::of(&rusqlite::Error::SqliteFailure(Error::new(code), None), 1);
        assert_eq!(of(SQLITE_FULL), FileError::Full);
        assert_eq!(of(SQLITE_IOERR_SHMSIZE), FileError::Full);
        for code in [SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMMAP] {
            assert!(matches!(of(code), FileError::Denied(_)), "{:?}", of(code));
            assert!(!of(code).suspends());
        }
        assert!(of(SQLITE_IOERR_FSYNC).suspends());
    }
}
