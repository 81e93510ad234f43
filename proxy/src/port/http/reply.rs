//! Answers, as they go out.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use keywright_core::Cause;
use keywright_store::Failure;
use serde::Serialize;

use crate::connection::memory::Share;
use crate::port::http::accept::Format;

/// After how long a client may ask again, seconds.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");
/// An answer is for one client: a cache that keeps it gives a key twice.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain;charset=UTF-8");
const BEARER: HeaderValue = HeaderValue::from_static("Bearer realm=\"keywright\"");
const BASIC: HeaderValue = HeaderValue::from_static("Basic realm=\"keywright\", charset=\"UTF-8\"");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// A piece of an answer, bytes. The library copies each into a buffer that it keeps as long as the connection, and asks for the next only while
/// less than `head_bytes_max` (its `max_buf_size`) waits there. The buffer doubles as it grows: it is never larger than twice both together,
/// however long answers are.
const FRAME_BYTES: usize = 8 << 10;

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    status: StatusCode,
    kind: HeaderValue,
    body: String,
    /// What it takes of the memory for all.
    share: Option<Share>,
    is_later: bool,
    wants: Credentials,
    allow: Option<&'static str>,
    is_last: bool,
}

/// What a client that was not let in may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Credentials {
    /// It was let in.
    None,
    /// The listener's password.
    Password,
    /// A user, with the password of that one.
    User,
}

impl Credentials {
    fn schemes(self) -> &'static [HeaderValue] {
        static OF_PASSWORD: [HeaderValue; 2] = [BEARER, BASIC];
        static OF_USER: [HeaderValue; 1] = [BASIC];
        match self {
            Self::None => &[],
            Self::Password => &OF_PASSWORD,
            Self::User => &OF_USER,
        }
    }
}

/// An error, as programs read it.
#[derive(Serialize)]
struct Error<'a> {
    cause: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    retryable: bool,
}

impl Reply {
    /// Of a content type.
    pub(super) fn new(status: StatusCode, kind: HeaderValue, body: String) -> Self {
        Self {
            status,
            kind,
            body,
            share: None,
            is_later: false,
            wants: Credentials::None,
            allow: None,
            is_last: false,
        }
    }

    /// Something to read, in the form that was asked for.
    pub(super) fn of(format: Format, body: String) -> Self {
        let kind = match format {
            Format::Json => JSON,
            Format::Text => TEXT,
        };
        Self::new(StatusCode::OK, kind, body)
    }

    /// Why there is nothing else.
    pub(super) fn failure(format: Format, failure: &Failure) -> Self {
        let cause = failure.cause();
        let body = match format {
            Format::Json => {
                let error = Error {
                    cause: cause.name(),
                    message: failure.message(),
                    hint: failure.hint_text(),
                    retryable: cause.retryable(),
                };
                // Texts and a bool can always be written.
                serde_json::to_string(&error).unwrap_or_default() + "\n"
            }
            Format::Text => format!("{}: {failure}\n", cause.name()),
        };
        let status = StatusCode::from_u16(cause.http_status());
        Self {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            is_later: cause.retryable(),
            wants: if matches!(cause, Cause::PasswordMissing | Cause::PasswordWrong) {
                Credentials::Password
            } else {
                Credentials::None
            },
            ..Self::of(format, body)
        }
    }

    /// The same with what it takes of the memory for all.
    pub(super) fn holding(self, share: Option<Share>) -> Self {
        Self { share, ..self }
    }

    /// The same of a listener with users: who is not let in is asked for a user, and a password alone says none.
    pub(super) fn of_users(self) -> Self {
        Self {
            wants: match self.wants {
                Credentials::None => Credentials::None,
                Credentials::Password | Credentials::User => Credentials::User,
            },
            ..self
        }
    }

    /// The same with the methods that there are.
    pub(super) fn allowing(self, allow: Option<&'static str>) -> Self {
        Self { allow, ..self }
    }

    /// The same, after which the connection ends.
    pub(super) fn last(self) -> Self {
        Self {
            is_last: true,
            ..self
        }
    }

