//! What requests are, by two readers.

use keywright_resp::command::Command;
use keywright_resp::fault::Fault;
use keywright_resp::limits::Limits;
use keywright_resp::request::{Read, Reader};
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;

/// Small enough to be met.
pub(crate) const LIMITS: Limits = Limits {
    arguments_max: 16,
    argument_bytes_max: 256,
    request_bytes_max: 1_024,
};

/// Deeper nesting than that is not for the oracle, which goes down by calling itself.
const NESTED_MAX: usize = 64;

/// The requests that bytes begin with, each with its length, and what is behind them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) whole: Vec<(Vec<Vec<u8>>, usize)>,
    pub(crate) fault: Option<Fault>,
}

/// Reads bytes that come in pieces of these sizes.
pub(crate) fn read(bytes: &[u8], mut size: impl FnMut() -> usize) -> Requests {
    let mut reader = Reader::new(LIMITS);
    let mut requests = Requests {
        whole: Vec::new(),
        fault: None,
    };
    let (mut from, mut to) = (0, 0);
    while to < bytes.len() {
        to = to.saturating_add(size().max(1)).min(bytes.len());
        loop {
            match reader.read(&bytes[from..to]) {
                Ok(Read::Incomplete) => break,
                Ok(Read::Request(request)) => {
                    if request.count() > 0
                        && let Err(refusal) = Command::parse(&request)
                    {
                        assert!(!refusal.to_string().contains(['\r', '\n']));
                    }
                    let arguments = request.arguments(0).map(<[u8]>::to_vec).collect();
                    requests.whole.push((arguments, request.bytes()));
                    from += request.bytes();
                }
                Err(fault) => {
                    requests.fault = Some(fault);
                    return requests;
                }
            }
        }
    }
    requests
}

/// What the oracle takes for an array of strings, with its length.
fn oracle(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let nested = bytes.iter().filter(|byte| **byte == b'*').count();
    if nested > NESTED_MAX {
        return None;
    }
    let (frame, length) = decode(bytes).ok()??;
    let OwnedFrame::Array(elements) = frame else {
        return None;
    };
    let strings = elements.into_iter().map(|element| match element {
        OwnedFrame::BulkString(bytes) => Some(bytes),
        _ => None,
    });
    Some((strings.collect::<Option<_>>()?, length))
}

/// A request as clients write it.
pub(crate) fn written(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// That both readers read the same, and that it does not depend on the pieces in which bytes come.
pub(crate) fn agrees(bytes: &[u8]) {
    let whole = read(bytes, || usize::MAX);
    let mut size = 0;
    let in_pieces = read(bytes, || {
        size = size % 5 + 1;
        size
    });
    assert_eq!(whole.whole, in_pieces.whole);
    assert_eq!(whole.fault.is_some(), in_pieces.fault.is_some());
    let mut at = 0;
    for (arguments, length) in &whole.whole {
        let sent = &bytes[at..at + length];
        if sent.starts_with(b"*") && !sent.starts_with(b"*-") {
            let nested = bytes[at..].iter().filter(|byte| **byte == b'*').count();
            if nested <= NESTED_MAX {
                assert_eq!(oracle(&bytes[at..]), Some((arguments.clone(), *length)));
            }
        }
        at += length;
    }
    if let Some((arguments, _)) = oracle(bytes) {
        let canonical = written(&arguments);
        let is_short = arguments.len() <= 16
            && arguments.iter().all(|argument| argument.len() <= 256)
            && canonical.len() <= 1_024;
        if is_short {
            let again = read(&canonical, || usize::MAX);
            assert_eq!(again.whole, [(arguments, canonical.len())]);
        }
    }
}
