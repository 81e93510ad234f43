//! The sockets of one connection to a key port.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::config::port::redis::RedisLimits;
use crate::connection::buffers::{BUFFER_BYTES_MIN, Buffers};
use crate::connection::linger::{abandon, linger};
use crate::connection::memory::Memory;
use crate::connection::span::ConnectionSpan;
use crate::connection::stopping::Stopping;
use crate::connection::stream::Stream;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::metrics::port::CutOff;
use crate::port::alarm::Alarm;
use crate::port::keys::PortKeys;
use crate::port::redis::context::PortContext;
use crate::port::redis::limits::request_bytes_max;
use crate::port::redis::output::Output;
use crate::port::redis::session::{Halt, Session};
use crate::status::Status;
use crate::users::turns::Line;

/// What a connection is served with.
pub(crate) struct PortServing {
    /// The port's place in the configuration.
    pub(crate) port: usize,
    /// The connection's number.
    pub(crate) number: u64,
    /// What its log lines carry.
    pub(crate) span: ConnectionSpan,
    /// Where the client waits until a password is looked at.
    pub(crate) line: Line,
    /// What is in force.
    pub(crate) snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    /// The port, as it is in force.
    pub(crate) keys: Arc<PortKeys>,
    /// What the program says of itself.
    pub(crate) status: Arc<Status>,
    /// What is read goes there first.
    pub(crate) buffers: Arc<Buffers>,
    /// What replies that wait take their room of.
    pub(crate) memory: Arc<Memory>,
    /// That the program is to end.
    pub(crate) stopping: watch::Receiver<bool>,
    /// How long a client may take to say the password, milliseconds.
    pub(crate) login_ms_max: u64,
}

/// One connection.
pub(crate) struct Connection {
    stream: Stream,
    span: ConnectionSpan,
    session: Session,
    context: PortContext,
    input: Input,
    output: Output,
    stopping: Stopping,
    alarms: Alarms,
}

/// What was read and not carried out.
struct Input {
    buffers: Arc<Buffers>,
    /// Nothing while there are no bytes in it.
    buffer: Option<Vec<u8>>,
    from: usize,
    to: usize,
    bytes_max: usize,
}

/// When a client has taken too long.
struct Alarms {
    /// Since when it has not said who it is.
    stranger_since: Option<Instant>,
    read_at: Instant,
    /// Since when a reply waits to go out.
    unread_since: Option<Instant>,
    login: Duration,
    idle: Option<Duration>,
    unread: Duration,
    alarm: Alarm,
}

impl Connection {
    /// Of a client that speaks no TLS, or has its TLS behind it.
    pub(crate) fn new(stream: Stream, serving: PortServing, redis: RedisLimits) -> Self {
        let limits = serving.keys.port.limits;
        let context = PortContext {
            limits: redis,
            port: serving.port,
            snapshot: serving.snapshot,
            status: serving.status,
            keys: serving.keys,
            moved: Vec::new(),
        };
        let now = Instant::now();
        Self {
            stream,
            span: serving.span,
            session: Session::new((serving.number, serving.line), &context),
            context,
            input: Input {
                buffers: serving.buffers,
                buffer: None,
                from: 0,
                to: 0,
                bytes_max: request_bytes_max(&redis).saturating_add(1),
            },
            output: Output::new(serving.memory, redis.output_bytes_max),
            stopping: Stopping::new(serving.stopping),
            alarms: Alarms {
                stranger_since: Some(now),
                read_at: now,
                unread_since: None,
                login: Duration::from_millis(serving.login_ms_max),
                idle: (limits.idle_s_max > 0).then(|| Duration::from_secs(limits.idle_s_max)),
                unread: Duration::from_millis(limits.unread_ms_max),
                alarm: Alarm::default(),
            },
        }
    }

