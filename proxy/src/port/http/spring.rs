//! Errors as servers made with Spring Boot 1.5 write them, which Leaf and tinyid are.

use std::time::{SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use hyper::header::HeaderValue;
use serde::Serialize;

use crate::port::http::reply::Reply;

/// What they say of their JSON.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json;charset=UTF-8");

/// An error; its parts are in this order.
#[derive(Serialize)]
struct Error<'a> {
    timestamp: u64,
    status: u16,
    error: &'static str,
    exception: &'a str,
    message: &'a str,
    path: &'a str,
}

/// `exception`: the class that was thrown; `path`: as the client wrote it.
pub(super) fn error(status: StatusCode, exception: &str, message: &str, path: &str) -> Reply {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.unwrap_or_default().as_millis();
    let error = Error {
        timestamp: u64::try_from(millis).unwrap_or(u64::MAX),
        status: status.as_u16(),
        error: status.canonical_reason().unwrap_or_default(),
        exception,
        message,
        path,
    };
    // Texts and numbers can always be written.
    let body = serde_json::to_string(&error).unwrap_or_default();
    Reply::new(status, JSON, body)
}
