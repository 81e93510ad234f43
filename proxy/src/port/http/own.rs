//! The program's own interface: `/v1/…`.

use std::fmt::Write as _;
use std::sync::Arc;

use keywright_core::{Cause, KeyBatch};
use keywright_store::{Clock, Failure, SystemClock};
use serde::Serialize;

use crate::config::port::http::HttpLimits;
use crate::decode::{Decoded, decode};
use crate::port::access::Who;
use crate::port::http::accept::Format;
use crate::port::http::parameters::{Parameters, shown};
use crate::port::http::reply::Reply;
use crate::port::issue::{self, KeyRequest, Wants};
use crate::port::keys::{NamedKeys, PortKeys};

/// A key in a list takes so much at most: a number twice, or a UUID, with what stands around it, bytes.
const KEY_BYTES: usize = 48;

/// A name in the list.
#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    key: String,
    state: &'static str,
    given: u64,
}

/// The list.
#[derive(Serialize)]
struct List<'a> {
    names: Vec<Listed<'a>>,
}

/// An id with its parts.
#[derive(Serialize)]
struct WithId<'a> {
    id: &'a str,
    #[serde(flatten)]
    parts: Decoded,
}

/// What `POST /v1/keys/{name}?count=n` asks for.
///
/// # Errors
/// There is no such name, or it gives not so many; the name is given where there is one.
pub(super) fn request(
    (keys, who): (&PortKeys, &Who),
    name: &[u8],
    parameters: &Parameters,
    limits: &HttpLimits,
) -> Result<KeyRequest, (Option<Arc<NamedKeys>>, Failure)> {
    if let Err(failure) = who.may_use(name) {
        return Err((keys.name(name).cloned(), failure));
    }
    let Some(named) = keys.name(name) else {
        return Err((None, issue::unknown(name, keys)));
    };
    let count = count(named, parameters, limits);
    match count {
        Ok(count) => Ok(KeyRequest::new(named, count, Wants::List)),
        Err(failure) => Err((Some(Arc::clone(named)), failure)),
    }
}

fn count(named: &NamedKeys, parameters: &Parameters, limits: &HttpLimits) -> Result<u64, Failure> {
    let Some(text) = parameters.only("count")? else {
        return Ok(1);
    };
    let refused = |message| Err(Failure::new(Cause::ArgumentOutOfRange, message));
    let Ok(count) = text.parse() else {
        return refused(format!("count is a number, not \"{}\"", shown(text)));
    };
    let count = issue::count(named, count)?;
    // A source reserves no more at once.
    let most = limits.request_keys_max.min(named.listed_max);
    if count > most {
        let message = format!(
            "one request gives at most {most} keys of \"{}\", not {count}",
            named.name
        );
        return refused(message).map_err(|failure: Failure| {
            failure
                .hint("ask several times, or raise request_keys_max, and range_ids_max of [store]")
        });
    }
    Ok(count)
}

/// Keys that were taken.
///
/// # Errors
/// One has no place in an answer.
pub(super) fn told(format: Format, named: &NamedKeys, keys: &KeyBatch) -> Result<Reply, Failure> {
    let len = usize::try_from(keys.len()).unwrap_or(usize::MAX);
    let mut body = String::with_capacity(len.saturating_mul(KEY_BYTES).saturating_add(64));
    match format {
        Format::Text => {
            for at in 0..keys.len() {
                write_key(keys, at, &mut body)?;
                body.push('\n');
            }
        }
        Format::Json => {
            // A text can always be written.
            let name = serde_json::to_string(&named.name).unwrap_or_default();
            let _ = write!(body, "{{\"name\":{name},\"keys\":[");
            write_list(keys, "\"", &mut body)?;
            // JavaScript's numbers hold 53 bits: whoever needs more takes the texts.
            if named.is_number() {
                body.push_str("],\"numbers\":[");
                write_list(keys, "", &mut body)?;
            }
            body.push_str("]}\n");
        }
    }
    Ok(Reply::of(format, body))
}

fn write_list(keys: &KeyBatch, quote: &str, to: &mut String) -> Result<(), Failure> {
    for at in 0..keys.len() {
        if at > 0 {
            to.push(',');
        }
        to.push_str(quote);
        write_key(keys, at, to)?;
        to.push_str(quote);
    }
    Ok(())
}

/// One key: 16 bytes in hexadecimal digits, as UUIDs of 32 characters.
fn write_key(keys: &KeyBatch, at: u64, to: &mut String) -> Result<(), Failure> {
    let missing = || Failure::new(Cause::IdForeign, "the key has no place in an answer");
    let index = usize::try_from(at).unwrap_or(usize::MAX);
    match keys {
        KeyBatch::Numbers { .. } | KeyBatch::Listed(_) => {
            let _ = write!(to, "{}", keys.number(at).ok_or_else(missing)?);
        }
        // Letters, digits, hyphens and underscores: nothing that JSON writes otherwise.
        KeyBatch::Texts(texts) => to.push_str(texts.get(index).ok_or_else(missing)?),
        KeyBatch::Bytes(all) => {
            for byte in all.get(index).ok_or_else(missing)? {
                let _ = write!(to, "{byte:02x}");
            }
        }
    }
    Ok(())
}

/// The names.
pub(super) fn list(format: Format, names: &[&Arc<NamedKeys>], keys: &PortKeys) -> Reply {
    let listed = names.iter().map(|named| Listed {
        name: &named.name,
        key: named.source(),
        state: keys.state(named),
        given: named.figures.given(),
    });
    let body = match format {
        Format::Json => {
            let list = List {
                names: listed.collect(),
            };
            serde_json::to_string(&list).unwrap_or_default() + "\n"
        }
        Format::Text => listed
            .map(|its| format!("{} {}\n", its.name, its.key))
            .collect(),
    };
    Reply::of(format, body)
}

/// What an id says of itself.
pub(super) fn decoded(format: Format, id: &[u8], keys: &PortKeys) -> Reply {
    let foreign = |error: anyhow::Error| {
        let failure = Failure::new(Cause::IdForeign, format!("{error:#}"));
        Reply::failure(format, &failure)
    };
    let id = match std::str::from_utf8(id) {
        Ok(id) => id,
        Err(error) => return foreign(error.into()),
    };
    match (decode(id, &keys.layout, SystemClock.wall_ms()), format) {
        (Ok(parts), Format::Json) => {
            let body = serde_json::to_string(&WithId { id, parts }).unwrap_or_default();
            Reply::of(format, body + "\n")
        }
        (Ok(parts), Format::Text) => Reply::of(format, format!("{parts}\n")),
        (Err(error), _) => foreign(error),
    }
}
