//! What a request asks for, by its path and method.

use hyper::Method;
use keywright_core::Cause;
use keywright_store::Failure;
use percent_encoding::percent_decode_str;

use crate::port::http::parameters::shown;

/// A place that answers. A name is as its client means it, with `%` and what follows decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// `POST /v1/keys/{name}`.
    Keys(Vec<u8>),
    /// `GET /v1/keys`.
    List,
    /// `GET /v1/decode/{id}`.
    Decode(Vec<u8>),
    /// Leaf's `/api/segment/get/{key}` and `/api/snowflake/get/{key}`.
    Leaf(LeafService, Vec<u8>),
    /// Those of tinyid.
    Tinyid(TinyidCall),
}

/// Which of Leaf's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafService {
    /// Numbers of a tag.
    Segment,
    /// Snowflake ids.
    Snowflake,
}

/// Which of tinyid's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TinyidCall {
    /// `nextId`: ids, in JSON.
    Ids,
    /// `nextIdSimple`: ids, with commas.
    IdsSimple,
    /// `nextSegmentId`: a segment, in JSON.
    Segment,
    /// `nextSegmentIdSimple`: a segment, with commas.
    SegmentSimple,
}

/// Why a request gets nowhere.
#[derive(Debug)]
pub(super) struct Stray {
    /// What the client is told.
    pub(super) failure: Failure,
    /// The methods that there are.
    pub(super) allow: Option<&'static str>,
}

/// The place at a path.
///
/// # Errors
/// There is none, or it has other methods.
pub(super) fn endpoint(method: &Method, path: &str) -> Result<Endpoint, Stray> {
    let Some(endpoint) = at(path) else {
        let failure = Failure::new(
            Cause::PathUnknown,
            format!("nothing is served at \"{}\"", shown(path)),
        );
        let failure = failure.hint("POST /v1/keys/NAME gives keys, GET /v1/keys shows the names");
        return Err(Stray {
            failure,
            allow: None,
        });
    };
    let (allow, is_allowed) = match &endpoint {
        Endpoint::Keys(_) => ("POST", method == Method::POST),
        Endpoint::List | Endpoint::Decode(_) => {
            ("GET, HEAD", method == Method::GET || method == Method::HEAD)
        }
        Endpoint::Leaf(_, _) | Endpoint::Tinyid(_) => {
            ("GET, POST", method == Method::GET || method == Method::POST)
        }
    };
    if is_allowed {
        return Ok(endpoint);
    }
    let message = format!("{} has no meaning at this path", shown(method.as_str()));
    Err(Stray {
        failure: Failure::new(Cause::MethodRefused, message).hint(format!("use {allow}")),
        allow: Some(allow),
    })
}

/// Whether a request would take keys by GET, as only clients of other servers do: a page can have a browser send it as if it were an image.
pub(super) fn is_key_by_get(method: &Method, path: &str) -> bool {
    method == Method::GET
        && match at(path) {
            Some(Endpoint::Leaf(_, _) | Endpoint::Tinyid(_)) => true,
            Some(Endpoint::Keys(_) | Endpoint::List | Endpoint::Decode(_)) | None => false,
        }
}

