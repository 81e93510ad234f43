//! What may be wrong with a store that is reached over the Redis protocol.

use keywright_core::Cause;
use redis::{ErrorKind, RedisError as ClientError, ServerError};
use thiserror::Error;

/// Words by which servers say that they do not know who the client is, or that he may not.
const SHUT_OUT: [&str; 2] = ["WRONGPASS", "NOPERM"];

/// Why the store cannot be used, or a range was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum RedisError {
    /// Somebody wants tables.
    #[error("it gives ranges of tags and keeps nothing else")]
    RangesOnly,
    #[error("{host}: {what}")]
    Unreachable { host: String, what: String },
    #[error("{host} has not answered within {ms} ms")]
    Late { host: String, ms: u64 },
    /// All hosts together.
    #[error("no answer within {ms} ms")]
    Overdue { ms: u64 },
    /// User and password, or rights.
    #[error("{0}")]
    ShutOut(String),
    /// It says no, with this code and message.
    #[error("it says: {message}")]
    Refused { code: String, message: String },
    /// What answers is nothing of which ranges may be taken.
    #[error("{0}")]
    Unfit(String),
    /// A Redis that may lose what it has acknowledged.
    #[error("{0}")]
    NotDurable(String),
    /// The record was written by others while a range was being taken: nothing was done.
    #[error("others have changed the record meanwhile")]
    Changed,
    #[error("it answered {0}")]
    Answer(String),
}

impl RedisError {
    /// What a client library says of a conversation with a host.
    pub(crate) fn of(host: &str, error: &ClientError) -> Self {
        match error.kind() {
            ErrorKind::AuthenticationFailed => {
                Self::ShutOut(error.detail().unwrap_or("the login was refused").to_owned())
            }
            _ => match error.code() {
                Some(code) => Self::of_code(code, error.detail().unwrap_or_default()),
                None => Self::Unreachable {
                    host: host.to_owned(),
                    what: error.to_string(),
                },
            },
        }
    }

    /// An error that a server answered with.
    pub(crate) fn of_server(error: &ServerError) -> Self {
        Self::of_code(error.code(), error.details().unwrap_or_default())
    }

    fn of_code(code: &str, details: &str) -> Self {
        match code {
            // The rest is for people who type.
            "NOAUTH" => Self::ShutOut("it asks for a password".to_owned()),
            code if SHUT_OUT.contains(&code) => Self::ShutOut(details.to_owned()),
            code => Self::Refused {
                code: code.to_owned(),
                message: details.to_owned(),
            },
        }
    }

    /// Whether somebody has answered.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Late { .. } | Self::Overdue { .. } => false,
            Self::RangesOnly
            | Self::ShutOut(_)
            | Self::Refused { .. }
            | Self::Unfit(_)
            | Self::NotDurable(_)
            | Self::Changed
            | Self::Answer(_) => true,
        }
    }

    /// Whether it has said no to the one who asks.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::ShutOut(_))
    }

    /// The cause that the other program named, if it is one that its clients are to see here, too.
    pub(crate) fn cause(&self) -> Cause {
        let code = match self {
            Self::Refused { code, .. } => code.as_str(),
            Self::RangesOnly
            | Self::Unreachable { .. }
            | Self::Late { .. }
            | Self::Overdue { .. }
            | Self::ShutOut(_)
            | Self::Unfit(_)
            | Self::NotDurable(_)
            | Self::Changed
            | Self::Answer(_) => return Cause::StoreUnavailable,
        };
        let told = [
            Cause::TagUnknown,
            Cause::TagExhausted,
            Cause::TagOrdered,
            Cause::BoundDamaged,
            Cause::Suspended,
            Cause::KeysLeft,
        ];
        let told = told.into_iter().find(|cause| cause.redis_code() == code);
        told.unwrap_or(Cause::StoreUnavailable)
    }

    /// What the reader can do.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::RangesOnly => {
                Some("say it to the program whose key port it is, where its own store is")
            }
            Self::Unreachable { .. } | Self::Late { .. } | Self::Overdue { .. } => Some(
                "is the key port there, its address in url of [store] right, and TLS on both sides or on neither?",
            ),
            Self::ShutOut(_) => {
                Some("check url of [store], its password, and the rights of its user")
            }
            Self::NotDurable(_) => Some(
                "appendonly yes, appendfsync always, no-appendfsync-on-rewrite no, maxmemory-policy noeviction; CONFIG GET must be allowed",
            ),
            Self::Refused { .. } | Self::Unfit(_) | Self::Changed | Self::Answer(_) => None,
        }
    }
}
