//! One connection to a key port, as a state machine without sockets: bytes in, bytes out, and a wait for keys in between.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use keywright_core::Cause;
use keywright_resp::fault::Fault;
use keywright_resp::reply::Writer;
use keywright_resp::request::{Read, Reader};
use keywright_store::Failure;
use keywright_store::users::User;

use crate::config::port::redis::RedisLimits;
use crate::metrics::port::CutOff;
use crate::port::issue::Issued;
use crate::port::keys::PortKeys;
use crate::port::redis::client::Client;
use crate::port::redis::commands::carry_out;
use crate::port::redis::context::PortContext;
use crate::port::redis::held::{Confirming, Held};
use crate::port::redis::outcome::{Doing, Greeting, Outcome};
use crate::port::redis::output::{FREE_BYTES, Room};
use crate::port::redis::told::{AskedKeys, Away};
use crate::port::redis::turn::Turn;
use crate::port::redis::{limits, login, refused};
use crate::users::login::ComingUser;
use crate::users::turns::Line;

/// Keys on their way.
type Keys = Pin<Box<dyn Future<Output = Result<Issued, Failure>> + Send>>;

/// Where a connection is.
enum Phase {
    /// Requests are read and answered, in their order.
    Serving,
    /// A request waits, and what is behind it waits for that.
    Waiting(Wait),
    /// Nothing is read any more. What is written goes out, then the connection ends.
    Ending(Option<CutOff>),
}

/// What a request waits for.
enum Wait {
    /// Keys; since when.
    Keys(AskedKeys, Keys, Instant),
    /// A password is being looked at.
    Login(ComingUser, Greeting),
    /// The store.
    Doing(Doing),
}

impl fmt::Debug for Phase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Phase::Serving => "Serving",
            Phase::Waiting(_) => "Waiting",
            Phase::Ending(_) => "Ending",
        })
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session {
    reader: Reader,
    client: Client,
    phase: Phase,
    /// Replies of this turn that wait for the store, and what was answered behind them.
    held: Option<Held>,
    /// The same of the turn before: nothing more is carried out until it is known.
    confirming: Option<Confirming>,
    limits: RedisLimits,
}

/// How far requests were carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Served {
    /// Bytes that are done with.
    pub(super) bytes: usize,
    /// Why no more of them are.
    pub(super) halt: Halt,
}

/// Why no more requests are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// There is none that is there whole.
    Dry,
    /// Others are to have their turn.
    Turn,
    /// There is no room for replies.
    Full,
    /// One waits for keys.
    Keys,
    /// The connection ends.
    End,
}

impl Session {
    /// Of the connection with this number. `line`: where its client waits with passwords.
    pub(super) fn new((number, line): (u64, Line), context: &PortContext) -> Self {
        let limits = context.limits;
        Self {
            reader: Reader::new(limits::of_requests(&limits, false)),
            client: Client::new(
                (number, line),
                login::at_first(&context.keys),
                context.keys.cluster.is_some(),
            ),
            phase: Phase::Serving,
            held: None,
            confirming: None,
            limits,
        }
    }

    /// Whether more may be read.
    pub(super) fn reads(&self) -> bool {
        matches!(self.phase, Phase::Serving) && self.confirming.is_none()
    }

    /// Whether it ends when all is written, and why, if not as the client wanted.
    pub(super) fn ends(&self) -> Option<Option<CutOff>> {
        match self.phase {
            Phase::Ending(_) if self.confirming.is_some() => None,
            Phase::Ending(why) => Some(why),
            Phase::Serving | Phase::Waiting(_) => None,
        }
    }

    /// Whether the client may ask for keys.
    pub(super) fn is_let_in(&self) -> bool {
        self.client.is_let_in()
    }

    /// Whether more is carried out while so many bytes of replies wait.
    pub(super) fn has_room(&self, waiting_bytes: usize, room: &mut Room) -> bool {
        (self.is_let_in() || waiting_bytes < FREE_BYTES) && room.has(waiting_bytes)
    }

    /// The connection ends when all is written.
    pub(super) fn end(&mut self, why: Option<CutOff>) {
        self.phase = Phase::Ending(why);
    }

