//! One connection: both sockets in one task. Bytes are read, shown to the session, and written straight from the buffer.
//!
//! The two directions do not wait for each other: a client that sends commands before it has read the answers to earlier
//! ones goes on being answered. What one side cannot take yet is the only thing that keeps the other from being read.

use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use keywright_core::{Cause, KeyBatch};
use keywright_session::{KeyFailure, KeyRequest, Session, SessionFacts, Step};
use keywright_store::Source;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::handshake;
use crate::input::{BUFFER_BYTES_BUSY, BUFFER_BYTES_MIN, Input};
use crate::metrics::Counters;
use crate::stream::Stream;

/// After so long without a byte a connection's buffers are given back, milliseconds.
const IDLE_MS: u64 = 1_000;
/// How long the last bytes to a client that is closed may take, and how long its own are still taken, milliseconds.
const CLOSE_MS_MAX: u64 = 500;

/// One of the two peers.
struct Side {
    stream: Stream,
    input: Input,
    /// How many bytes of `input` may go to the other side.
    cleared: usize,
    /// What the session itself says to this peer; before the other side's cleared bytes.
    own: Vec<u8>,
    own_sent: usize,
    wants: Wants,
    /// Whether this peer was told that nothing more comes.
    is_shut: bool,
}

/// What the session said last of a side's bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    More(usize),
    /// The other side must move first.
    Other,
}

impl Side {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            input: Input::default(),
            cleared: 0,
            own: Vec::new(),
            own_sent: 0,
            wants: Wants::More(1),
            is_shut: false,
        }
    }

    /// How many bytes to read up to; `None`: nothing is to be read.
    fn room(&self) -> Option<usize> {
        if self.input.has_ended() || self.cleared > 0 {
            return None;
        }
        match self.wants {
            Wants::More(at_least) => Some(at_least),
            // A little is read ahead, and the rest waits in the socket.
            Wants::Other if self.input.there().len() < BUFFER_BYTES_MIN => Some(1),
            Wants::Other => None,
        }
    }

    /// Whether nothing of this side will ever be passed on any more.
    fn is_over(&self) -> bool {
        let asks_in_vain = matches!(self.wants, Wants::More(_));
        self.input.has_ended()
            && self.cleared == 0
            && (asks_in_vain || self.input.there().is_empty())
    }

    /// Takes over what the session has to say to this peer; `other`'s cleared bytes were said earlier.
    fn take_own(&mut self, other: &mut Side, said: &mut Vec<u8>) {
        if said.is_empty() {
            return;
        }
        if other.cleared > 0 {
            let earlier = other.input.there().get(..other.cleared);
            self.own.extend_from_slice(earlier.unwrap_or_default());
            other.input.drop_front(other.cleared);
            other.cleared = 0;
        }
        if self.own.is_empty() {
            mem::swap(&mut self.own, said);
        } else {
            self.own.append(said);
        }
    }
}

fn is_pending(from: &Side, to: &Side) -> bool {
    from.cleared > 0 || !to.own.is_empty()
}

