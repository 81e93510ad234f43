//! Why a transaction failed, whatever the engine.

use keywright_core::Cause;
use thiserror::Error as ThisError;
use tokio_postgres::error::SqlState;

use super::etcd::EtcdError;
use super::file::FileError;
use super::innermost::innermost;
use super::redis::error::RedisError;

/// Why a transaction failed. Whatever it had sent may or may not have been done.
#[derive(Debug, ThisError)]
pub(crate) enum StoreError {
    /// It took too long.
    #[error("no answer within {ms} ms")]
    TimedOut { ms: u64 },
    /// Its turn did not come. Nothing was sent.
    #[error(
        "too many transactions wait for the store's connections: none came free within {ms} ms"
    )]
    Crowded { ms: u64 },
    /// Refused by the server, or the connection failed.
    #[error("{}", innermost(.0))]
    Client(mysql_async::Error),
    /// The same, of a PostgreSQL server.
    #[error("{}", innermost(.0))]
    Postgres(tokio_postgres::Error),
    /// PostgreSQL says so when the wait for a synchronous standby was cancelled.
    #[error("the server has committed with a warning: a standby may lack what was committed")]
    Warned,
    /// The store in etcd.
    #[error("{0}")]
    Etcd(EtcdError),
    /// The store's file.
    #[error("{0}")]
    File(FileError),
    /// The key port or Redis that gives ranges.
    #[error("{0}")]
    Redis(RedisError),
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

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<FileError> for StoreError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

/// What a server says no to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    NoTable,
    NoColumn,
    Duplicate,
    /// The database, the login.
    ShutOut,
    /// A privilege: on the table, or on a column.
    Denied,
    /// Two transactions wait for each other, and this one was undone.
    Deadlock,
    Other,
}

impl Refusal {
    fn of_mysql(number: u16) -> Self {
        match number {
            1146 => Self::NoTable,
            1054 => Self::NoColumn,
            1062 => Self::Duplicate,
            1044 | 1045 => Self::ShutOut,
            1142 | 1143 => Self::Denied,
            // With innodb_snapshot_isolation, MariaDB ends who reads what has changed since its first statement.
            1020 | 1213 => Self::Deadlock,
            _ => Self::Other,
        }
    }

    fn of_postgres(state: &SqlState) -> Self {
        match *state {
            SqlState::UNDEFINED_TABLE => Self::NoTable,
            SqlState::UNDEFINED_COLUMN => Self::NoColumn,
            SqlState::UNIQUE_VIOLATION => Self::Duplicate,
            SqlState::INVALID_PASSWORD
            | SqlState::INVALID_AUTHORIZATION_SPECIFICATION
            | SqlState::INVALID_CATALOG_NAME => Self::ShutOut,
            SqlState::INSUFFICIENT_PRIVILEGE => Self::Denied,
            SqlState::T_R_DEADLOCK_DETECTED => Self::Deadlock,
            _ => Self::Other,
        }
    }
}

