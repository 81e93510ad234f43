//! One connection: both sockets in one task. Bytes are read, shown to the session, and written straight from the buffer.
//!
//! The two directions do not wait for each other: a client that sends commands before it has read the answers to earlier
//! ones goes on being answered. What one side cannot take yet is the only thing that keeps the other from being read.

mod change_user;
mod goodbye;
mod passing;
mod rest;
mod steps;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use keywright_session::{KeyRequest, Session};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::connection::input::Input;
use crate::connection::linger::{linger, reset};
use crate::connection::side::{Side, is_pending, poll_pass};
use crate::connection::span::ConnectionSpan;
use crate::connection::stopping::Stopping;
use crate::connection::stream::Stream;
use crate::handshake::{Login, Peer};
use crate::in_force::context::ListenerContext;
use crate::in_force::updates::ConfigUpdates;

/// After so long without a byte all memory that a connection does not need is given back, milliseconds.
const IDLE_MS: u64 = 1_000;
/// How long the last bytes to a client that is closed may take, milliseconds.
const CLOSE_MS_MAX: u64 = 500;

/// One of the two sides.
#[derive(Debug, Clone, Copy)]
enum Of {
    Client,
    Upstream,
}

/// What the session made of one side.
#[derive(PartialEq, Eq)]
enum Moved {
    Yes,
    No,
    Halt(Halt),
}

/// What ends the passing of bytes, for a while or for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Halt {
    /// Keys are needed.
    Keys(KeyRequest),
    /// The client's first so many bytes are COM_CHANGE_USER.
    Authenticate(usize),
    /// The client has ended, and the server has to learn of it.
    ClientOver,
    /// The server has ended, and the client has got everything.
    UpstreamOver,
    /// The connection ends once the client has got what the session still has for it.
    Close,
    /// The proxy is stopping, and nothing is under way.
    Stopping,
    /// The connection cannot follow the rules that are in force, and nothing is under way.
    Outdated,
    /// A statement waits, mostly for newer rules.
    Wait,
}

/// How long ago bytes came last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Since the timer was set.
    Active,
    /// Not since then.
    Fading,
    /// Before the timer fired last. It is set again when some come.
    Resting,
}

/// Until when the current statement waits.
#[derive(Default)]
struct Waits {
    /// For newer rules.
    for_rules: Option<Instant>,
    /// The same of one that the server has refused at the fence, however often it is sent again and refused again.
    at_fence: Option<Instant>,
    /// For what the server says of its table.
    for_answer: Option<Instant>,
}

/// A connection whose authentication has succeeded.
pub struct Relay {
    client: Side,
    upstream: Side,
    session: Session,
    login: Login,
    context: ListenerContext,
    /// One timer for the connection's life, set anew only when it has fired: a wait for bytes costs no timer.
    idle: Pin<Box<Sleep>>,
    /// Whether the task will be woken when it fires.
    is_idle_set: bool,
    activity: Activity,
    /// Whether nothing has come for so long that all that was sent has arrived.
    is_at_rest: bool,
    /// Whether the server is asked whether it is there when it says nothing.
    is_kept_alive: bool,
    /// Whether COM_QUIT is what the client has said last.
    has_said_goodbye: bool,
    /// Whether something has changed since the session was last asked about both sides.
    is_due: bool,
    stopping: Stopping,
    updates: Option<ConfigUpdates>,
    /// Since when tables of rules are in use.
    under_way_since: Option<Instant>,
    /// Whether others wait for that, as they are told.
    is_waited_for: bool,
    waits: Waits,
    /// What log lines carry.
    span: ConnectionSpan,
}

impl Relay {
    /// Both connections, and the session between them. `stopping` becomes true when the proxy is to end.
    pub fn new(
        client: impl Into<Peer>,
        upstream: impl Into<Peer>,
        session: Session,
        login: impl Into<Login>,
        context: ListenerContext,
        stopping: watch::Receiver<bool>,
        span: ConnectionSpan,
    ) -> Box<Self> {
        let mut session = session;
        let login = login.into();
        session.allow_status(context.allows_status(&login.facts));
        let is_passthrough = session.is_passthrough();
        if let Some(entered) = &context.entered {
            entered.follows((!is_passthrough).then(|| session.version()));
        }
        let updates = context
            .updates
            .clone()
            .map(|from| ConfigUpdates::new(from, is_passthrough));
        let side = |peer: Peer| {
            let (memory, buffers) = (Arc::clone(&context.memory), Arc::clone(&context.buffers));
            Side::new(
                peer.stream,
                Input::beginning_with(&peer.read, memory, buffers),
            )
        };
        // It is large: its task moves it, and has room for each place in which it may be.
        Box::new(Self {
            client: side(client.into()),
            upstream: side(upstream.into()),
            session,
            login,
            context,
            idle: Box::pin(sleep(Duration::from_millis(IDLE_MS))),
            is_idle_set: false,
            activity: Activity::Active,
            is_at_rest: false,
            is_kept_alive: false,
            has_said_goodbye: false,
            is_due: true,
            stopping: Stopping::new(stopping),
            updates,
            under_way_since: None,
            is_waited_for: false,
            waits: Waits::default(),
            span,
        })
    }

