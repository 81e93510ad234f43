//! Answers as tinyid's server gives them, for its clients.

use std::fmt::Write as _;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use keywright_core::{Cause, KeyBatch};
use keywright_store::{Failure, KeySpec};
use serde::Serialize;

use crate::config::port::http::HttpLimits;
use crate::port::access::Who;
use crate::port::http::credentials::{self, Asker};
use crate::port::http::parameters::Parameters;
use crate::port::http::reply::Reply;
use crate::port::http::route::TinyidCall;
use crate::port::http::spring;
use crate::port::issue::{KeyRequest, Wants};
use crate::port::keys::{NamedKeys, PortKeys};
use crate::port::password::is_same;
use crate::users::turns::Line;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain;charset=UTF-8");
/// The codes of its answers.
const OK: u16 = 200;
const TOKEN_WRONG: u16 = 5;
const FAILED: u16 = 6;
/// Its clients ask for the next segment when this part of one is used, percent.
const LOADING_PERCENT: u64 = 20;

/// What a client asks for.
#[derive(Debug)]
pub(super) enum Wanted {
    /// Keys.
    Keys(KeyRequest),
    /// None at all.
    Nothing,
}

/// A segment: the ids above `current_id` up to `max_id` that leave `remainder` when divided by `delta`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Segment {
    max_id: u64,
    loading_id: i64,
    current_id: i64,
    delta: u64,
    remainder: u64,
}

/// An answer in JSON; its parts are in this order.
#[derive(Serialize)]
struct Response<'a, T> {
    data: Option<T>,
    code: u16,
    message: &'a str,
}

/// How many ids a client asks for; more than may be are as many as may be.
///
/// # Errors
/// What it says is no number: how that is told.
pub(super) fn batch(
    parameters: &Parameters,
    limits: &HttpLimits,
    path: &str,
) -> Result<u64, Box<Reply>> {
    let text: String = parameters.first("batchSize").unwrap_or_default().to_owned();
    let number = text.split_whitespace().collect::<String>();
    if number.is_empty() {
        return Ok(1);
    }
    match number.parse::<i32>() {
        // None for fewer than none.
        Ok(number) => Ok(u64::try_from(number)
            .unwrap_or(0)
            .min(limits.request_keys_max)),
        Err(_) => {
            let message = format!(
                "Failed to convert value of type 'java.lang.String' to required type 'java.lang.Integer'; nested exception is \
                 java.lang.NumberFormatException: For input string: \"{number}\""
            );
            let exception =
                "org.springframework.web.method.annotation.MethodArgumentTypeMismatchException";
            let told = spring::error(StatusCode::BAD_REQUEST, exception, &message, path);
            Err(Box::new(told))
        }
    }
}

/// Who asks: by the header `Authorization` or, where there is none, by the token: the password of the listener or, where it has users, user and
/// password with a colon between them. A token beside a header that is wrong is not looked at: whoever knows one could try passwords unseen.
pub(super) fn asker(
    (keys, line): (&PortKeys, Line),
    header: Result<Who, Failure>,
    parameters: &Parameters,
) -> Asker {
    let token = parameters.first("token").unwrap_or_default();
    let missing = match header {
        Err(failure) if failure.cause() == Cause::PasswordMissing => failure,
        Ok(_) | Err(_) => return Asker::Decided(header),
    };
    match (&keys.users, &keys.port.password) {
        (Some(_), _) if token.is_empty() => Asker::Decided(Err(missing)),
        (Some(users), _) => credentials::user((users, line), token.as_bytes()),
        (None, Some(password)) if is_same(token.as_bytes(), password.as_bytes()) => {
            Asker::Decided(Ok(Who::Anybody))
        }
        (None, Some(_)) if !token.is_empty() => Asker::Decided(Err(token_wrong())),
        (None, _) => Asker::Decided(Err(missing)),
    }
}

fn token_wrong() -> Failure {
    Failure::new(Cause::PasswordWrong, "token is error")
}

/// What a client asks for, looked at. `who`: who it is.
///
/// # Errors
/// The token is wrong, there is no such name, or it does not give such keys; the name is given where there is one.
pub(super) fn request(
    keys: &PortKeys,
    (call, batch): (TinyidCall, u64),
    parameters: &Parameters,
    who: &Result<Who, Failure>,
    limits: &HttpLimits,
) -> Result<Wanted, (Option<Arc<NamedKeys>>, Failure)> {
    let name = parameters.first("bizType").unwrap_or_default();
    let who = match who {
        Ok(who) if !name.is_empty() => who,
        // That it should ask again is not for who is wrong.
        Err(failure) if failure.cause().retryable() => return Err((None, failure.clone())),
        Ok(_) | Err(_) => return Err((None, token_wrong())),
    };
    if let Err(failure) = who.may_use(name.as_bytes()) {
        return Err((keys.name(name.as_bytes()).cloned(), failure));
    }
    let Some(named) = keys.name(name.as_bytes()) else {
        let message = format!("can not find biztype:{name}");
        return Err((None, Failure::new(Cause::TagUnknown, message)));
    };
    let (is_fit, count, wants) = match call {
        TinyidCall::Ids | TinyidCall::IdsSimple => (named.is_number(), batch, Wants::List),
        TinyidCall::Segment | TinyidCall::SegmentSimple => (
            matches!(named.spec, KeySpec::Segment(_)),
            limits.tinyid_segment_keys.min(named.run_max),
            Wants::Run,
        ),
    };
    if !is_fit {
        let message = format!(
            "the keys of \"{}\" are of another kind: {}",
            named.name, named.spec
        );
        let failure = Failure::new(Cause::KeyKind, message);
        return Err((Some(Arc::clone(named)), failure));
    }
    match count {
        0 => Ok(Wanted::Nothing),
        count => {
            let count = count.min(named.listed_max);
            Ok(Wanted::Keys(KeyRequest::new(named, count, wants)))
        }
    }
}