    /// Why nothing more is read behind so many requests of a turn, if so.
    fn halts_behind(&self, requests: u32, waiting_bytes: usize, room: &mut Room) -> Option<Halt> {
        match self.phase {
            Phase::Serving => {}
            Phase::Waiting(_) => return Some(Halt::Keys),
            Phase::Ending(_) => return Some(Halt::End),
        }
        let held = self.held.as_ref().map_or(0, Held::bytes);
        if !self.has_room(waiting_bytes.saturating_add(held), room) {
            return Some(Halt::Full);
        }
        (requests >= self.limits.pipeline_requests_max).then_some(Halt::Turn)
    }

    /// Carries out requests, until one waits, `out` is full, or others are to have their turn.
    pub(super) fn serve(
        &mut self,
        input: &[u8],
        (out, room): (&mut Vec<u8>, &mut Room),
        context: &mut PortContext,
    ) -> Served {
        if self.confirming.is_some() {
            return Served {
                bytes: 0,
                halt: Halt::Keys,
            };
        }
        context.refresh();
        let mut turn = Turn::begin();
        let mut bytes = 0_usize;
        let mut requests = 0_u32;
        let mut unknown = None;
        let mut halt = loop {
            if let Some(halt) = self.halts_behind(requests, out.len(), room) {
                break halt;
            }
            // Whether it is let in may have changed with the last request.
            let its_limits = limits::of_requests(&self.limits, self.is_let_in());
            self.reader.limit(its_limits);
            match self.reader.read(input.get(bytes..).unwrap_or_default()) {
                Ok(Read::Incomplete) => break Halt::Dry,
                Ok(Read::Request(request)) => {
                    // Who it is may have changed since the last turn.
                    if requests == 0 {
                        match self.client.look_again(&context.keys) {
                            Ok(()) => {}
                            Err(failure) if failure.cause() == Cause::UsersUnknown => {
                                unknown = Some(failure);
                            }
                            Err(failure) => {
                                self.shut_out(&failure, out, &context.keys);
                                continue;
                            }
                        }
                    }
                    let its_bytes = request.bytes();
                    if request.count() > 0 {
                        let client = &mut self.client;
                        let to = behind(&mut self.held, out);
                        let to = (to, &mut *room);
                        let outcome = carry_out(&request, client, unknown.as_ref(), to, context);
                        if matches!(outcome, Outcome::PutOff) {
                            break Halt::Full;
                        }
                        self.go_on(outcome, &mut turn, context);
                    }
                    requests = requests.saturating_add(1);
                    bytes = bytes.saturating_add(its_bytes);
                }
                Err(fault) => self.give_up(fault, out, &context.keys),
            }
        };
        if halt == Halt::Dry {
            context.moved.clear();
        }
        if let Some(held) = self.held.take() {
            self.confirming = Some(held.confirm(turn.began(), context));
            halt = Halt::Keys;
        }
        turn.note();
        context.keys.figures.requests(u64::from(requests));
        Served { bytes, halt }
    }

    fn go_on(&mut self, outcome: Outcome, turn: &mut Turn, context: &mut PortContext) {
        self.phase = match outcome {
            Outcome::Answered | Outcome::PutOff => return,
            Outcome::Issued(asked) => return turn.answered(asked),
            Outcome::Unconfirmed(reply) => {
                return match &mut self.held {
                    Some(held) => held.push(reply),
                    None => self.held = Some(Held::new(reply)),
                };
            }
            Outcome::Keys(asked) => {
                let snapshot = context.snapshot.clone();
                let request = asked.request.clone();
                let (port, is_clustered) = (context.port, context.keys.cluster.is_some());
                let keys = async move {
                    match is_clustered {
                        true => request.issue(snapshot, port).await,
                        false => request.take(snapshot, port).await.map(Issued::Keys),
                    }
                };
                Phase::Waiting(Wait::Keys(asked, Box::pin(keys), turn.began()))
            }
            Outcome::Moved(moved) => return context.note_moved(moved),
            Outcome::Gone => Phase::Ending(None),
            Outcome::Login(coming, greeting) => Phase::Waiting(Wait::Login(coming, greeting)),
            Outcome::Doing(doing) => Phase::Waiting(Wait::Doing(doing)),
            Outcome::Quit => Phase::Ending(None),
            Outcome::Stray => Phase::Ending(Some(CutOff::Protocol)),
            Outcome::Guesses => Phase::Ending(Some(CutOff::Guesses)),
            Outcome::Stranger => Phase::Ending(Some(CutOff::Login)),
        };
    }

