//! One of the two peers of a connection: what came from it, and what it is still to be sent.

use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

use crate::connection::buffers::{BUFFER_BYTES_BUSY, BUFFER_BYTES_MIN};
use crate::connection::input::Input;
use crate::connection::stream::Stream;

/// Output of the session that may wait for a slow peer before its next commands are no longer answered, bytes.
const OWN_BYTES_MAX: usize = 64 << 10;

/// What the session said last of a side's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// So many bytes in all.
    More(usize),
    /// The other side must move first.
    Other,
}

/// One of the two peers.
pub(crate) struct Side {
    pub(crate) stream: Stream,
    pub(crate) input: Input,
    /// What the session itself says to this peer; before the other side's cleared bytes.
    own: Vec<u8>,
    own_sent: usize,
    pub(crate) wants: Wants,
    /// Whether nothing more has come since the task was woken: it will be woken again when something does.
    pub(crate) is_dry: bool,
    /// Whether the stream has kept nothing back of what was written.
    is_flushed: bool,
    /// Whether the sending side towards this peer was closed.
    pub(crate) is_shut: bool,
    /// Whether it is closed as soon as what may go to it has gone.
    pub(crate) is_to_close: bool,
    /// Whether it takes nothing any more, so that what is for it is dropped.
    pub(crate) is_deaf: bool,
    /// Whether it has broken the connection off by a reset.
    pub(crate) was_reset: bool,
}

impl Side {
    pub(crate) fn new(stream: Stream, input: Input) -> Self {
        Self {
            stream,
            input,
            own: Vec::new(),
            own_sent: 0,
            wants: Wants::More(1),
            is_dry: false,
            is_flushed: true,
            is_shut: false,
            is_to_close: false,
            is_deaf: false,
            was_reset: false,
        }
    }

    /// How many bytes of input there are to be in all; `None`: nothing is to be read.
    #[inline]
    fn room(&self) -> Option<usize> {
        if self.input.has_ended() || self.input.has_cleared() {
            return None;
        }
        match self.wants {
            Wants::More(at_least) => Some(at_least),
            // A little is read ahead, and the rest waits in the socket.
            Wants::Other if self.input.there().len() < BUFFER_BYTES_MIN => Some(1),
            Wants::Other => None,
        }
    }

    /// Reads what has come, or its end; false when nothing is to be read now. Then the task is woken when that changes.
    #[inline]
    pub(crate) fn poll_read(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        match self.room() {
            Some(at_least) if !self.is_dry => self.poll_input(at_least, context),
            Some(_) | None => Ok(false),
        }
    }

    fn poll_input(&mut self, at_least: usize, context: &mut Context<'_>) -> io::Result<bool> {
        match self.input.poll_read(&mut self.stream, at_least, context) {
            Poll::Ready(read) => read.map(|()| true),
            Poll::Pending => {
                self.is_dry = true;
                Ok(false)
            }
        }
    }

    /// Notes why reading from it, or writing to it, goes on no more.
    pub(crate) fn note(&mut self, error: &io::Error, doing: &'static str) {
        tracing::debug!(%error, "{doing}");
        self.was_reset |= error.kind() == io::ErrorKind::ConnectionReset;
    }

    /// Whether so much of the session's output waits for this peer that its commands have to wait too.
    pub(crate) fn is_behind(&self) -> bool {
        self.own.len() - self.own_sent >= OWN_BYTES_MAX
    }

    /// Whether nothing of this side will ever be passed on any more.
    pub(crate) fn is_over(&self) -> bool {
        let asks_in_vain = matches!(self.wants, Wants::More(_));
        self.input.has_ended()
            && !self.input.has_cleared()
            && (asks_in_vain || self.input.is_empty())
    }

    /// Takes over what the session has to say to this peer; `other`'s cleared bytes were said earlier.
    #[inline]
    pub(crate) fn take_own(&mut self, other: &mut Side, said: &mut Vec<u8>) {
        if !said.is_empty() {
            self.append_own(other, said);
        }
    }

    fn append_own(&mut self, other: &mut Side, said: &mut Vec<u8>) {
        let earlier = other.input.cleared();
        if !earlier.is_empty() {
            self.own.extend_from_slice(earlier);
            other.input.drop_cleared(usize::MAX);
        }
        // It may be that they never all go out before more is said.
        self.own.drain(..self.own_sent);
        self.own_sent = 0;
        if self.own.is_empty() {
            mem::swap(&mut self.own, said);
        } else {
            self.own.append(said);
        }
    }

    /// Gives back all memory that nothing is in.
    pub(crate) fn release(&mut self) {
        self.input.release();
        if self.own.is_empty() {
            self.own = Vec::new();
        }
    }

    /// Writes the session's own output; false when the socket takes no more for now.
    fn poll_own(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        while let Some(rest) = self
            .own
            .get(self.own_sent..)
            .filter(|rest| !rest.is_empty())
        {
            match poll_write(&mut self.stream, context, rest) {
                Poll::Ready(count) => self.own_sent += count?,
                Poll::Pending => return Ok(false),
            }
            self.is_flushed = false;
        }
        self.own.clear();
        self.own_sent = 0;
        if self.own.capacity() > BUFFER_BYTES_BUSY {
            self.own = Vec::new();
        }
        Ok(true)
    }
}

/// Whether something is still on its way out to `to`.
#[inline]
pub(crate) fn is_pending(from: &Side, to: &Side) -> bool {
    from.input.has_cleared() || !to.own.is_empty() || !to.is_flushed
}

/// Passes on what may be passed on, as far as the socket takes it. The task is woken when it takes more.
pub(crate) fn poll_pass(
    from: &mut Side,
    to: &mut Side,
    context: &mut Context<'_>,
) -> io::Result<()> {
    if to.is_deaf {
        from.input.drop_cleared(usize::MAX);
        to.own.clear();
        to.own_sent = 0;
        to.is_flushed = true;
    }
    if !is_pending(from, to) || !to.poll_own(context)? {
        return Ok(());
    }
    loop {
        let bytes = from.input.cleared();
        if bytes.is_empty() {
            break;
        }
        let written = match to.is_to_close {
            true => to.stream.poll_write_last(context, bytes),
            false => poll_write(&mut to.stream, context, bytes),
        };
        match written {
            Poll::Ready(count) => from.input.drop_cleared(count?),
            Poll::Pending => return Ok(()),
        }
        to.is_flushed = false;
    }
    match Pin::new(&mut to.stream).poll_flush(context) {
        Poll::Ready(flushed) => {
            to.is_flushed = true;
            flushed
        }
        Poll::Pending => Ok(()),
    }
}

fn poll_write(
    stream: &mut Stream,
    context: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    Pin::new(stream)
        .poll_write(context, bytes)
        .map(|written| match written {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            written => written,
        })
}
