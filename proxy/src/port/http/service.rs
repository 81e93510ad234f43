//! A request from its head to its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::http::request::Parts;
use hyper::service::Service;
use hyper::{Request, Response};
use keywright_core::{Cause, KeyBatch};
use keywright_store::Failure;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::config::port::http::HttpLimits;
use crate::connection::memory::{Memory, Share};
use crate::in_force::snapshot::ConfigSnapshot;
use crate::port::http::accept::{self, Format};
use crate::port::http::leaf::{self, LeafTeller};
use crate::port::http::parameters::{Parameters, is_form};
use crate::port::http::reply::{Reply, ReplyBody};
use crate::port::http::route::{self, Endpoint, TinyidCall};
use crate::port::http::socket::Activity;
use crate::port::http::tinyid::{self, Wanted};
use crate::port::http::{credentials, own};
use crate::port::issue::KeyRequest;
use crate::port::keys::{NamedKeys, PortKeys};

/// Fewer keys than these ask for no share of the memory for all.
const FREE_KEYS: u64 = 1_000;
/// What a key takes until it is sent, with its place in an answer, bytes.
const KEY_BYTES: usize = 96;

/// What requests draw on.
pub(super) struct HttpContext {
    /// The port's place in the configuration.
    pub(super) port: usize,
    /// What is in force.
    pub(super) snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    /// What is bounded.
    pub(super) limits: HttpLimits,
    /// What long answers take their room of.
    pub(super) memory: Arc<Memory>,
    /// What happens on the connection.
    pub(super) activity: Arc<Activity>,
}

/// Answers the requests of a connection.
pub(super) struct HttpService(pub(super) Arc<HttpContext>);

/// A request that is being answered.
pub(super) struct Answering {
    context: Arc<HttpContext>,
    is_last: bool,
    step: Step,
}

/// How far an answer is.
enum Step {
    /// There.
    There(Option<Box<Reply>>),
    /// Its request is not there whole, or its keys are not.
    Coming(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

/// What is asked, and by whom.
struct Asked {
    keys: Arc<PortKeys>,
    endpoint: Endpoint,
    format: Format,
    /// Whether the head says the password.
    header: Result<(), Failure>,
    head: Parts,
}

/// How keys are told, and why there are none.
enum Teller {
    Own(Format),
    Leaf(LeafTeller),
    Tinyid(TinyidCall),
}

/// A request that gets no keys; with its name, if there is such.
type Refused = (Option<Arc<NamedKeys>>, Failure);

impl Service<Request<Incoming>> for HttpService {
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        let requests = self.0.activity.answers();
        let most = self.0.limits.keepalive_requests_max;
        let (head, body) = request.into_parts();
        Answering {
            context: Arc::clone(&self.0),
            is_last: most > 0 && requests >= most,
            step: begin(&self.0, head, body),
        }
    }
}

impl Future for Answering {
    type Output = Result<Response<ReplyBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, waker: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = match &mut self.step {
            Step::There(reply) => reply.take().map(|reply| *reply),
            Step::Coming(coming) => Some(ready!(coming.as_mut().poll(waker))),
        };
        let gone = || Reply::failure(Format::Json, &draining());
        let reply = reply.unwrap_or_else(gone);
        let reply = if self.is_last { reply.last() } else { reply };
        self.context.activity.answered();
        Poll::Ready(Ok(reply.into_response()))
    }
}

impl Step {
    fn there(reply: Reply) -> Self {
        Self::There(Some(Box::new(reply)))
    }
}

/// Looks at a head, and answers unless a body is still to come.
fn begin(context: &Arc<HttpContext>, head: Parts, body: Incoming) -> Step {
    let format = accept::format(&head.headers);
    let refused = |failure: &Failure| Step::there(Reply::failure(format, failure));
    let Some(keys) = context.snapshot.borrow().port(context.port) else {
        return refused(&draining());
    };
    keys.figures.requests(1);
    if let Err(failure) = credentials::no_page(&head.headers) {
        return refused(&failure);
    }
    let header = credentials::check(&head.headers, keys.port.password.as_deref());
    let endpoint = route::endpoint(&head.method, head.uri.path());
    // Clients of tinyid say the password among the parameters.
    let says_token = matches!(endpoint, Ok(Endpoint::Tinyid(_)));
    if let Err(failure) = &header
        && !says_token
    {
        return refused(failure);
    }
    let endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(stray) => {
            let reply = Reply::failure(format, &stray.failure);
            return Step::there(reply.allowing(stray.allow));
        }
    };
    let asked = Asked {
        keys,
        endpoint,
        format,
        header,
        head,
    };
    if body.is_end_stream() {
        return carry_out(context, &asked, &[]);
    }
    let context = Arc::clone(context);
    Step::Coming(Box::pin(async move {
        match whole(body, &context.limits).await {
            Ok(body) => match carry_out(&context, &asked, &body) {
                Step::There(reply) => {
                    reply.map_or_else(|| Reply::failure(asked.format, &draining()), |reply| *reply)
                }
                Step::Coming(coming) => coming.await,
            },
            // What is behind it cannot be told.
            Err(failure) => Reply::failure(asked.format, &failure).last(),
        }
    }))
}