    /// As the library sends it.
    pub(super) fn into_response(self) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody {
            left: Bytes::from(self.body),
            _share: self.share,
        });
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.kind);
        headers.insert(CACHE_CONTROL, NO_STORE);
        if self.is_later {
            headers.insert(RETRY_AFTER, RETRY_AFTER_S);
        }
        for scheme in self.wants.schemes() {
            headers.append(WWW_AUTHENTICATE, scheme.clone());
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.is_last {
            headers.insert(CONNECTION, CLOSE);
        }
        response
    }

    /// As it is written where no request is read.
    pub(super) fn unasked(self) -> String {
        let reason = self.status.canonical_reason().unwrap_or_default();
        let later = if self.is_later {
            "retry-after: 1\r\n"
        } else {
            ""
        };
        format!(
            "HTTP/1.1 {} {reason}\r\ncontent-type: {}\r\ncache-control: no-store\r\n{later}connection: close\r\ncontent-length: {}\r\n\r\n{}",
            self.status.as_u16(),
            self.kind.to_str().unwrap_or_default(),
            self.body.len(),
            self.body
        )
    }
}

/// What a client that is not served is told.
pub(crate) fn turned_away(cause: Cause, message: &str) -> String {
    Reply::failure(Format::Json, &Failure::new(cause, message)).unasked()
}

/// A body that is there whole, and goes out piece by piece. The library drops it when it has taken the last one: until then it holds what it
/// takes of the memory for all.
#[derive(Debug)]
pub(super) struct ReplyBody {
    /// What was not taken yet.
    left: Bytes,
    _share: Option<Share>,
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame_bytes = self.left.len().min(FRAME_BYTES);
        let frame = self.left.split_to(frame_bytes);
        Poll::Ready((!frame.is_empty()).then(|| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    /// Exact, so that the answer says its length and is not chunked.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.left.len()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use hyper::body::{Body as _, Bytes};

    use super::{FRAME_BYTES, Reply, ReplyBody};
    use crate::connection::memory::{Memory, Share};
    use crate::port::http::accept::Format;

    /// The next piece; `None`: there is none.
    fn next(body: &mut ReplyBody) -> Option<Bytes> {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(frame) => frame?.ok()?.into_data().ok(),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_body_goes_out_in_pieces_and_holds_its_share_until_the_last() {
        let digits = "0123456789".chars().cycle();
        let text: String = digits.take(2 * FRAME_BYTES + 1).collect();
        let memory = Arc::new(Memory::new(2 * text.len()));
        let mut share = Share::new(Arc::clone(&memory));
        assert!(share.hold(text.len()));
        let reply = Reply::of(Format::Text, text.clone()).holding(Some(share));
        let mut body = reply.into_response().into_body();
        let (mut told, mut pieces) = (Vec::<u8>::new(), Vec::new());
        // The library drops it where it says that this was the last.
        while !body.is_end_stream() {
            assert!(!Share::new(Arc::clone(&memory)).hold(1));
            let left = u64::try_from(text.len() - told.len());
            assert_eq!(body.size_hint().exact(), left.ok());
            let piece = next(&mut body).unwrap();
            pieces.push(piece.len());
            told.extend_from_slice(&piece);
        }
        assert_eq!(pieces, [FRAME_BYTES, FRAME_BYTES, 1]);
        assert_eq!(told, text.as_bytes());
        assert_eq!(body.size_hint().exact(), Some(0));
        assert_eq!(next(&mut body), None);
        drop(body);
        assert!(Share::new(memory).hold(text.len()));
    }

    #[test]
    fn bodies_that_fit_into_one_piece_are_one() {
        for bytes in [1, FRAME_BYTES - 1, FRAME_BYTES] {
            let reply = Reply::of(Format::Text, "x".repeat(bytes));
            let mut body = reply.into_response().into_body();
            assert_eq!(next(&mut body).map(|piece| piece.len()), Some(bytes));
            assert!(body.is_end_stream());
        }
        let nothing = Reply::of(Format::Text, String::new());
        let mut body = nothing.into_response().into_body();
        assert!(body.is_end_stream());
        assert_eq!(next(&mut body), None);
    }
}
