//! What may be wrong with a store in etcd.

use etcd_client::Error as ClientError;
use keywright_core::Cause;
use thiserror::Error;

use super::gone_back::GoneBack;

/// gRPC's codes, as far as it matters which one it is.
mod code {
    pub(super) const INVALID_ARGUMENT: i32 = 3;
    pub(super) const PERMISSION_DENIED: i32 = 7;
    pub(super) const RESOURCE_EXHAUSTED: i32 = 8;
    pub(super) const FAILED_PRECONDITION: i32 = 9;
    pub(super) const UNAUTHENTICATED: i32 = 16;
}

/// Why the store cannot be used, or a statement was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum EtcdError {
    #[error("there is no store below its prefix yet")]
    Empty,
    #[error("below its prefix are keys that are no store's")]
    Foreign,
    /// Something below the prefix was written while the transaction was under way: nothing of it was.
    #[error("others have changed the store meanwhile")]
    Changed,
    /// The store was written by another cluster: it was restored from a backup.
    #[error(
        "the cluster is {is}, and the store was written by cluster {was}: it was restored, or copied"
    )]
    AnotherCluster { was: String, is: String },
    #[error("the cluster has gone back: {0}: it was restored from a backup")]
    GoneBack(GoneBack),
    /// Somebody has edited it.
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    NoTable(String),
    #[error("{0}")]
    Duplicate(String),
    /// Numbers are signed, as in a file.
    #[error("{0} is more than it can hold")]
    TooLarge(u64),
    #[error("{0} rows are more than one transaction can write")]
    TooMany(usize),
    /// More bytes, or operations, than the cluster's configuration allows in one request.
    #[error("{0}")]
    TooMuch(String),
    #[error("{member} has not answered within {ms} ms")]
    Late { member: String, ms: u64 },
    /// A whole transaction.
    #[error("no answer within {ms} ms")]
    Overdue { ms: u64 },
    /// User and password.
    #[error("{0}")]
    ShutOut(String),
    #[error("{0}")]
    Denied(String),
    /// No space, or too many questions at a time.
    #[error("{0}")]
    Full(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Other(String),
}

impl From<ClientError> for EtcdError {
    fn from(error: ClientError) -> Self {
        let ClientError::GRpcStatus(status) = &error else {
            return Self::Unreachable(innermost_of(&error));
        };
        let text = match std::error::Error::source(status) {
            Some(source) => crate::engine::innermost::innermost(source),
            None => status.message().to_owned(),
        };
        match i32::from(status.code()) {
            code::INVALID_ARGUMENT | code::RESOURCE_EXHAUSTED if is_too_much(&text) => {
                Self::TooMuch(text)
            }
            code::UNAUTHENTICATED => Self::ShutOut(text),
            code::INVALID_ARGUMENT | code::FAILED_PRECONDITION
                if text.contains("authentication") || text.contains("user name") =>
            {
                Self::ShutOut(text)
            }
            code::PERMISSION_DENIED => Self::Denied(text),
            code::RESOURCE_EXHAUSTED => Self::Full(text),
            code::INVALID_ARGUMENT | code::FAILED_PRECONDITION => Self::Other(text),
            _ => Self::Unreachable(text),
        }
    }
}

/// Whether that is said of a request, by etcd or by its gRPC, which counts before etcd does.
fn is_too_much(text: &str) -> bool {
    let mut said = [
        "request is too large",
        "too many operations in txn request",
        "received message larger than max",
    ]
    .into_iter();
    said.any(|words| text.contains(words))
}

/// What the client's own errors say twice is said once.
fn innermost_of(error: &ClientError) -> String {
    match error {
        ClientError::TransportError(error) => crate::engine::innermost::innermost(error),
        ClientError::IoError(error) => error.to_string(),
        other => other.to_string(),
    }
}

impl From<rusqlite::Error> for EtcdError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::ConstraintViolation) => Self::Duplicate(text),
            _ if text.contains("no such table") || text.contains("no such column") => {
                Self::NoTable(text)
            }
            _ => Self::Other(text),
        }
    }
}

