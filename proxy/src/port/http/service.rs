//! A request from its head to its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use hyper::body::{Body as _, Incoming};
use hyper::http::request::Parts;
use hyper::service::Service;
use hyper::{Request, Response};
use keywright_core::{Cause, KeyBatch};
use keywright_store::Failure;
use tokio::sync::watch;

use crate::config::port::http::HttpLimits;
use crate::connection::memory::{Memory, Share};
use crate::in_force::snapshot::ConfigSnapshot;
use crate::port::access::Who;
use crate::port::http::accept::{self, Format};
use crate::port::http::body::whole;
use crate::port::http::credentials::{self, Asker};
use crate::port::http::leaf::{self, LeafTeller};
use crate::port::http::own;
use crate::port::http::parameters::{Parameters, is_form};
use crate::port::http::reply::{Reply, ReplyBody};
use crate::port::http::route::{self, Endpoint, TinyidCall};
use crate::port::http::socket::Activity;
use crate::port::http::tinyid::{self, Wanted};
use crate::port::issue::KeyRequest;
use crate::port::keys::{NamedKeys, PortKeys};
use crate::users::turns::Line;

/// Fewer keys than these ask for no share of the memory for all.
const FREE_KEYS: u64 = 1_000;
/// What a key takes until it is sent, with its place in an answer, bytes.
const KEY_BYTES: usize = 96;

/// Wrong passwords on one connection, behind which it ends.
const LOGIN_FAILURES_MAX: u32 = 4;

/// What requests draw on.
pub(super) struct HttpContext {
    /// The port's place in the configuration.
    pub(super) port: usize,
    /// Where the client waits until a password is looked at.
    pub(super) line: Line,
    /// What is in force.
    pub(super) snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    /// What is bounded.
    pub(super) limits: HttpLimits,
    /// What long answers take their room of.
    pub(super) memory: Arc<Memory>,
    /// What happens on the connection.
    pub(super) activity: Arc<Activity>,
    /// Wrong passwords that came on it.
    pub(super) login_failures: AtomicU32,
}

impl HttpContext {
    /// Whether that was one wrong password too many on this connection.
    fn is_guessing(&self, failure: &Failure) -> bool {
        failure.cause() == Cause::PasswordWrong
            && self.login_failures.fetch_add(1, Ordering::Relaxed) >= LOGIN_FAILURES_MAX
    }
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
    /// Who asks, by the head.
    who: Result<Who, Failure>,
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