/// A body to its end.
async fn whole(mut body: Incoming, limits: &HttpLimits) -> Result<Vec<u8>, Failure> {
    let most = limits.body_bytes_max;
    let too_long = || {
        let message = format!("a body has at most {most} bytes on this listener");
        Failure::new(Cause::PacketTooLarge, message).hint("raise body_bytes_max")
    };
    if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    let reads = async {
        while let Some(frame) =
            std::future::poll_fn(|waker| Pin::new(&mut body).poll_frame(waker)).await
        {
            let broken = |error| {
                let message = format!("the body is none: {error}");
                Failure::new(Cause::PacketMalformed, message)
            };
            let frame = frame.map_err(broken)?;
            let data = frame.data_ref().map_or(&[] as &[u8], |data| data);
            if bytes.len().saturating_add(data.len()) > most {
                return Err(too_long());
            }
            bytes.extend_from_slice(data);
        }
        Ok(())
    };
    match timeout(Duration::from_millis(limits.request_ms_max), reads).await {
        Ok(outcome) => outcome.map(|()| bytes),
        Err(_) => Err(Failure::new(
            Cause::RequestTimeout,
            "the body did not come within request_ms_max",
        )),
    }
}

/// Answers a request that is there whole, or waits for its keys.
fn carry_out(context: &Arc<HttpContext>, asked: &Asked, body: &[u8]) -> Step {
    let (keys, format) = (&asked.keys, asked.format);
    let query = asked.head.uri.query().unwrap_or_default();
    let is_form = is_form(&asked.head.headers);
    let form = if is_form { body } else { &[] };
    match &asked.endpoint {
        Endpoint::List => Step::there(own::list(format, keys)),
        Endpoint::Decode(id) => Step::there(own::decoded(format, id, keys)),
        Endpoint::Keys(_) if !body.is_empty() && !is_form => {
            let failure = Failure::new(Cause::CommandRefused, "a body has no meaning here");
            let hint = "write ?count=n behind the path, or send a form";
            Step::there(Reply::failure(format, &failure.hint(hint)))
        }
        Endpoint::Keys(name) => {
            let parameters = Parameters::new(query, form);
            let request = own::request(keys, name, &parameters, &context.limits);
            take(context, keys, Teller::Own(format), request)
        }
        Endpoint::Leaf(service, key) => {
            let teller = Teller::Leaf(LeafTeller::new(&asked.head));
            take(context, keys, teller, leaf::request(keys, *service, key))
        }
        Endpoint::Tinyid(call) => {
            let parameters = Parameters::new(query, form);
            let path = asked.head.uri.path();
            let batch = match call {
                TinyidCall::Ids | TinyidCall::IdsSimple => {
                    tinyid::batch(&parameters, &context.limits, path)
                }
                TinyidCall::Segment | TinyidCall::SegmentSimple => Ok(1),
            };
            let batch = match batch {
                Ok(batch) => batch,
                Err(reply) => return Step::There(Some(reply)),
            };
            let header = asked.header.clone();
            let wanted =
                tinyid::request(keys, (*call, batch), &parameters, header, &context.limits);
            let request = match wanted {
                Ok(Wanted::Nothing) => return Step::there(tinyid::nothing(*call)),
                Ok(Wanted::Keys(request)) => Ok(request),
                Err(refused) => Err(refused),
            };
            take(context, keys, Teller::Tinyid(*call), request)
        }
    }
}

/// Takes keys, if they are there; else the answer waits for them.
fn take(
    context: &Arc<HttpContext>,
    keys: &Arc<PortKeys>,
    teller: Teller,
    request: Result<KeyRequest, Refused>,
) -> Step {
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
        return Step::there(tell(keys, &request, &teller, &taken).holding(share));
    }
    let coming = request.take(context.snapshot.clone(), context.port);
    let keys = Arc::clone(keys);
    Step::Coming(Box::pin(async move {
        match coming.await {
            Ok(taken) => tell(&keys, &request, &teller, &taken).holding(share),
            Err(failure) => refuse(&keys, &request.named().name, &teller, &failure),
        }
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

fn refuse(keys: &PortKeys, name: &str, teller: &Teller, failure: &Failure) -> Reply {
    keys.figures.refused(name, failure.cause());
    match teller {
        Teller::Own(format) => Reply::failure(*format, failure),
        Teller::Leaf(teller) => teller.failure(failure),
        Teller::Tinyid(call) => tinyid::failure(*call, failure),
    }
}

fn draining() -> Failure {
    Failure::new(Cause::Draining, "the program is stopping")
}