    /// Its user is no more, or has another password.
    fn shut_out(&mut self, failure: &Failure, out: &mut Vec<u8>, keys: &PortKeys) {
        let mut to = Writer::new(behind(&mut self.held, out), self.client.protocol());
        refused::refuse(keys, b"", failure, &mut to);
        self.phase = Phase::Ending(Some(CutOff::User));
    }

    /// What it sent is no request: what is behind it cannot be told.
    fn give_up(&mut self, fault: Fault, out: &mut Vec<u8>, keys: &PortKeys) {
        let mut to = Writer::new(behind(&mut self.held, out), self.client.protocol());
        let (cause, message) = match self.client.is_let_in() || !fault.is_of_length() {
            true => (Cause::PacketMalformed, fault.to_string()),
            // It may be one that others may send.
            false => (
                Cause::PasswordMissing,
                "Authentication required before a request of this length.".to_owned(),
            ),
        };
        refused::write(keys, cause, &message, &mut to);
        self.phase = Phase::Ending(Some(CutOff::Protocol));
    }

    /// Asks whether what a request waits for has come.
    pub(super) fn poll_waiting(
        &mut self,
        out: &mut Vec<u8>,
        context: &mut PortContext,
        waker: &mut Context<'_>,
    ) -> Poll<()> {
        if let Some(confirming) = &mut self.confirming {
            let released = ready!(confirming.poll(out, context, waker));
            self.confirming = None;
            if released.is_err() {
                self.phase = Phase::Ending(None);
            }
        }
        let Phase::Waiting(wait) = &mut self.phase else {
            return Poll::Ready(());
        };
        let client = &mut self.client;
        let mut to = Writer::new(out, client.protocol());
        self.phase = match wait {
            Wait::Keys(asked, coming, began) => {
                let taken = ready!(coming.as_mut().poll(waker));
                let told = tell_keys(asked, taken, (client, &context.keys), &mut to);
                asked.took(1, began.elapsed());
                match told {
                    Ok(()) => Phase::Serving,
                    Err(Away::Moved(moved)) => {
                        context.note_moved(moved);
                        Phase::Serving
                    }
                    Err(Away::Gone) => Phase::Ending(None),
                }
            }
            Wait::Login(coming, greeting) => {
                let login = ready!(coming.as_mut().poll(waker));
                let greeting = greeting.clone();
                tell_login(login, greeting, (client, &context.keys), &mut to)
            }
            Wait::Doing(doing) => {
                match ready!(doing.as_mut().poll(waker)) {
                    Ok(done) => done.write(&mut to),
                    Err(failure) => refused::refuse(&context.keys, b"", &failure, &mut to),
                }
                Phase::Serving
            }
        };
        Poll::Ready(())
    }
}

/// Tells a client its keys, or why there are none. Rights may have gone while it waited: then the keys are nobody's.
fn tell_keys(
    asked: &AskedKeys,
    taken: Result<Issued, Failure>,
    (client, keys): (&mut Client, &PortKeys),
    to: &mut Writer<'_>,
) -> Result<(), Away> {
    let may = client
        .look_again(keys)
        .and_then(|()| client.who().may_use(asked.name().as_bytes()));
    match may.and(taken) {
        Ok(taken) => asked.tell(taken, keys, to),
        Err(failure) => {
            refused::refuse(keys, asked.name().as_bytes(), &failure, to);
            Ok(())
        }
    }
}

/// Tells a client what came of its password: where its connection is then.
fn tell_login(
    login: Result<Arc<User>, Failure>,
    greeting: Greeting,
    (client, keys): (&mut Client, &PortKeys),
    to: &mut Writer<'_>,
) -> Phase {
    match login {
        Ok(user) => {
            client.is_user(user);
            greeting.write(client, keys, to);
            Phase::Serving
        }
        Err(failure) => match login::failed(&failure, client, keys, to) {
            Outcome::Guesses => Phase::Ending(Some(CutOff::Guesses)),
            Outcome::Answered
            | Outcome::Issued(_)
            | Outcome::Unconfirmed(_)
            | Outcome::Keys(_)
            | Outcome::PutOff
            | Outcome::Login(_, _)
            | Outcome::Doing(_)
            | Outcome::Moved(_)
            | Outcome::Gone
            | Outcome::Quit
            | Outcome::Stray
            | Outcome::Stranger => Phase::Serving,
        },
    }
}

/// Where the next reply goes: behind those that are held, if there are any.
fn behind<'a>(held: &'a mut Option<Held>, out: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
    match held {
        Some(held) => held.behind(out),
        None => out,
    }
}