impl EtcdError {
    /// Whether the cluster has answered.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Late { .. } | Self::Overdue { .. } | Self::Unreachable(_) => false,
            Self::Empty
            | Self::Foreign
            | Self::Changed
            | Self::AnotherCluster { .. }
            | Self::GoneBack(_)
            | Self::Damaged(_)
            | Self::NoTable(_)
            | Self::Duplicate(_)
            | Self::TooLarge(_)
            | Self::TooMany(_)
            | Self::TooMuch(_)
            | Self::ShutOut(_)
            | Self::Denied(_)
            | Self::Full(_)
            | Self::Other(_) => true,
        }
    }

    /// Whether it has said no.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::ShutOut(_) | Self::Denied(_))
    }

    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }

    pub(crate) fn is_missing_table(&self) -> bool {
        matches!(self, Self::NoTable(text) if text.contains("no such table"))
    }

    pub(crate) fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(_))
    }

    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::AnotherCluster { .. }
            | Self::GoneBack(_)
            | Self::Damaged(_)
            | Self::TooLarge(_) => Cause::BoundDamaged,
            Self::Empty
            | Self::Foreign
            | Self::Changed
            | Self::NoTable(_)
            | Self::Duplicate(_)
            | Self::TooMany(_)
            | Self::TooMuch(_)
            | Self::Late { .. }
            | Self::Overdue { .. }
            | Self::ShutOut(_)
            | Self::Denied(_)
            | Self::Full(_)
            | Self::Unreachable(_)
            | Self::Other(_) => Cause::StoreUnavailable,
        }
    }

    /// What the reader can do.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Empty | Self::NoTable(_) => Some("run keywright init"),
            Self::Foreign => Some("name another prefix in url of [store]"),
            Self::AnotherCluster { .. } | Self::GoneBack(_) => Some(
                "keywright store restored --lost TIME, with the time from the backup to the last key that was given; then start programs that were running anew",
            ),
            Self::Damaged(_) => Some("put the key right with etcdctl"),
            Self::ShutOut(_) | Self::Denied(_) => {
                Some("check url of [store], its password, and the roles of its user")
            }
            Self::TooMuch(_) => Some(
                "a switch of many tables writes some rows for each of them at once: start the members, one after another, with larger --max-request-bytes \
                 (10485760, say), and --max-txn-ops of 128 at least",
            ),
            Self::Full(_) => Some(
                "etcdctl endpoint status and alarm list say what is full; after NOSPACE compact, defrag, then alarm disarm, or start the members with a larger \
                 --quota-backend-bytes before",
            ),
            Self::Late { .. } | Self::Unreachable(_) => Some(
                "is the cluster there, with a leader, and its addresses in url of [store] right?",
            ),
            // Nobody holds a lock there: whoever comes second begins again.
            Self::Overdue { .. } => Some(
                "is the cluster there, with a leader, and its addresses in url of [store] right? if it answers others, its disks may be slow, or \
                 programs write more than it keeps up with: a larger step_min of busy tags makes that less (keywright tag alter)",
            ),
            Self::Changed
            | Self::Duplicate(_)
            | Self::TooLarge(_)
            | Self::TooMany(_)
            | Self::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_too_much;

    /// What is full is something else: a quota, or the members' memory.
    #[test]
    fn a_request_that_is_too_large_is_told_from_a_cluster_that_is_full() {
        for (text, expected) in [
            ("etcdserver: request is too large", true),
            ("etcdserver: too many operations in txn request", true),
            (
                "grpc: received message larger than max (2200000 vs. 2097152)",
                true,
            ),
            ("etcdserver: mvcc: database space exceeded", false),
            ("etcdserver: too many requests", false),
            ("etcdserver: key is not provided", false),
        ] {
            assert_eq!(is_too_much(text), expected, "{text}");
        }
    }
}
