//! One connection to a key port, as a state machine without sockets: bytes in, bytes out, and a wait for keys in between.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use keywright_core::{Cause, KeyBatch};
use keywright_resp::command::{Command, Hello, KeywrightCommand, Refusal};
use keywright_resp::fault::Fault;
use keywright_resp::limits::Limits;
use keywright_resp::reply::Writer;
use keywright_resp::request::{Read, Reader, Request};
use keywright_store::Failure;
use tokio::sync::watch;

use crate::config::port::redis::RedisLimits;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::metrics::port::CutOff;
use crate::port::keys::PortKeys;
use crate::port::redis::client::Client;
use crate::port::redis::told::{AskedKeys, Form};
use crate::port::redis::{answer, login, refused};
use crate::status::Status;

/// Arguments of one request at most.
const ARGUMENTS_MAX: u32 = 1_024;
/// What a request may have beside one longest argument, bytes.
const REQUEST_BYTES: u32 = 64 << 10;

/// Keys on their way.
type Keys = Pin<Box<dyn Future<Output = Result<KeyBatch, Failure>> + Send>>;

/// Where a connection is.
enum Phase {
    /// Requests are read and answered, in their order.
    Serving,
    /// A request waits for keys, and what is behind it waits for that.
    Waiting(AskedKeys, Keys),
    /// Nothing is read any more. What is written goes out, then the connection ends.
    Ending(Option<CutOff>),
}

impl fmt::Debug for Phase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Phase::Serving => "Serving",
            Phase::Waiting(_, _) => "Waiting",
            Phase::Ending(_) => "Ending",
        })
    }
}

/// What a session draws on.
pub(super) struct PortContext {
    /// What is bounded.
    pub(super) limits: RedisLimits,
    /// The port's place in the configuration.
    pub(super) port: usize,
    /// What is in force.
    pub(super) snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    /// What the program says of itself.
    pub(super) status: Arc<Status>,
    /// The names, as they were in force when that was looked at last.
    pub(super) keys: Arc<PortKeys>,
}

impl PortContext {
    /// Takes what is in force now.
    fn refresh(&mut self) {
        if self.snapshot.has_changed().unwrap_or(false)
            && let Some(keys) = self.snapshot.borrow_and_update().port(self.port)
        {
            self.keys = keys;
        }
    }