    async fn into_reply(self) -> Reply {
        match self {
            Self::There(Some(reply)) => *reply,
            Self::There(None) => Reply::failure(Format::Json, &draining()),
            Self::Coming(coming) => coming.await,
        }
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
    let is_key_by_get = route::is_key_by_get(&head.method, head.uri.path());
    let named = keys.port.hosts.check(&head.uri, &head.headers);
    let checked = named.and_then(|()| credentials::no_page(&head.headers, is_key_by_get));
    if let Err(failure) = checked {
        return refused(&failure);
    }
    match credentials::asker(&head.headers, &keys, context.line) {
        Asker::Decided(who) => begin_as(who, keys, context, head, body),
        Asker::Coming(coming) => {
            let context = Arc::clone(context);
            Step::Coming(Box::pin(async move {
                let who = coming.await.map(Who::User);
                match by_now(&context, who) {
                    Some((keys, who)) => {
                        let step = begin_as(who, keys, &context, head, body);
                        step.into_reply().await
                    }
                    None => Reply::failure(format, &draining()),
                }
            }))
        }
    }
}

/// The port as it is now, and who asks: both may have changed while something was waited for. Nothing: the port is no more.
fn by_now(
    context: &HttpContext,
    who: Result<Who, Failure>,
) -> Option<(Arc<PortKeys>, Result<Who, Failure>)> {
    let keys = context.snapshot.borrow().port(context.port)?;
    let who = who.and_then(|who| who.now(&keys));
    Some((keys, who))
}

/// Goes on with who asks.
fn begin_as(
    who: Result<Who, Failure>,
    keys: Arc<PortKeys>,
    context: &Arc<HttpContext>,
    head: Parts,
    body: Incoming,
) -> Step {
    let format = accept::format(&head.headers);
    let endpoint = route::endpoint(&head.method, head.uri.path());
    // Clients of tinyid say the password among the parameters.
    let says_token = matches!(endpoint, Ok(Endpoint::Tinyid(_)));
    if let Err(failure) = &who
        && !says_token
    {
        let mut reply = Reply::failure(format, failure);
        keys.figures.refused("", failure.cause());
        if keys.users.is_some() {
            reply = reply.of_users();
        }
        let is_guess = context.is_guessing(failure);
        return Step::there(if is_guess { reply.last() } else { reply });
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
        who,
        head,
    };
    if body.is_end_stream() {
        return carry_out(context, &asked, &[]);
    }
    let context = Arc::clone(context);
    Step::Coming(Box::pin(async move {
        match whole(body, &context.limits).await {
            Ok(body) => {
                let Some((keys, who)) = by_now(&context, asked.who) else {
                    return Reply::failure(asked.format, &draining());
                };
                let asked = Asked { keys, who, ..asked };
                carry_out(&context, &asked, &body).into_reply().await
            }
            // What is behind it cannot be told.
            Err(failure) => Reply::failure(asked.format, &failure).last(),
        }
    }))
}

/// Answers a request that is there whole, or waits for its keys.
fn carry_out(context: &Arc<HttpContext>, asked: &Asked, body: &[u8]) -> Step {
    let (keys, format) = (&asked.keys, asked.format);
    let query = asked.head.uri.query().unwrap_or_default();
    let is_form = is_form(&asked.head.headers);
    let form = if is_form { body } else { &[] };
    let who = match (&asked.endpoint, &asked.who) {
        (Endpoint::Tinyid(call), _) => {
            let parameters = Parameters::new(query, form);
            return of_tinyid(context, asked, *call, parameters);
        }
        (_, Ok(who)) => who,
        (_, Err(failure)) => return Step::there(Reply::failure(format, failure)),
    };
    match &asked.endpoint {
        Endpoint::List => Step::there(own::list(format, &who.names(keys), keys)),
        Endpoint::Decode(id) => Step::there(own::decoded(format, id, keys)),
        Endpoint::Keys(_) if !body.is_empty() && !is_form => {
            let failure = Failure::new(Cause::CommandRefused, "a body has no meaning here");
            let hint = "write ?count=n behind the path, or send a form";
            Step::there(Reply::failure(format, &failure.hint(hint)))
        }
        Endpoint::Keys(name) => {
            let parameters = Parameters::new(query, form);
            let request = own::request((keys, who), name, &parameters, &context.limits);
            take(context, (keys, who), Teller::Own(format), request)
        }
        Endpoint::Leaf(service, key) => {
            let teller = Teller::Leaf(LeafTeller::new(&asked.head));
            let request = leaf::request((keys, who), *service, key);
            take(context, (keys, who), teller, request)
        }
        Endpoint::Tinyid(call) => Step::there(tinyid::nothing(*call)),
    }
}

/// Answers a client of tinyid, who may say who it is among the parameters.
fn of_tinyid(
    context: &Arc<HttpContext>,
    asked: &Asked,
    call: TinyidCall,
    parameters: Parameters,
) -> Step {
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
    let called = (call, batch);
    let line = context.line;
    match tinyid::asker((&asked.keys, line), asked.who.clone(), &parameters) {
        Asker::Decided(who) => of_tinyid_as(context, &asked.keys, who, called, &parameters),
        Asker::Coming(coming) => {
            let (context, format) = (Arc::clone(context), asked.format);
            Step::Coming(Box::pin(async move {
                let who = coming.await.map(Who::User);
                let Some((keys, who)) = by_now(&context, who) else {
                    return Reply::failure(format, &draining());
                };
                of_tinyid_as(&context, &keys, who, called, &parameters)
                    .into_reply()
                    .await
            }))
        }
    }
}

fn of_tinyid_as(
    context: &Arc<HttpContext>,
    keys: &Arc<PortKeys>,
    who: Result<Who, Failure>,
    called: (TinyidCall, u64),
    parameters: &Parameters,
) -> Step {
    let teller = Teller::Tinyid(called.0);
    let is_guess = who
        .as_ref()
        .err()
        .is_some_and(|failure| context.is_guessing(failure));
    let request = match tinyid::request(keys, called, parameters, &who, &context.limits) {
        Ok(Wanted::Nothing) => return Step::there(tinyid::nothing(called.0)),
        Ok(Wanted::Keys(request)) => Ok(request),
        Err(refused) => Err(refused),
    };
    match (request, who) {
        (Ok(request), Ok(who)) => take(context, (keys, &who), teller, Ok(request)),
        (Ok(_), Err(failure)) => Step::there(refuse(keys, "", &teller, &failure)),
        (Err((named, failure)), _) => {
            let name = named.as_ref().map_or("", |named| named.name.as_str());
            let reply = refuse(keys, name, &teller, &failure);
            Step::there(if is_guess { reply.last() } else { reply })
        }
    }
}

/// Takes keys, if they are there; else the answer waits for them.
fn take(
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
