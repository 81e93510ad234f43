//! Why there is no key: one of core's causes, a message and what to do about it.

use std::fmt;
use std::sync::Arc;

use keywright_core::Cause;
use tokio::task::JoinError;

/// What becomes of a transaction whose thread has ended.
pub(crate) fn broken_off<T>(error: JoinError) -> Result<T, Failure> {
    Err(Failure::new(
        Cause::StoreUnavailable,
        format!("the transaction in the store was broken off: {error}"),
    ))
}

/// A failure on its way to the client. Cheap to clone: everybody who waited for one refill gets the same.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(Arc<Parts>);

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    cause: Cause,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure of `cause`; `message` in lower case with its subject quoted.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self(Arc::new(Parts {
            cause,
            message: message.into(),
            hint: None,
        }))
    }

    /// The same with what the reader can do.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self(Arc::new(Parts {
            cause: self.0.cause,
            message: self.0.message.clone(),
            hint: Some(hint.into()),
        }))
    }

    /// What kind of failure it is: error number, SQLSTATE and metric label.
    pub fn cause(&self) -> Cause {
        self.0.cause
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the reader can do.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)?;
        match &self.0.hint {
            Some(hint) => write!(formatter, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for Failure {}
