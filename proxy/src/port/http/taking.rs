//! Keys for a request, and how they are told, or why there are none.

use std::sync::Arc;
use std::time::Instant;

use keywright_core::{Cause, KeyBatch};
use keywright_store::Failure;

use crate::connection::memory::Share;
use crate::port::access::Who;
use crate::port::http::accept::Format;
use crate::port::http::context::HttpContext;
use crate::port::http::leaf::LeafTeller;
use crate::port::http::own;
use crate::port::http::reply::Reply;
use crate::port::http::route::TinyidCall;
use crate::port::http::step::Step;
use crate::port::http::tinyid;
use crate::port::issue::KeyRequest;
use crate::port::keys::{NamedKeys, PortKeys};

/// Fewer keys than these ask for no share of the memory for all.
const FREE_KEYS: u64 = 1_000;
/// What a key takes until it is sent, with its place in an answer, bytes.
const KEY_BYTES: usize = 96;

/// How keys are told, and why there are none.
pub(super) enum Teller {
    Own(Format),
    Leaf(LeafTeller),
    Tinyid(TinyidCall),
}

/// A request that gets no keys; with its name, if there is such.
type Refused = (Option<Arc<NamedKeys>>, Failure);

/// Takes keys, if they are there; else the answer waits for them.
pub(super) fn take(
    context: &Arc<HttpContext>,
    (keys, who): (&Arc<PortKeys>, &Who),
    teller: Teller,
    request: Result<KeyRequest, Refused>,
) -> Step {
    let began = Instant::now();
    let held = request.and_then(|request| match hold(context, request.count()) {
        Ok(share) => Ok((request, share)),
        Err(failure) => Err((keys.name(request.named().name.as_bytes()).cloned(), failure)),
    });
    let (request, share) = match held {
        Ok(held) => held,
        Err((named, failure)) => {
            let name = named.as_ref().map_or("", |named| named.name.as_str());
            return Step::there(refuse(keys, name, &teller, &failure));
        }
    };
    if let Some(taken) = request.try_take() {
        let reply = tell(keys, &request, &teller, &taken).holding(share);
        request.named().figures.took(1, began.elapsed());
        return Step::there(reply);
    }
    let coming = request.take(context.snapshot.clone(), context.port);
    let (keys, who) = (Arc::clone(keys), who.clone());
    Step::Coming(Box::pin(async move {
        // Rights may have gone while it waited: then the keys are nobody's.
        let taken = coming.await;
        let name = request.named().name.as_bytes();
        let may = who.now(&keys).and_then(|who| who.may_use(name));
        let reply = match may.and(taken) {
            Ok(taken) => tell(&keys, &request, &teller, &taken).holding(share),
            Err(failure) => refuse(&keys, &request.named().name, &teller, &failure),
        };
        request.named().figures.took(1, began.elapsed());
        reply
    }))
}

/// Room for so many keys, of the memory for all.
fn hold(context: &HttpContext, count: u64) -> Result<Option<Share>, Failure> {
    if count <= FREE_KEYS {
        return Ok(None);
    }
    let mut share = Share::new(Arc::clone(&context.memory));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    match share.hold(count.saturating_mul(KEY_BYTES)) {
        true => Ok(Some(share)),
        false => {
            let failure = Failure::new(Cause::MemoryFull, "answers fill memory_bytes_max");
            Err(failure.hint("ask for fewer keys, or again later"))
        }
    }
}

/// Tells keys that were taken. They count as used, whatever becomes of the answer.
fn tell(keys: &PortKeys, request: &KeyRequest, teller: &Teller, taken: &KeyBatch) -> Reply {
    let named = request.named();
    named.figures.gave(taken.len());
    if let Some(last) = taken.number(taken.len().saturating_sub(1)) {
        named.figures.gave_last(last);
    }
    let told = match teller {
        Teller::Own(format) => own::told(*format, named, taken),
        Teller::Leaf(teller) => teller.told(taken),
        Teller::Tinyid(call) => tinyid::told(*call, taken),
    };
    told.unwrap_or_else(|failure| refuse(keys, &named.name, teller, &failure))
}

pub(super) fn refuse(keys: &PortKeys, name: &str, teller: &Teller, failure: &Failure) -> Reply {
    keys.figures.refused(name, failure.cause());
    match teller {
        Teller::Own(format) => Reply::failure(*format, failure),
        Teller::Leaf(teller) => teller.failure(failure),
        Teller::Tinyid(call) => tinyid::failure(*call, failure),
    }
}