/// Writes what the socket takes at once.
fn flush(from: &mut Side, to: &mut Side) -> io::Result<()> {
    while let Some(rest) = to.own.get(to.own_sent..).filter(|rest| !rest.is_empty()) {
        match to.stream.try_write(rest) {
            Ok(count) => to.own_sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    to.own.clear();
    to.own_sent = 0;
    if to.own.capacity() > BUFFER_BYTES_BUSY {
        to.own = Vec::new();
    }
    while from.cleared > 0 {
        let bytes = from.input.there().get(..from.cleared).unwrap_or_default();
        match to.stream.try_write(bytes) {
            Ok(count) => {
                from.input.drop_front(count);
                from.cleared -= count.min(from.cleared);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What the session made of one side.
#[derive(PartialEq, Eq)]
enum Moved {
    Yes,
    No,
    Close,
}

/// A connection whose authentication has succeeded.
pub struct Relay {
    client: Side,
    upstream: Side,
    session: Session,
    facts: SessionFacts,
    /// By the rule's index.
    sources: Arc<[Source]>,
    counters: Arc<Counters>,
    /// One timer for the connection's life, set anew only when it has fired: a wait for bytes costs no timer.
    idle: Pin<Box<Sleep>>,
    was_active: bool,
}

impl Relay {
    /// Both connections, and the session between them.
    pub fn new(
        client: Stream,
        upstream: Stream,
        session: Session,
        facts: SessionFacts,
        sources: Arc<[Source]>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            client: Side::new(client),
            upstream: Side::new(upstream),
            session,
            facts,
            sources,
            counters,
            idle: Box::pin(sleep(Duration::from_millis(IDLE_MS))),
            was_active: true,
        }
    }

    /// Whether no command is under way and nothing waits to be sent.
    fn is_between_commands(&self) -> bool {
        self.session.is_between_commands()
            && self.client.input.there().is_empty()
            && !is_pending(&self.client, &self.upstream)
            && !is_pending(&self.upstream, &self.client)
    }

    /// Passes bytes until one side has ended, or until no command is under way while the proxy is stopping.
    ///
    /// # Errors
    /// A connection broke.
    pub async fn run(&mut self, stopping: &mut watch::Receiver<bool>) -> io::Result<()> {
        loop {
            loop {
                let client = self.step(true).await?;
                let upstream = self.step(false).await?;
                if client == Moved::Close || upstream == Moved::Close {
                    return self.close().await;
                }
                if client == Moved::No && upstream == Moved::No {
                    break;
                }
            }
            self.counters.note(&self.session.events());
            let to_client = is_pending(&self.upstream, &self.client);
            let to_upstream = is_pending(&self.client, &self.upstream);
            if self.upstream.is_over() && !to_client {
                return Ok(());
            }
            if self.client.is_over() && !to_upstream && !self.upstream.is_shut {
                // The server finishes what it was told, and its answers are still passed on.
                self.upstream.stream.shutdown().await?;
                self.upstream.is_shut = true;
            }
            let may_stop = self.is_between_commands();
            if self.wait(stopping, may_stop).await? {
                return Ok(());
            }
        }
    }

    /// Waits until bytes were read or can be written; true when the proxy is stopping.
    async fn wait(
        &mut self,
        stopping: &mut watch::Receiver<bool>,
        may_stop: bool,
    ) -> io::Result<bool> {
        let to_client = is_pending(&self.upstream, &self.client);
        let to_upstream = is_pending(&self.client, &self.upstream);
        let of_client = self.client.room().filter(|_| !to_upstream);
        let of_upstream = self.upstream.room().filter(|_| !to_client);
        let mut holds_memory = self.holds_memory();
        loop {
            tokio::select! {
                ready = self.upstream.stream.readable(), if of_upstream.is_some() => {
                    ready?;
                    let Side { stream, input, .. } = &mut self.upstream;
                    if input.read(stream, of_upstream.unwrap_or(1))? {
                        break;
                    }
                }
                ready = self.client.stream.readable(), if of_client.is_some() => {
                    ready?;
                    let Side { stream, input, .. } = &mut self.client;
                    if input.read(stream, of_client.unwrap_or(1))? {
                        break;
                    }
                }
                ready = self.client.stream.writable(), if to_client => {
                    ready?;
                    flush(&mut self.upstream, &mut self.client)?;
                    break;
                }
                ready = self.upstream.stream.writable(), if to_upstream => {
                    ready?;
                    flush(&mut self.client, &mut self.upstream)?;
                    break;
                }
                () = self.idle.as_mut(), if holds_memory => {
                    if self.was_active {
                        self.was_active = false;
                        self.idle.as_mut().reset(Instant::now() + Duration::from_millis(IDLE_MS));
                    } else {
                        self.client.input.release();
                        self.upstream.input.release();
                        holds_memory = self.holds_memory();
                    }
                }
                _ = stopping.wait_for(|stopping| *stopping), if may_stop => return Ok(true),
            }
        }
        self.was_active = true;
        Ok(false)
    }

    fn holds_memory(&self) -> bool {
        self.client.input.can_release() || self.upstream.input.can_release()
    }

    async fn step(&mut self, is_client: bool) -> io::Result<Moved> {
        let is_held_up = if is_client {
            is_pending(&self.client, &self.upstream)
        } else {
            is_pending(&self.upstream, &self.client)
        };
        if is_held_up {
            return Ok(Moved::No);
        }
        let step = if is_client {
            self.session.on_client(self.client.input.there())
        } else {
            self.session.on_upstream(self.upstream.input.there())
        };
        self.upstream
            .take_own(&mut self.client, self.session.to_upstream());
        self.client
            .take_own(&mut self.upstream, self.session.to_client());
        let from = if is_client {
            &mut self.client
        } else {
            &mut self.upstream
        };
        from.wants = Wants::More(1);
        let moved = match step {
            Step::Forward(count) => {
                from.cleared = count.min(from.input.there().len());
                Moved::Yes
            }
            Step::Consumed(count) => {
                from.input.drop_front(count);
                Moved::Yes
            }
            Step::More { at_least } => {
                from.wants = Wants::More(at_least);
                Moved::No
            }
            Step::Blocked => {
                from.wants = Wants::Other;
                Moved::No
            }
            Step::Keys(request) => {
                let keys = self.keys(request).await;
                self.session.on_keys(keys);
                Moved::Yes
            }
            Step::Authenticate(count) => self.change_user(count).await?,
            Step::Close => Moved::Close,
        };
        flush(&mut self.client, &mut self.upstream)?;
        flush(&mut self.upstream, &mut self.client)?;
        Ok(moved)
    }

    async fn keys(&self, request: KeyRequest) -> Result<KeyBatch, KeyFailure> {
        let Some(source) = self.sources.get(request.rule) else {
            return Err(KeyFailure {
                cause: Cause::TagUnknown,
                message: "the rule has no source of keys".to_owned(),
            });
        };
        if let Ok(keys) = source.try_take(request.count, request.contiguous) {
            return Ok(keys);
        }
        source
            .take(request.count, request.contiguous)
            .await
            .map_err(|failure| KeyFailure {
                cause: failure.cause(),
                message: failure.message().to_owned(),
            })
    }

    /// COM_CHANGE_USER. The client waits for its end, so whatever else it has sent breaks the protocol.
    async fn change_user(&mut self, count: usize) -> io::Result<Moved> {
        let there = self.client.input.there();
        let command = there.get(..count).unwrap_or_default().to_vec();
        self.client.input.drop_front(count);
        if !self.client.input.there().is_empty() {
            return Ok(Moved::Close);
        }
        let (client, upstream) = (&mut self.client.stream, &mut self.upstream.stream);
        match handshake::change_user(client, upstream, &command, &self.facts).await? {
            Some(facts) => {
                self.facts = facts.clone();
                self.session.reset(facts);
                Ok(Moved::Yes)
            }
            None => Ok(Moved::Close),
        }
    }

    /// Sends the client its last bytes, and takes what it still sends: closing before would throw away what it has not read.
    async fn close(&mut self) -> io::Result<()> {
        let Side {
            stream,
            own,
            own_sent,
            ..
        } = &mut self.client;
        let last = async {
            stream
                .write_all(own.get(*own_sent..).unwrap_or_default())
                .await?;
            stream.shutdown().await?;
            tokio::io::copy(stream, &mut tokio::io::sink())
                .await
                .map(drop)
        };
        timeout(Duration::from_millis(CLOSE_MS_MAX), last)
            .await
            .unwrap_or(Ok(()))
    }
}