    fn password(&self) -> Option<&str> {
        self.keys.port.password.as_deref()
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session {
    reader: Reader,
    client: Client,
    phase: Phase,
    limits: RedisLimits,
}

/// What becomes of a request.
enum Outcome {
    /// It was answered.
    Answered,
    /// It needs keys.
    Keys(AskedKeys),
    /// The client goes.
    Quit,
    /// It speaks another protocol.
    Stray,
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

/// What a request with this limit may be.
fn limits_of(limits: &RedisLimits) -> Limits {
    Limits {
        arguments_max: ARGUMENTS_MAX,
        argument_bytes_max: limits.bulk_bytes_max,
        request_bytes_max: limits.bulk_bytes_max.saturating_add(REQUEST_BYTES),
    }
}

/// Longest request, bytes.
pub(super) fn request_bytes_max(limits: &RedisLimits) -> usize {
    usize::try_from(limits_of(limits).request_bytes_max).unwrap_or(usize::MAX)
}

impl Session {
    /// Of the connection with this number.
    pub(super) fn new(number: u64, context: &PortContext) -> Self {
        let limits = context.limits;
        Self {
            reader: Reader::new(limits_of(&limits)),
            client: Client::new(number, context.password().is_none()),
            phase: Phase::Serving,
            limits,
        }
    }

    /// Whether more may be read.
    pub(super) fn reads(&self) -> bool {
        matches!(self.phase, Phase::Serving)
    }

    /// Whether it ends when all is written, and why, if not as the client wanted.
    pub(super) fn ends(&self) -> Option<Option<CutOff>> {
        match self.phase {
            Phase::Ending(why) => Some(why),
            Phase::Serving | Phase::Waiting(_, _) => None,
        }
    }

    /// Whether the client may ask for keys.
    pub(super) fn is_let_in(&self) -> bool {
        self.client.is_let_in()
    }

    /// The connection ends when all is written.
    pub(super) fn end(&mut self, why: Option<CutOff>) {
        self.phase = Phase::Ending(why);
    }

    /// Carries out requests, until one waits, `out` is full, or others are to have their turn.
    pub(super) fn serve(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        context: &mut PortContext,
    ) -> Served {
        context.refresh();
        let mut bytes = 0_usize;
        let mut requests = 0_u32;
        let halt = loop {
            match self.phase {
                Phase::Serving => {}
                Phase::Waiting(_, _) => break Halt::Keys,
                Phase::Ending(_) => break Halt::End,
            }
            if out.len() >= self.limits.output_bytes_max {
                break Halt::Full;
            }
            if requests >= self.limits.pipeline_requests_max {
                break Halt::Turn;
            }
            match self.reader.read(input.get(bytes..).unwrap_or_default()) {
                Ok(Read::Incomplete) => break Halt::Dry,
                Ok(Read::Request(request)) => {
                    requests = requests.saturating_add(1);
                    bytes = bytes.saturating_add(request.bytes());
                    if request.count() == 0 {
                        continue;
                    }
                    match carry_out(&request, &mut self.client, out, context) {
                        Outcome::Answered => {}
                        Outcome::Keys(asked) => {
                            let snapshot = context.snapshot.clone();
                            let keys = asked.request.take(snapshot, context.port);
                            self.phase = Phase::Waiting(asked, Box::pin(keys));
                        }
                        Outcome::Quit => self.phase = Phase::Ending(None),
                        Outcome::Stray => self.phase = Phase::Ending(Some(CutOff::Protocol)),
                    }
                }
                Err(fault) => self.give_up(fault, out),
            }
        };
        context.keys.figures.requests(u64::from(requests));
        Served { bytes, halt }
    }

    /// What it sent is no request: what is behind it cannot be told.
    fn give_up(&mut self, fault: Fault, out: &mut Vec<u8>) {
        let mut to = Writer::new(out, self.client.protocol());
        refused::write(&mut to, Cause::PacketMalformed, &fault.to_string());
        self.phase = Phase::Ending(Some(CutOff::Protocol));
    }

    /// Asks whether the keys have come that a request waits for.
    pub(super) fn poll_keys(
        &mut self,
        out: &mut Vec<u8>,
        keys: &PortKeys,
        waker: &mut Context<'_>,
    ) -> Poll<()> {
        let Phase::Waiting(request, coming) = &mut self.phase else {
            return Poll::Ready(());
        };
        let taken = ready!(coming.as_mut().poll(waker));
        let mut to = Writer::new(out, self.client.protocol());
        match taken {
            Ok(taken) => tell(request, &taken, keys, &mut to),
            Err(failure) => refuse(keys, request.name(), &failure, &mut to),
        }
        self.phase = Phase::Serving;
        Poll::Ready(())
    }
}

/// Tells keys that were taken.
fn tell(request: &AskedKeys, taken: &KeyBatch, keys: &PortKeys, to: &mut Writer<'_>) {
    if let Err(failure) = request.write(taken, to) {
        refuse(keys, request.name(), &failure, to);
    }
}

fn refuse(keys: &PortKeys, name: &str, failure: &Failure, to: &mut Writer<'_>) {
    keys.figures.refused(name, failure.cause());
    refused::write_failure(to, failure);
}

fn carry_out(
    request: &Request<'_>,
    client: &mut Client,
    out: &mut Vec<u8>,
    context: &PortContext,
) -> Outcome {
    let mut to = Writer::new(out, client.protocol());
    if is_http(request) {
        refused::write(
            &mut to,
            Cause::PacketMalformed,
            "Protocol error: this is no server of HTTP",
        );
        return Outcome::Stray;
    }
    let command = match Command::parse(request) {
        Ok(command) if client.is_let_in() || is_for_strangers(&command) => command,
        // Whoever is not let in is told nothing else.
        Err(refusal) if client.is_let_in() || refusal == Refusal::Protocol => {
            to.error(refusal.code(), &refusal.to_string());
            return Outcome::Answered;
        }
        Ok(_) | Err(_) => {
            refused::write(&mut to, Cause::PasswordMissing, "Authentication required.");
            return Outcome::Answered;
        }
    };
    let keys = &context.keys;
    match command {
        Command::Incr(name) => return keys_of(name, (1, Form::Last), &mut to, context),
        Command::IncrBy(name, count) => {
            return keys_of(name, (count, Form::Last), &mut to, context);
        }
        Command::Get(name) => answer::last(name, keys, &mut to),
        Command::Mget => answer::lasts(request, keys, &mut to),
        Command::Ping(None) => to.simple("PONG"),
        Command::Ping(Some(sent)) | Command::Echo(sent) => to.bulk(sent),
        Command::Hello(asked) => hello(&asked, client, &mut to, context),
        Command::Auth(login) => match login::check(&login, context.password()) {
            Ok(()) => {
                client.let_in();
                to.ok();
            }
            Err(failure) => refused::write_failure(&mut to, &failure),
        },
        Command::Select | Command::Readonly => to.ok(),
        Command::Quit => {
            to.ok();
            return Outcome::Quit;
        }
        Command::Reset => {
            to.simple("RESET");
            client.reset(context.password().is_none());
        }
        Command::Time => answer::time(&mut to),
        Command::Info => answer::info(keys, &context.status, &mut to),
        Command::Command(query) => answer::commands(query, request, &mut to),
        Command::Client(asked) => answer::client(asked, client, &mut to),
        Command::AclWhoami => to.bulk(b"default"),
        Command::ConfigGet => to.map(0),
        Command::Cluster(query) => answer::cluster(query, &mut to),
        Command::Keywright(KeywrightCommand::Next { name, count }) => {
            let asked = count.map_or((1, Form::One), |count| (count, Form::List));
            return keys_of(name, asked, &mut to, context);
        }
        Command::Keywright(KeywrightCommand::Decode(id)) => answer::decoded(id, keys, &mut to),
        Command::Keywright(KeywrightCommand::List) => answer::list(keys, &mut to),
        Command::Keywright(KeywrightCommand::Stats) => answer::stats(keys, &mut to),
    }
    Outcome::Answered
}

/// Whether a request is the head of one in HTTP. A page in somebody's browser can send such to a loopback address, with lines behind it
/// that would be commands.
fn is_http(request: &Request<'_>) -> bool {
    let first = request.argument(0).unwrap_or_default();
    first.eq_ignore_ascii_case(b"POST") || first.eq_ignore_ascii_case(b"Host:")
}

/// Whether a command is for those who have not said the password.
fn is_for_strangers(command: &Command<'_>) -> bool {
    matches!(
        command,
        Command::Hello(_) | Command::Auth(_) | Command::Quit | Command::Reset
    )
}

fn hello(asked: &Hello<'_>, client: &mut Client, to: &mut Writer<'_>, context: &PortContext) {
    if let Some(login) = &asked.login {
        if let Err(failure) = login::check(login, context.password()) {
            return refused::write_failure(to, &failure);
        }
        client.let_in();
    }
    if !client.is_let_in() {
        return refused::write(
            to,
            Cause::PasswordMissing,
            "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to \
             authenticate the client and select the RESP protocol version at the same time",
        );
    }
    if let Some(protocol) = asked.protocol {
        client.speak(protocol);
        to.speak(protocol);
    }
    if let Some(name) = asked.name {
        client.set_name(name);
    }
    answer::hello(client, to);
}

/// Keys, if they are there; else the request waits.
fn keys_of(name: &[u8], asked: (i64, Form), to: &mut Writer<'_>, context: &PortContext) -> Outcome {
    let keys = &context.keys;
    match AskedKeys::new(keys, name, asked, context.limits.output_bytes_max) {
        Ok(asked) => match asked.request.try_take() {
            Some(taken) => tell(&asked, &taken, keys, to),
            None => return Outcome::Keys(asked),
        },
        Err((named, failure)) => {
            let name = named.as_ref().map_or("", |named| named.name.as_str());
            refuse(keys, name, &failure, to);
        }
    }
    Outcome::Answered
}
