//! A client's socket, and what is noted of it: when the head of a request began, when something happened last, since when a reply waits.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::connection::stream::Stream;

/// What happened on a connection. It is of one task, which nobody else waits for.
#[derive(Debug)]
pub(super) struct Activity(Mutex<Noted>);

/// The same at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noted {
    /// Since when the head of a request is under way.
    pub(super) head_since: Option<Instant>,
    /// When something was read or written last, or a request was answered.
    pub(super) active_at: Instant,
    /// Since when a reply waits to go out.
    pub(super) unread_since: Option<Instant>,
    /// Whether a request is being answered.
    pub(super) is_answering: bool,
    /// Requests that came.
    pub(super) requests: u64,
}

impl Activity {
    /// A connection that begins now: the first head is waited for from its beginning.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Noted {
            head_since: Some(now),
            active_at: now,
            unread_since: None,
            is_answering: false,
            requests: 0,
        }))
    }

    pub(super) fn noted(&self) -> Noted {
        *self.lock()
    }

    /// The head of a request has come; how many there were with it.
    pub(super) fn answers(&self) -> u64 {
        let mut noted = self.lock();
        noted.head_since = None;
        noted.is_answering = true;
        noted.requests = noted.requests.saturating_add(1);
        noted.requests
    }

    /// Its reply is there, to be written.
    pub(super) fn answered(&self) {
        let mut noted = self.lock();
        noted.is_answering = false;
        noted.active_at = Instant::now();
    }

    fn read(&self) {
        let now = Instant::now();
        let mut noted = self.lock();
        noted.active_at = now;
        if !noted.is_answering {
            noted.head_since.get_or_insert(now);
        }
    }

    fn wrote(&self, is_ready: bool) {
        let now = Instant::now();
        let mut noted = self.lock();
        match is_ready {
            true => {
                noted.active_at = now;
                noted.unread_since = None;
            }
            false => {
                noted.unread_since.get_or_insert(now);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The socket.
pub(super) struct Socket {
    stream: Stream,
    activity: Arc<Activity>,
}

impl Socket {
    pub(super) fn new(stream: Stream, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }

    /// The stream alone, at the end.
    pub(super) fn into_stream(self) -> Stream {
        self.stream
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if into.filled().len() > before {
            self.activity.read();
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.activity.wrote(written.is_ready());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_pending() {
            self.activity.wrote(false);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
