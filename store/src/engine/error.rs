//! Why a transaction failed, whatever the engine.

use std::error::Error;

use keywright_core::Cause;
use thiserror::Error as ThisError;

use super::file::FileError;

/// Why a transaction failed. Whatever it had sent may or may not have been done.
#[derive(Debug, ThisError)]
pub(crate) enum StoreError {
    /// It took too long, or no connection came free.
    #[error("no answer within {ms} ms")]
    TimedOut { ms: u64 },
    /// Refused by the server, or the connection failed.
    #[error("{}", innermost(.0))]
    Client(mysql_async::Error),
    /// The store's file.
    #[error("{0}")]
    File(FileError),
    /// A column holds what it should not.
    #[error("column \"{column}\" holds {value}")]
    Column { column: String, value: String },
    /// A row changed although it was locked.
    #[error("a row changed while it was locked")]
    NotLocked,
}

impl From<mysql_async::Error> for StoreError {
    fn from(error: mysql_async::Error) -> Self {
        Self::Client(error)
    }
}

impl From<FileError> for StoreError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// What an error is about in the end: the driver's errors repeat what is inside of them.
#[must_use]
pub fn innermost(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}

/// MySQL's numbers.
mod number {
    pub(super) const NO_TABLE: u16 = 1146;
    pub(super) const NO_COLUMN: u16 = 1054;
    pub(super) const DUPLICATE: u16 = 1062;
    /// The schema, the login.
    pub(super) const SHUT_OUT: [u16; 2] = [1044, 1045];
    /// A privilege: on the table, and on a column.
    pub(super) const DENIED: [u16; 2] = [1142, 1143];
}

impl StoreError {
    /// The number of what a server refused.
    fn number(&self) -> Option<u16> {
        match self {
            Self::Client(mysql_async::Error::Server(server)) => Some(server.code),
            Self::TimedOut { ms: _ }
            | Self::Client(_)
            | Self::File(_)
            | Self::Column { .. }
            | Self::NotLocked => None,
        }
    }

    /// Whether the store has answered, with something that is of no use.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Column { .. } | Self::NotLocked => true,
            Self::File(error) => error.is_answer(),
            Self::TimedOut { ms: _ } | Self::Client(_) => self.is_refusal(),
        }
    }

    /// Whether the server has said no.
    pub(crate) fn is_refusal(&self) -> bool {
        self.number().is_some()
    }

    /// Whether the account lacks a privilege.
    pub(crate) fn is_denied(&self) -> bool {
        self.number()
            .is_some_and(|number| number::DENIED.contains(&number))
    }

    /// Whether there is no such table.
    pub(crate) fn is_missing_table(&self) -> bool {
        match self {
            Self::File(error) => error.is_missing_table(),
            Self::TimedOut { ms: _ } | Self::Client(_) | Self::Column { .. } | Self::NotLocked => {
                self.number() == Some(number::NO_TABLE)
            }
        }
    }

    /// Whether there is such a row already.
    pub(crate) fn is_duplicate(&self) -> bool {
        match self {
            Self::File(error) => error.is_duplicate(),
            Self::TimedOut { ms: _ } | Self::Client(_) | Self::Column { .. } | Self::NotLocked => {
                self.number() == Some(number::DUPLICATE)
            }
        }
    }

    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Column { .. } => Cause::BoundDamaged,
            Self::File(error) => error.cause(),
            Self::TimedOut { ms: _ } | Self::Client(_) | Self::NotLocked => Cause::StoreUnavailable,
        }
    }

    /// What the reader can do.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match (self, self.number()) {
            (Self::File(error), _) => error.hint(),
            (_, Some(number::NO_TABLE | number::NO_COLUMN)) => Some("run keywright init"),
            (_, Some(number))
                if number::SHUT_OUT.contains(&number) || number::DENIED.contains(&number) =>
            {
                Some("check url of [store], its password, and the grants of its account")
            }
            (Self::TimedOut { ms: _ } | Self::Client(_), None) => {
                Some("is the server there, and the address in url of [store] right?")
            }
            (_, Some(_)) | (Self::Column { .. } | Self::NotLocked, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_once() {
        let io = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let expected = io.to_string();
        let error = StoreError::from(mysql_async::Error::from(io));
        assert_eq!(error.to_string(), expected);
        assert!(error.source().is_none(), "it would be told again");
    }
}
