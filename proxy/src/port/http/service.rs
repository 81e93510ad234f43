//! A request from its head to its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body as _, Incoming};
use hyper::http::request::Parts;
use hyper::service::Service;
use hyper::{Request, Response};
use keywright_core::Cause;
use keywright_store::Failure;

use crate::port::access::Who;
use crate::port::http::accept::{self, Format};
use crate::port::http::body::whole;
use crate::port::http::context::HttpContext;
use crate::port::http::credentials::{self, Asker};
use crate::port::http::leaf::{self, LeafTeller};
use crate::port::http::own;
use crate::port::http::parameters::{Parameters, is_form};
use crate::port::http::reply::{Reply, ReplyBody};
use crate::port::http::route::{self, Endpoint, TinyidCall};
use crate::port::http::step::{Step, draining};
use crate::port::http::taking::{Teller, refuse, take};
use crate::port::http::tinyid::{self, Wanted};
use crate::port::keys::PortKeys;

/// Answers the requests of a connection.
pub(super) struct HttpService(pub(super) Arc<HttpContext>);

/// A request that is being answered.
pub(super) struct Answering {
    context: Arc<HttpContext>,
    is_last: bool,
    step: Step,
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

/// Looks at a head, and answers unless a body is still to come.
fn begin(context: &Arc<HttpContext>, head: Parts, body: Incoming) -> Step {
    let format = accept::format(&head.headers);
    let Some(keys) = context.snapshot.borrow().port(context.port) else {
        return Step::there(Reply::failure(format, &draining()));
    };
    keys.figures.requests(1);
    let is_key_by_get = route::is_key_by_get(&head.method, head.uri.path());
    let named = keys.port.hosts.check(&head.uri, &head.headers);
    let checked = named.and_then(|()| credentials::no_page(&head.headers, is_key_by_get));
    if let Err(failure) = checked {
        return Step::there(refuse(&keys, "", &Teller::Own(format), &failure));
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
            let reply = refuse(&keys, "", &Teller::Own(format), &stray.failure);
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
            Err(failure) => {
                let teller = Teller::Own(asked.format);
                refuse(&asked.keys, "", &teller, &failure).last()
            }
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
        (_, Err(failure)) => {
            return Step::there(refuse(keys, "", &Teller::Own(format), failure));
        }
    };
    match &asked.endpoint {
        Endpoint::List => Step::there(own::list(format, &who.names(keys), keys)),
        Endpoint::Decode(id) => Step::there(own::decoded(format, id, keys)),
        Endpoint::Keys(_) if !body.is_empty() && !is_form => {
            let failure = Failure::new(Cause::CommandRefused, "a body has no meaning here");
            let hint = "write ?count=n behind the path, or send a form";
            let failure = failure.hint(hint);
            Step::there(refuse(keys, "", &Teller::Own(format), &failure))
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
