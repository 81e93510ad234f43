//! Answers as Leaf's server gives them, for its clients.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use keywright_core::{Cause, KeyBatch};
use keywright_store::{Failure, KeySpec};

use crate::port::access::Who;
use crate::port::http::accept::best_of;
use crate::port::http::reply::Reply;
use crate::port::http::route::LeafService;
use crate::port::http::spring;
use crate::port::issue::{self, KeyRequest, Wants};
use crate::port::keys::{NamedKeys, PortKeys};

/// What an id is sent as, if the client wants nothing else.
const TEXT: &str = "text/plain";
const KINDS: [&str; 3] = [TEXT, "text/html", "application/json"];
/// The class of all its errors.
const EXCEPTION: &str = "com.sankuai.inf.leaf.server.exception.LeafServerException";

/// What stands in the place of an id where there is none.
const NOT_SET_UP: i8 = -1;
const NO_SUCH_KEY: i8 = -2;
const NONE_LEFT: i8 = -3;

/// How a client of Leaf is told.
#[derive(Debug)]
pub(super) struct LeafTeller {
    kind: &'static str,
    path: String,
}

/// The next id of a key.
///
/// # Errors
/// There is no such name, or it does not give such ids; the name is given where there is one.
pub(super) fn request(
    (keys, who): (&PortKeys, &Who),
    service: LeafService,
    key: &[u8],
) -> Result<KeyRequest, (Option<Arc<NamedKeys>>, Failure)> {
    if let Err(failure) = who.may_use(key) {
        return Err((keys.name(key).cloned(), failure));
    }
    let Some(named) = keys.name(key) else {
        return Err((None, issue::unknown(key, keys)));
    };
    let refused = |failure| Err((Some(Arc::clone(named)), failure));
    let is_fit = match service {
        LeafService::Segment => matches!(named.spec, KeySpec::Segment(_)),
        LeafService::Snowflake => named.spec == KeySpec::Snowflake,
    };
    if !is_fit {
        let message = format!(
            "the keys of \"{}\" are of another kind: {}",
            named.name, named.spec
        );
        return refused(Failure::new(Cause::KeyKind, message));
    }
    if service == LeafService::Snowflake && !keys.has_own_worker_id {
        let message =
            "any worker id that is free is leased, and a server of Leaf may have the same";
        let hint = "set worker_id of [snowflake] to one that no server of Leaf has";
        let failure = Failure::new(Cause::WorkerIdUnset, message).hint(hint);
        // Leaf's answer has room for a number only.
        if named.figures.is_to_be_logged() {
            let (name, bind) = (&named.name, &keys.port.bind);
            tracing::warn!("{bind}: clients of Leaf get no snowflake ids of \"{name}\": {failure}");
        }
        return refused(failure);
    }
    Ok(KeyRequest::new(named, 1, Wants::Run))
}

impl LeafTeller {
    pub(super) fn new(head: &Parts) -> Self {
        Self {
            kind: best_of(&head.headers, &KINDS).unwrap_or(TEXT),
            path: head.uri.path().to_owned(),
        }
    }

    /// The id.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn told(&self, keys: &KeyBatch) -> Result<Reply, Failure> {
        let missing = || Failure::new(Cause::IdForeign, "the key is no number");
        let number = keys.number(0).ok_or_else(missing)?;
        let kind = HeaderValue::from_str(&format!("{};charset=UTF-8", self.kind));
        let kind = kind.unwrap_or(HeaderValue::from_static(TEXT));
        Ok(Reply::new(StatusCode::OK, kind, number.to_string()))
    }

    /// Why there is none, as far as Leaf has a number for it.
    pub(super) fn failure(&self, failure: &Failure) -> Reply {
        let cause = failure.cause();
        let number = if [Cause::TagUnknown, Cause::KeyKind].contains(&cause) {
            NO_SUCH_KEY
        } else if cause == Cause::WorkerIdUnset {
            NOT_SET_UP
        } else {
            NONE_LEFT
        };
        let message = format!("Result{{id={number}, status=EXCEPTION}}");
        spring::error(
            StatusCode::INTERNAL_SERVER_ERROR,
            EXCEPTION,
            &message,
            &self.path,
        )
    }
}