    /// Passes bytes until one side has ended, or until no command is under way while the program is stopping.
    ///
    /// # Errors
    /// The client's connection broke.
    pub async fn run(mut self: Box<Self>) -> io::Result<()> {
        let is_cut = self.serve().await?;
        // Mostly nothing is left, and the task has no room for the wait.
        if is_pending(&self.upstream, &self.client) {
            let last = timeout(Duration::from_millis(CLOSE_MS_MAX), self.tell_client());
            if let Ok(output) = Box::pin(last).await {
                output?;
            }
        }
        let is_at_rest = self.is_at_rest;
        // Of one that has ended nothing is unread, so that closing its socket is all there is to do.
        let has_ended = self.client.input.has_ended() && !self.client.stream.has_tls();
        let client = self.into_client();
        match is_cut {
            true => Box::pin(reset(client, is_at_rest)).await,
            false if has_ended => Ok(()),
            false => Box::pin(linger(client)).await,
        }
    }

    /// The server's connection ends.
    fn into_client(self: Box<Self>) -> Stream {
        self.client.stream
    }

    /// Passes bytes until the connection is to end; whether the client's is to be cut off as the server's was. What is seldom waited for
    /// has no room in the task.
    async fn serve(&mut self) -> io::Result<bool> {
        let updates = self.updates.as_ref();
        if updates.is_some_and(ConfigUpdates::begins_outdated) {
            self.tell_outdated();
            return Ok(false);
        }
        let is_cut = loop {
            match poll_fn(|context| self.poll_on(context)).await? {
                Halt::Keys(request) => {
                    let keys = self.context.keys(request);
                    let Some(keys) = Box::pin(self.client.stream.while_there(keys)).await else {
                        break false;
                    };
                    if let Ok(keys) = &keys {
                        self.log_keys(request.rule, keys);
                    }
                    self.session.on_keys(keys);
                    // They took a while. Those of rules that are in force no more lie below what came after them; the statement
                    // begins anew where it can.
                    self.follow();
                }
                Halt::Wait => {
                    if !Box::pin(self.wait()).await {
                        break false;
                    }
                }
                Halt::Authenticate(count) => {
                    if !Box::pin(self.change_user(count)).await? {
                        break false;
                    }
                }
                Halt::ClientOver if self.has_left() => break false,
                Halt::ClientOver => {
                    // The server finishes its last command, and its answers are still passed on. If it is gone, reading shows it.
                    let _ = self.upstream.stream.end_sending();
                    self.upstream.is_shut = true;
                }
                Halt::Stopping => {
                    self.session.tell_stopping();
                    self.client
                        .take_own(&mut self.upstream, self.session.to_client());
                    break false;
                }
                Halt::Outdated => {
                    self.tell_outdated();
                    break false;
                }
                Halt::Close => break false,
                // A client that has ended waits for nothing but the other end.
                Halt::UpstreamOver => {
                    break self.upstream.was_reset && !self.client.input.has_ended();
                }
            }
        };
        Ok(is_cut)
    }

    /// Sends the client what the session still has for it.
    async fn tell_client(&mut self) -> io::Result<()> {
        let (upstream, client) = (&mut self.upstream, &mut self.client);
        poll_fn(|context| match poll_pass(upstream, client, context) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(()) if is_pending(upstream, client) => Poll::Pending,
            Ok(()) => Poll::Ready(Ok(())),
        })
        .await
    }

    /// Passes bytes until something else is to be done. A wake-up starts with what could not be written before.
    fn poll_on(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Halt>> {
        (self.client.is_dry, self.upstream.is_dry) = (false, false);
        loop {
            self.pass(context)?;
            while std::mem::take(&mut self.is_due) {
                for of in [Of::Client, Of::Upstream] {
                    match self.step(of) {
                        Moved::Yes => self.is_due = true,
                        Moved::No => {}
                        Moved::Halt(halt) => {
                            self.is_due = true;
                            // Now: the session starts over for another user, and is not asked again where the connection ends.
                            self.context.tally.note(self.session.events());
                            self.pass(context)?;
                            return Poll::Ready(Ok(halt));
                        }
                    }
                }
                // A statement is counted before its answer arrives.
                self.context.tally.note(self.session.events());
                self.pass(context)?;
            }
            if let Some(halt) = self.end() {
                self.is_due = true;
                return Poll::Ready(Ok(halt));
            }
            if !self.read(context)? {
                match self.poll_rest(context) {
                    // A question of the session's own is to go out.
                    Poll::Pending if self.is_due => continue,
                    rest => return rest.map(Ok),
                }
            }
            self.is_due = true;
        }
    }

    /// Whether a side has ended.
    fn end(&self) -> Option<Halt> {
        if self.upstream.is_over() && !is_pending(&self.upstream, &self.client) {
            return Some(Halt::UpstreamOver);
        }
        let is_client_over = self.client.is_over() && !is_pending(&self.client, &self.upstream);
        (is_client_over && !self.upstream.is_shut).then_some(Halt::ClientOver)
    }
}