    /// Serves it to its end.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn run(mut self) -> io::Result<()> {
        let why = std::future::poll_fn(|waker| self.poll(waker)).await?;
        if let Some(why) = why {
            self.context.keys.figures.cut_off(why);
            self.span
                .in_scope(|| tracing::debug!(?why, "a client of the key port is disconnected"));
        }
        // All is written, or nobody reads it: others have the memory while the client takes its time to go.
        drop(self.output);
        if why == Some(CutOff::Unread) {
            return abandon(self.stream);
        }
        linger(self.stream).await
    }

    /// Goes on until the connection ends, and says why it did if the client did not want it.
    fn poll(&mut self, waker: &mut Context<'_>) -> Poll<io::Result<Option<CutOff>>> {
        loop {
            let halt = self.serve(waker);
            let is_written = self.poll_write(waker)?.is_ready();
            match halt {
                Halt::End => {
                    if let Some(why) = self.session.ends()
                        && is_written
                    {
                        return Poll::Ready(Ok(why));
                    }
                }
                Halt::Turn => {
                    waker.waker().wake_by_ref();
                    return Poll::Pending;
                }
                // There is room again.
                Halt::Full if self.has_room() => continue,
                Halt::Full | Halt::Keys => {}
                Halt::Dry => {
                    if self.stopping.poll(waker) {
                        self.session.end(None);
                        continue;
                    }
                    if self.poll_read(waker)?.is_ready() {
                        continue;
                    }
                }
            }
            return self.poll_alarms(waker).map(|why| Ok(Some(why)));
        }
    }

    /// Carries out what was read, as far as it is there whole.
    fn serve(&mut self, waker: &mut Context<'_>) -> Halt {
        self.output.compact();
        loop {
            let Output { bytes, room, .. } = &mut self.output;
            if self
                .session
                .poll_waiting(bytes, &mut self.context, waker)
                .is_pending()
            {
                return Halt::Keys;
            }
            let served = self
                .session
                .serve(self.input.unread(), (bytes, room), &mut self.context);
            self.input.take(served.bytes);
            // What is waited for has to be asked for once, to be woken.
            if served.halt != Halt::Keys {
                return served.halt;
            }
        }
    }

    /// Whether more is carried out, beside what waits to be read by the client.
    fn has_room(&mut self) -> bool {
        let waiting_bytes = self.output.left().len();
        self.session.has_room(waiting_bytes, &mut self.output.room)
    }

    /// Whether all is written.
    fn poll_write(&mut self, waker: &mut Context<'_>) -> io::Result<Poll<()>> {
        if self.output.left().is_empty() {
            return Ok(Poll::Ready(()));
        }
        while !self.output.left().is_empty() {
            match Pin::new(&mut self.stream).poll_write(waker, self.output.left())? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => {
                    self.output.went(written);
                    self.alarms.unread_since = None;
                }
                Poll::Pending => {
                    self.alarms.unread_since.get_or_insert_with(Instant::now);
                    return Ok(Poll::Pending);
                }
            }
        }
        match Pin::new(&mut self.stream).poll_flush(waker)? {
            Poll::Ready(()) => {
                self.output.empty(!self.session.reads());
                Ok(Poll::Ready(()))
            }
            Poll::Pending => {
                self.alarms.unread_since.get_or_insert_with(Instant::now);
                Ok(Poll::Pending)
            }
        }
    }

    fn poll_read(&mut self, waker: &mut Context<'_>) -> io::Result<Poll<()>> {
        if self.input.buffer.is_none() && self.stream.poll_read_ready(waker)?.is_pending() {
            return Ok(Poll::Pending);
        }
        let room = self.input.room();
        let mut into = ReadBuf::new(room);
        match Pin::new(&mut self.stream).poll_read(waker, &mut into)? {
            Poll::Pending => {
                self.input.give_back();
                Ok(Poll::Pending)
            }
            Poll::Ready(()) => {
                let read = into.filled().len();
                self.input.add(read);
                self.alarms.read_at = Instant::now();
                if read == 0 {
                    // What is left of a request will never be whole.
                    self.session.end(None);
                }
                Ok(Poll::Ready(()))
            }
        }
    }

    /// Ready when the client has taken too long.
    fn poll_alarms(&mut self, waker: &mut Context<'_>) -> Poll<CutOff> {
        let is_let_in = self.session.is_let_in();
        let is_waiting = !self.session.reads();
        self.alarms.poll(is_let_in, is_waiting, waker)
    }
}

impl Input {
    fn unread(&self) -> &[u8] {
        let buffer = self.buffer.as_deref().unwrap_or_default();
        buffer.get(self.from..self.to).unwrap_or_default()
    }

    /// So many bytes are done with.
    fn take(&mut self, bytes: usize) {
        self.from = self.from.saturating_add(bytes).min(self.to);
        self.give_back();
    }

    /// An empty buffer serves others.
    fn give_back(&mut self) {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
            if let Some(buffer) = self.buffer.take() {
                self.buffers.give_back(buffer);
            }
        }
    }

    /// Where more can be read to. A request that fills it gets more, up to the longest.
    fn room(&mut self) -> &mut [u8] {
        let buffers = &self.buffers;
        let buffer = self
            .buffer
            .get_or_insert_with(|| buffers.take(BUFFER_BYTES_MIN));
        if self.from > 0 && self.to == buffer.len() {
            buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to.saturating_sub(self.from));
        }
        if self.to == buffer.len() {
            let longer = buffer.len().saturating_mul(2);
            buffer.resize(longer.min(self.bytes_max).max(buffer.len()), 0);
        }
        buffer.get_mut(self.to..).unwrap_or_default()
    }

    fn add(&mut self, bytes: usize) {
        self.to = self.to.saturating_add(bytes);
    }
}

impl Alarms {
    /// The first that is set, and why it would ring. A client that waits for keys is not silent.
    fn first(&self, is_waiting: bool) -> Option<(Instant, CutOff)> {
        let login = self.stranger_since;
        let login = login.map(|since| (since + self.login, CutOff::Login));
        let idle = self.idle.filter(|_| !is_waiting);
        let idle = idle.map(|idle| (self.read_at + idle, CutOff::Idle));
        let unread = self.unread_since;
        let unread = unread.map(|since| (since + self.unread, CutOff::Unread));
        let set = [login, idle, unread].into_iter().flatten();
        set.min_by_key(|(at, _)| *at)
    }

    fn poll(&mut self, is_let_in: bool, is_waiting: bool, waker: &mut Context<'_>) -> Poll<CutOff> {
        // After RESET it is one again.
        self.stranger_since = match is_let_in {
            true => None,
            false => self.stranger_since.or_else(|| Some(Instant::now())),
        };
        let first = self.first(is_waiting);
        self.alarm.poll(first, waker)
    }
}