fn at(path: &str) -> Option<Endpoint> {
    let behind = |head: &str| {
        let rest = path.strip_prefix(head).filter(|rest| !rest.is_empty())?;
        Some(percent_decode_str(rest).collect::<Vec<u8>>())
    };
    if let Some(name) = behind("/v1/keys/") {
        return Some(Endpoint::Keys(name));
    }
    if let Some(id) = behind("/v1/decode/") {
        return Some(Endpoint::Decode(id));
    }
    if let Some(key) = behind("/api/segment/get/") {
        return Some(Endpoint::Leaf(LeafService::Segment, key));
    }
    if let Some(key) = behind("/api/snowflake/get/") {
        return Some(Endpoint::Leaf(LeafService::Snowflake, key));
    }
    match path {
        "/v1/keys" | "/v1/keys/" => Some(Endpoint::List),
        "/tinyid/id/nextId" => Some(Endpoint::Tinyid(TinyidCall::Ids)),
        "/tinyid/id/nextIdSimple" => Some(Endpoint::Tinyid(TinyidCall::IdsSimple)),
        "/tinyid/id/nextSegmentId" => Some(Endpoint::Tinyid(TinyidCall::Segment)),
        "/tinyid/id/nextSegmentIdSimple" => Some(Endpoint::Tinyid(TinyidCall::SegmentSimple)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hyper::Method;

    use super::{Endpoint, LeafService, TinyidCall, endpoint, is_key_by_get};

    #[test]
    fn paths_are_read() {
        let name = |text: &str| text.as_bytes().to_vec();
        for (method, path, expected) in [
            (
                Method::POST,
                "/v1/keys/orders",
                Endpoint::Keys(name("orders")),
            ),
            (
                Method::POST,
                "/v1/keys/a/b%20%zz",
                Endpoint::Keys(name("a/b %zz")),
            ),
            (Method::GET, "/v1/keys", Endpoint::List),
            (Method::HEAD, "/v1/keys/", Endpoint::List),
            (Method::GET, "/v1/decode/7", Endpoint::Decode(name("7"))),
            (
                Method::GET,
                "/api/segment/get/a",
                Endpoint::Leaf(LeafService::Segment, name("a")),
            ),
            (
                Method::POST,
                "/api/snowflake/get/a",
                Endpoint::Leaf(LeafService::Snowflake, name("a")),
            ),
            (
                Method::GET,
                "/tinyid/id/nextId",
                Endpoint::Tinyid(TinyidCall::Ids),
            ),
        ] {
            assert_eq!(endpoint(&method, path).ok(), Some(expected), "{path}");
        }
    }

    #[test]
    fn keys_are_taken_by_get_at_the_places_of_other_servers_only() {
        for (path, expected) in [
            ("/api/segment/get/a", true),
            ("/api/snowflake/get/a", true),
            ("/tinyid/id/nextId", true),
            ("/tinyid/id/nextIdSimple", true),
            ("/tinyid/id/nextSegmentId", true),
            ("/tinyid/id/nextSegmentIdSimple", true),
            ("/v1/keys/a", false),
            ("/v1/keys", false),
            ("/v1/decode/7", false),
            ("/", false),
        ] {
            assert_eq!(is_key_by_get(&Method::GET, path), expected, "{path}");
            assert!(!is_key_by_get(&Method::POST, path), "{path}");
        }
    }

    #[test]
    fn others_are_refused() {
        for (method, path, allow) in [
            (Method::GET, "/v1/keys/orders", Some("POST")),
            (Method::POST, "/v1/keys", Some("GET, HEAD")),
            (Method::HEAD, "/api/segment/get/a", Some("GET, POST")),
            (Method::PUT, "/tinyid/id/nextId", Some("GET, POST")),
            (Method::GET, "/", None),
            (Method::GET, "/v1/decode/", None),
            (Method::GET, "/api/segment/get/", None),
            (Method::GET, "/tinyid/id/nextIdX", None),
            (Method::GET, "*", None),
        ] {
            let stray = endpoint(&method, path).unwrap_err();
            assert_eq!(stray.allow, allow, "{path}");
        }
    }

    #[test]
    fn a_name_of_any_bytes_comes_through_as_it_is() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let name: Vec<u8> = (0..random.usize(1..20)).map(|_| random.u8(..)).collect();
            let written: String = name.iter().map(|byte| format!("%{byte:02x}")).collect();
            let read = endpoint(&Method::POST, &format!("/v1/keys/{written}")).ok();
            assert_eq!(read, Some(Endpoint::Keys(name)), "{written}");
            // Cut anywhere it is another name, or none.
            let cut = written.get(..random.usize(..=written.len())).unwrap();
            let read = endpoint(&Method::POST, &format!("/v1/keys/{cut}")).ok();
            assert_eq!(read.is_none(), cut.is_empty(), "{cut}");
        }
    }
}
