//! Why a conversation with the store came to nothing, and columns that hold what they should not.

use mysql_async::{FromValueError, Row};
use thiserror::Error;

/// Why a conversation came to nothing. Whatever it had sent may or may not have been done.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    /// It took too long, or no connection came free.
    #[error("no answer within {ms} ms")]
    TimedOut { ms: u64 },
    /// Refused by the server, or the connection failed.
    #[error("{0}")]
    Client(#[from] mysql_async::Error),
    /// A column holds what it should not.
    #[error("column \"{column}\" holds {value}")]
    Column { column: String, value: String },
    /// A row changed although it was locked.
    #[error("a row changed while it was locked")]
    NotLocked,
}

impl StoreError {
    /// Whether the server has said no.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Client(mysql_async::Error::Server(_)))
    }
}

/// Whether the server refused because the table is not there.
pub(crate) fn is_missing_table(error: &StoreError) -> bool {
    matches!(error, StoreError::Client(mysql_async::Error::Server(server)) if server.code == 1146)
}

/// A column as a number, text, …; an error, not a panic, when it is something else.
pub(crate) fn column<T: mysql_async::prelude::FromValue>(
    row: &Row,
    name: &str,
) -> Result<T, StoreError> {
    let wrong = |value: String| StoreError::Column {
        column: name.to_owned(),
        value,
    };
    match row.get_opt::<T, _>(name) {
        Some(Ok(value)) => Ok(value),
        Some(Err(FromValueError(value))) => Err(wrong(value.as_sql(false))),
        None => Err(wrong("nothing: there is no such column".to_owned())),
    }
}