/// What is told of no keys.
pub(super) fn nothing(call: TinyidCall) -> Reply {
    match call {
        TinyidCall::Ids | TinyidCall::Segment => json(&Response::<[u64; 0]> {
            data: Some([]),
            code: OK,
            message: "",
        }),
        TinyidCall::IdsSimple | TinyidCall::SegmentSimple => text(String::new()),
    }
}

/// Keys that were taken.
///
/// # Errors
/// They have no place in such an answer.
pub(super) fn told(call: TinyidCall, keys: &KeyBatch) -> Result<Reply, Failure> {
    match call {
        TinyidCall::Ids => {
            let ids = listed(keys)?;
            let body = format!("{{\"data\":[{ids}],\"code\":{OK},\"message\":\"\"}}");
            Ok(Reply::new(StatusCode::OK, spring::JSON, body))
        }
        TinyidCall::IdsSimple => listed(keys).map(text),
        TinyidCall::Segment => Ok(json(&Response {
            data: Some(segment(keys)?),
            code: OK,
            message: "",
        })),
        TinyidCall::SegmentSimple => {
            let its = segment(keys)?;
            Ok(text(format!(
                "{},{},{},{},{}",
                its.current_id, its.loading_id, its.max_id, its.delta, its.remainder
            )))
        }
    }
}

/// Why there are none. Answers without JSON have no room for that.
pub(super) fn failure(call: TinyidCall, failure: &Failure) -> Reply {
    let code = match matches!(failure.cause(), Cause::PasswordWrong | Cause::RightsMissing) {
        true => TOKEN_WRONG,
        false => FAILED,
    };
    let message = match call {
        TinyidCall::Ids if code == FAILED => format!("error query segmentId: {failure}"),
        TinyidCall::Ids | TinyidCall::Segment => failure.to_string(),
        TinyidCall::IdsSimple | TinyidCall::SegmentSimple => return text(String::new()),
    };
    json(&Response::<u64> {
        data: None,
        code,
        message: &message,
    })
}

fn listed(keys: &KeyBatch) -> Result<String, Failure> {
    let mut all = String::new();
    for at in 0..keys.len() {
        if at > 0 {
            all.push(',');
        }
        // Writing to a String cannot fail.
        let _ = write!(all, "{}", keys.number(at).ok_or_else(no_number)?);
    }
    Ok(all)
}

/// A run as a segment. The numbers of a tag with tinyid's own `delta` are that far apart.
fn segment(keys: &KeyBatch) -> Result<Segment, Failure> {
    let KeyBatch::Numbers {
        first,
        spacing,
        count,
    } = keys
    else {
        return Err(no_number());
    };
    let segment = || {
        let delta = (*spacing).max(1);
        let length = delta.checked_mul(*count)?;
        let current_id = i64::try_from(*first).ok()?.checked_sub_unsigned(delta)?;
        Some(Segment {
            max_id: current_id.checked_add_unsigned(length)?.try_into().ok()?,
            loading_id: current_id
                .checked_add_unsigned(length.checked_mul(LOADING_PERCENT)? / 100)?,
            current_id,
            delta,
            remainder: first % delta,
        })
    };
    segment().ok_or_else(no_number)
}

fn no_number() -> Failure {
    Failure::new(Cause::IdForeign, "the keys have no place in a segment")
}

fn json<T: Serialize>(response: &Response<'_, T>) -> Reply {
    // Texts and numbers can always be written.
    let body = serde_json::to_string(response).unwrap_or_default();
    Reply::new(StatusCode::OK, spring::JSON, body)
}

fn text(body: String) -> Reply {
    Reply::new(StatusCode::OK, TEXT, body)
}

#[cfg(test)]
mod tests {
    use keywright_core::KeyBatch;

    use super::segment;

    /// The ids that tinyid's client makes of a segment.
    fn of_client(keys: &KeyBatch) -> Vec<i64> {
        let its = segment(keys).unwrap();
        let (delta, remainder) = (
            i64::try_from(its.delta).unwrap(),
            i64::try_from(its.remainder).unwrap(),
        );
        let mut current = its.current_id;
        if current % delta != remainder {
            for _ in 0..=delta {
                current += 1;
                if current % delta == remainder {
                    current -= delta;
                    break;
                }
            }
        }
        let max = i64::try_from(its.max_id).unwrap();
        let ids = std::iter::successors(Some(current + delta), |id| Some(id + delta));
        ids.take_while(|id| *id <= max).collect()
    }

    #[test]
    fn clients_make_exactly_the_keys_of_a_segment() {
        for (first, spacing, count) in [
            (1, 1, 10),
            (1_001, 1, 1),
            (1, 2, 5),
            (2, 2, 5),
            (3, 3, 4),
            (1_000, 7, 3),
        ] {
            let keys = KeyBatch::Numbers {
                first,
                spacing,
                count,
            };
            let expected: Vec<i64> = (0..count)
                .map(|at| i64::try_from(first + at * spacing).unwrap())
                .collect();
            assert_eq!(of_client(&keys), expected, "{first} {spacing} {count}");
        }
    }

    #[test]
    fn numbers_that_have_no_place_are_refused() {
        for (first, spacing, count) in [(u64::MAX, 1, 1), (1, u64::MAX, 1), (1 << 62, 1 << 62, 4)] {
            assert!(
                segment(&KeyBatch::Numbers {
                    first,
                    spacing,
                    count
                })
                .is_err()
            );
        }
        assert!(segment(&KeyBatch::Listed(vec![1])).is_err());
    }
}