impl StoreError {
    /// What a server refused.
    fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Client(mysql_async::Error::Server(server)) => {
                Some(Refusal::of_mysql(server.code))
            }
            Self::Postgres(error) => error.code().map(Refusal::of_postgres),
            Self::TimedOut { ms: _ }
            | Self::Crowded { ms: _ }
            | Self::Client(_)
            | Self::Etcd(_)
            | Self::File(_)
            | Self::Redis(_)
            | Self::Warned
            | Self::Column { .. }
            | Self::NotLocked => None,
        }
    }

    /// Whether the store has answered, with something that is of no use.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Column { .. } | Self::NotLocked | Self::Warned => true,
            Self::Etcd(error) => error.is_answer(),
            Self::File(error) => error.is_answer(),
            Self::Redis(error) => error.is_answer(),
            Self::Crowded { ms: _ } => false,
            Self::TimedOut { ms: _ } | Self::Client(_) | Self::Postgres(_) => self.is_refusal(),
        }
    }

    /// Whether the server has said no.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Etcd(error) => error.is_refusal(),
            Self::Redis(error) => error.is_refusal(),
            Self::TimedOut { ms: _ }
            | Self::Crowded { ms: _ }
            | Self::Client(_)
            | Self::Postgres(_)
            | Self::File(_)
            | Self::Warned
            | Self::Column { .. }
            | Self::NotLocked => self.refusal().is_some(),
        }
    }

    /// Whether a PostgreSQL server takes no sessions because it is starting or stopping.
    pub(crate) fn is_starting_or_stopping(&self) -> bool {
        const STATES: [SqlState; 3] = [
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
        ];
        match self {
            Self::Postgres(error) => error.code().is_some_and(|state| STATES.contains(state)),
            Self::TimedOut { ms: _ }
            | Self::Crowded { ms: _ }
            | Self::Client(_)
            | Self::Etcd(_)
            | Self::File(_)
            | Self::Redis(_)
            | Self::Warned
            | Self::Column { .. }
            | Self::NotLocked => false,
        }
    }

    /// Whether nothing was done, because others came first, so that the transaction can be done again.
    pub(crate) fn is_again(&self) -> bool {
        let is_changed = matches!(
            self,
            Self::Etcd(EtcdError::Changed) | Self::Redis(RedisError::Changed)
        );
        is_changed || self.is_deadlock()
    }

    /// The same, where the transaction is still to be ended.
    pub(crate) fn is_deadlock(&self) -> bool {
        self.refusal() == Some(Refusal::Deadlock)
    }

    /// Whether the account lacks a privilege.
    pub(crate) fn is_denied(&self) -> bool {
        match self {
            Self::Etcd(error) => error.is_denied(),
            Self::TimedOut { ms: _ }
            | Self::Crowded { ms: _ }
            | Self::Client(_)
            | Self::Postgres(_)
            | Self::File(_)
            | Self::Redis(_)
            | Self::Warned
            | Self::Column { .. }
            | Self::NotLocked => self.refusal() == Some(Refusal::Denied),
        }
    }

    /// Whether there is no such table, and the transaction goes on. In PostgreSQL it does not.
    pub(crate) fn is_missing_table(&self) -> bool {
        match self {
            Self::Etcd(error) => error.is_missing_table(),
            Self::File(error) => error.is_missing_table(),
            Self::Client(_) => self.refusal() == Some(Refusal::NoTable),
            Self::TimedOut { ms: _ }
            | Self::Crowded { ms: _ }
            | Self::Postgres(_)
            | Self::Redis(_)
            | Self::Warned
            | Self::Column { .. }
            | Self::NotLocked => false,
        }
    }

    /// Whether there is such a row already.
    pub(crate) fn is_duplicate(&self) -> bool {
        match self {
            Self::Etcd(error) => error.is_duplicate(),
            Self::File(error) => error.is_duplicate(),
            Self::TimedOut { ms: _ }
            | Self::Crowded { ms: _ }
            | Self::Redis(_)
            | Self::Client(_)
            | Self::Postgres(_)
            | Self::Warned
            | Self::Column { .. }
            | Self::NotLocked => self.refusal() == Some(Refusal::Duplicate),
        }
    }

    /// The name of the table or column that is not there, as MySQL and MariaDB say it: first in the message, in quotes, a table's behind the
    /// one of its schema.
    pub(crate) fn not_found(&self) -> Option<&str> {
        match self {
            Self::Client(mysql_async::Error::Server(server)) => {
                match Refusal::of_mysql(server.code) {
                    Refusal::NoTable | Refusal::NoColumn => server.message.split('\'').nth(1),
                    Refusal::Duplicate
                    | Refusal::ShutOut
                    | Refusal::Denied
                    | Refusal::Deadlock
                    | Refusal::Other => None,
                }
            }
            Self::TimedOut { ms: _ }
            | Self::Crowded { ms: _ }
            | Self::Client(_)
            | Self::Postgres(_)
            | Self::Etcd(_)
            | Self::File(_)
            | Self::Redis(_)
            | Self::Warned
            | Self::Column { .. }
            | Self::NotLocked => None,
        }
    }

    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Column { .. } => Cause::BoundDamaged,
            Self::Etcd(error) => error.cause(),
            Self::File(error) => error.cause(),
            Self::Redis(error) => error.cause(),
            Self::TimedOut { ms: _ }
            | Self::Crowded { ms: _ }
            | Self::Client(_)
            | Self::Postgres(_)
            | Self::Warned
            | Self::NotLocked => Cause::StoreUnavailable,
        }
    }

    /// What the reader can do.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match (self, self.refusal()) {
            (Self::Etcd(error), _) => error.hint(),
            (Self::File(error), _) => error.hint(),
            (Self::Redis(error), _) => error.hint(),
            (_, Some(Refusal::NoTable | Refusal::NoColumn)) => Some("run keywright init"),
            (_, Some(Refusal::ShutOut | Refusal::Denied)) => {
                Some("check url of [store], its password, and the grants of its account")
            }
            // Connecting takes as long in vain as waiting for a lock does.
            (Self::TimedOut { ms: _ }, None) => Some(
                "is the server there, and the address in url of [store] right? if it answers others, a session may hold a lock on what is asked \
                 for: end that session",
            ),
            (Self::Crowded { ms: _ }, None) => Some(
                "does the server answer late, or does a session hold a lock on what is asked for? if it only has much to do, raise connections_max of \
                 [store]",
            ),
            (Self::Client(_) | Self::Postgres(_), None) => {
                Some("is the server there, and the address in url of [store] right?")
            }
            (Self::Warned, None) => Some("look at the server's log, and at its standbys"),
            (_, Some(Refusal::Duplicate | Refusal::Deadlock | Refusal::Other))
            | (Self::Column { .. } | Self::NotLocked, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn who_waits_in_vain_is_told_of_locks_and_who_is_not_let_in_is_not() {
        let hint = |error: StoreError| error.hint().unwrap_or_default();
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let refused = hint(mysql_async::Error::from(refused).into());
        let late = hint(StoreError::TimedOut { ms: 2_000 });
        for told in [refused, late] {
            assert!(told.contains("url of [store]"), "{told}");
        }
        assert!(late.contains("hold a lock"), "{late}");
        assert!(!refused.contains("lock"), "{refused}");
    }

    #[test]
    fn the_table_or_column_that_is_not_there_is_known_by_name() {
        let of = |code, message: &str| {
            let server = mysql_async::ServerError {
                code,
                message: message.to_owned(),
                state: "42S22".to_owned(),
            };
            StoreError::from(mysql_async::Error::from(server))
        };
        for (code, message, name) in [
            (
                1054,
                "Unknown column 'biz_key' in 'SELECT'",
                Some("biz_key"),
            ),
            (
                1146,
                "Table 'ids.leaf_alloc' doesn't exist",
                Some("ids.leaf_alloc"),
            ),
            (1146, "No such table", None),
            (1062, "Duplicate entry 'a' for key 'PRIMARY'", None),
        ] {
            assert_eq!(of(code, message).not_found(), name, "{message}");
        }
    }

    #[test]
    fn what_happened_is_told_once() {
        let io = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let expected = io.to_string();
        let error = StoreError::from(mysql_async::Error::from(io));
        assert_eq!(error.to_string(), expected);
        assert!(error.source().is_none(), "it would be told again");
    }
}
