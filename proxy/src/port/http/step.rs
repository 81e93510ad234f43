//! How far the answer to a request is.

use std::pin::Pin;

use keywright_core::Cause;
use keywright_store::Failure;

use crate::port::http::accept::Format;
use crate::port::http::reply::Reply;

/// How far an answer is.
pub(super) enum Step {
    /// There.
    There(Option<Box<Reply>>),
    /// Its request is not there whole, or its keys are not.
    Coming(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

impl Step {
    pub(super) fn there(reply: Reply) -> Self {
        Self::There(Some(Box::new(reply)))
    }

    pub(super) async fn into_reply(self) -> Reply {
        match self {
            Self::There(Some(reply)) => *reply,
            Self::There(None) => Reply::failure(Format::Json, &draining()),
            Self::Coming(coming) => coming.await,
        }
    }
}

/// The port is no more.
pub(super) fn draining() -> Failure {
    Failure::new(Cause::Draining, "the program is stopping")
}
