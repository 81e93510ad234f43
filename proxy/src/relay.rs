//! One connection: both sockets in one task. Bytes are read, shown to the session, and written straight from the buffer.

use std::io;
use std::sync::Arc;

use keywright_core::Cause;
use keywright_session::{KeyFailure, KeyRequest, Session, SessionFacts, Step};
use keywright_store::Source;

use tokio::sync::watch;

use crate::handshake;
use crate::stream::Stream;

/// A buffer's size before its first byte, bytes.
const BUFFER_BYTES_MIN: usize = 16 << 10;
/// Its size while much is passed through, bytes. Only a statement that is gathered makes it larger.
const BUFFER_BYTES_BUSY: usize = 256 << 10;

/// Bytes of one side that were read and not passed on yet.
struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
}

impl Input {
    fn new() -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            end: 0,
            ended: false,
        }
    }

    fn there(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    fn drop_front(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Makes room for more, for `at_least` bytes in all if they are waited for.
    fn make_room(&mut self, at_least: usize) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let wanted = if self.end == self.bytes.len() {
            (self.bytes.len() * 4).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_BUSY)
        } else {
            self.bytes.len()
        };
        let wanted = wanted.max(at_least);
        if wanted > self.bytes.len() {
            self.bytes.resize(wanted, 0);
        }
    }

    /// Reads what is there; false when there was nothing.
    fn read(&mut self, from: &Stream, at_least: usize) -> io::Result<bool> {
        self.make_room(at_least);
        match from.try_read(self.bytes.get_mut(self.end..).unwrap_or_default()) {
            Ok(0) => {
                self.ended = true;
                Ok(true)
            }
            Ok(count) => {
                self.end += count;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives memory back while nothing comes.
    fn release(&mut self) {
        if self.start == self.end && self.bytes.len() > BUFFER_BYTES_MIN {
            self.bytes = Vec::new();
        }
    }
}

async fn write_all(to: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.try_write(bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A connection whose authentication has succeeded.
pub struct Relay {
    client: Stream,
    upstream: Stream,
    session: Session,
    facts: SessionFacts,
    /// By the rule's index.
    sources: Arc<[Source]>,
    from_client: Input,
    from_upstream: Input,
    /// How many bytes each side must have before it is asked again.
    wanted: [usize; 2],
}

/// What the session made of one side.
enum Moved {
    Yes,
    No,
    Close,
}

impl Relay {
    /// Both connections, and the session between them.
    pub fn new(
        client: Stream,
        upstream: Stream,
        session: Session,
        facts: SessionFacts,
        sources: Arc<[Source]>,
    ) -> Self {
        Self {
            client,
            upstream,
            session,
            facts,
            sources,
            from_client: Input::new(),
            from_upstream: Input::new(),
            wanted: [0, 0],
        }
    }

    /// Whether no command is under way.
    fn is_between_commands(&self) -> bool {
        self.session.is_between_commands() && self.from_client.there().is_empty()
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
                match (client, upstream) {
                    (Moved::Close, _) | (_, Moved::Close) => return Ok(()),
                    (Moved::No, Moved::No) => break,
                    (Moved::Yes | Moved::No, Moved::Yes | Moved::No) => {}
                }
            }
            if self.from_client.ended || self.from_upstream.ended {
                return Ok(());
            }
            let [of_client, of_upstream] = self.wanted;
            let may_stop = self.is_between_commands();
            // The answer to what was just sent is not there yet, so reading is tried only after waiting.
            loop {
                tokio::select! {
                    ready = self.upstream.readable() => {
                        ready?;
                        if self.from_upstream.read(&self.upstream, of_upstream)? {
                            break;
                        }
                    }
                    ready = self.client.readable(), if of_client != usize::MAX => {
                        ready?;
                        if self.from_client.read(&self.client, of_client)? {
                            break;
                        }
                    }
                    _ = stopping.wait_for(|stopping| *stopping), if may_stop => return Ok(()),
                }
                self.from_client.release();
                self.from_upstream.release();
            }
        }
    }

    async fn step(&mut self, is_client: bool) -> io::Result<Moved> {
        let step = if is_client {
            self.session.on_client(self.from_client.there())
        } else {
            self.session.on_upstream(self.from_upstream.there())
        };
        self.send_own().await?;
        let (input, to) = if is_client {
            (&mut self.from_client, &self.upstream)
        } else {
            (&mut self.from_upstream, &self.client)
        };
        let wanted = match self.wanted.get_mut(usize::from(!is_client)) {
            Some(wanted) => wanted,
            None => return Ok(Moved::Close),
        };
        *wanted = 0;
        match step {
            Step::Forward(count) => {
                write_all(to, input.there().get(..count).unwrap_or_default()).await?;
                input.drop_front(count);
                Ok(Moved::Yes)
            }
            Step::Consumed(count) => {
                input.drop_front(count);
                Ok(Moved::Yes)
            }
            Step::More { at_least } => {
                *wanted = at_least;
                Ok(Moved::No)
            }
            Step::Blocked => {
                // Nothing more is read from a side that may not go on: what it sends waits in its socket.
                if input.there().len() >= BUFFER_BYTES_MIN {
                    *wanted = usize::MAX;
                }
                Ok(Moved::No)
            }
            Step::Keys(request) => {
                let keys = self.keys(request).await;
                self.session.on_keys(keys);
                Ok(Moved::Yes)
            }
            Step::Authenticate(count) => self.change_user(count).await,
            Step::Close => Ok(Moved::Close),
        }
    }

    async fn send_own(&mut self) -> io::Result<()> {
        if !self.session.to_upstream().is_empty() {
            let mut bytes = std::mem::take(self.session.to_upstream());
            write_all(&self.upstream, &bytes).await?;
            bytes.clear();
            keep(self.session.to_upstream(), bytes);
        }
        if !self.session.to_client().is_empty() {
            let mut bytes = std::mem::take(self.session.to_client());
            write_all(&self.client, &bytes).await?;
            bytes.clear();
            keep(self.session.to_client(), bytes);
        }
        Ok(())
    }

    async fn keys(&self, request: KeyRequest) -> Result<keywright_core::KeyBatch, KeyFailure> {
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

    async fn change_user(&mut self, count: usize) -> io::Result<Moved> {
        let command = self
            .from_client
            .there()
            .get(..count)
            .unwrap_or_default()
            .to_vec();
        self.from_client.drop_front(count);
        if !self.from_client.there().is_empty() {
            return Ok(Moved::Close);
        }
        let changed =
            handshake::change_user(&mut self.client, &mut self.upstream, &command, &self.facts)
                .await?;
        match changed {
            Some(facts) => {
                self.facts = facts.clone();
                self.session.reset(facts);
                Ok(Moved::Yes)
            }
            None => Ok(Moved::Close),
        }
    }
}

/// Puts an emptied buffer back, unless it is so large that it should not stay.
fn keep(slot: &mut Vec<u8>, emptied: Vec<u8>) {
    if emptied.capacity() <= BUFFER_BYTES_BUSY {
        *slot = emptied;
    }
}
