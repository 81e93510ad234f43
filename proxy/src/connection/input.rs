//! Bytes of one side that were read and not passed on yet.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use keywright_session::Room;
use tokio::io::{AsyncRead, ReadBuf};

use crate::connection::buffers::{BUFFER_BYTES_BUSY, BUFFER_BYTES_MIN, Buffers};
use crate::connection::memory::{Memory, Share};
use crate::connection::stream::Stream;

/// The session has said what is to become of more bytes than have come. That is a fault of the program's own, and what comes next
/// cannot be told from what was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{claimed} bytes are spoken of, and {there} are there")]
pub(crate) struct Overrun {
    claimed: usize,
    there: usize,
}

/// A buffer that is read into at its end and passed on from its front.
#[derive(Debug)]
pub(crate) struct Input {
    /// Nothing, while there is nothing in it.
    bytes: Vec<u8>,
    /// So many bytes at its front are read into. It is longer where a statement has grown in it.
    readable: usize,
    /// How large the next one is to be.
    next: usize,
    buffers: Arc<Buffers>,
    start: usize,
    end: usize,
    /// How many bytes may go to the other side.
    cleared: usize,
    ended: bool,
    /// Whether the last read took all the room there was.
    was_filled: bool,
    /// What it has taken beyond [`BUFFER_BYTES_BUSY`].
    share: Share,
    /// Whether it is full and must be larger, and there is no memory for that.
    is_starved: bool,
}

impl Input {
    /// An empty one, which takes of that memory what it needs for statements.
    pub(crate) fn new(memory: Arc<Memory>, buffers: Arc<Buffers>) -> Self {
        Self {
            bytes: Vec::new(),
            readable: 0,
            next: BUFFER_BYTES_MIN,
            buffers,
            start: 0,
            end: 0,
            cleared: 0,
            ended: false,
            was_filled: false,
            share: Share::new(memory),
            is_starved: false,
        }
    }

    /// One with that in it, which is little.
    pub(crate) fn beginning_with(read: &[u8], memory: Arc<Memory>, buffers: Arc<Buffers>) -> Self {
        let mut input = Self::new(memory, buffers);
        if !read.is_empty() && input.make_room(read.len()) {
            input.stretch(read.len()).copy_from_slice(read);
        }
        input
    }

    /// Whether there is no memory for what it is to hold. Nothing more is read then, until something of it is gone.
    pub(crate) fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// What is there.
    pub(crate) fn there(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether the peer said that nothing more comes.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Nothing more comes.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether something may go to the other side and has not gone.
    #[inline]
    pub(crate) fn has_cleared(&self) -> bool {
        self.cleared > 0
    }

    /// Whether nothing is there.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Forgets the first `count` bytes.
    ///
    /// # Errors
    /// There are fewer. All stay.
    pub(crate) fn drop_front(&mut self, count: usize) -> Result<(), Overrun> {
        self.has(count)?;
        self.advance(count);
        self.cleared = self.cleared.min(self.there().len());
        Ok(())
    }

    /// Lets the first `count` bytes go to the other side.
    ///
    /// # Errors
    /// There are fewer. None may go.
    pub(crate) fn clear(&mut self, count: usize) -> Result<(), Overrun> {
        self.has(count)?;
        self.cleared = count;
        Ok(())
    }

    /// What may go to the other side and has not gone.
    pub(crate) fn cleared(&self) -> &[u8] {
        self.there().get(..self.cleared).unwrap_or_default()
    }

    /// So much of that has gone, and no more than all of it.
    pub(crate) fn drop_cleared(&mut self, count: usize) {
        let count = count.min(self.cleared);
        self.cleared -= count;
        self.advance(count);
    }

    fn has(&self, claimed: usize) -> Result<(), Overrun> {
        let there = self.there().len();
        match claimed <= there {
            true => Ok(()),
            false => Err(Overrun { claimed, there }),
        }
    }

    /// By no more than is there.
    fn advance(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
        self.is_starved = false;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Reads what has come, until there are `at_least` bytes in all or nothing more comes for now. Pending: nothing came.
    pub(crate) fn poll_read(
        &mut self,
        from: &mut Stream,
        at_least: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut was_read = false;
        if self.bytes.is_empty() && from.poll_read_ready(context).is_pending() {
            return Poll::Pending;
        }
        loop {
            if !self.has_room() && !self.make_room(at_least) {
                return Poll::Ready(Ok(()));
            }
            let room = self.bytes.get_mut(self.end..self.readable);
            let room = room.unwrap_or_default();
            let room_bytes = room.len();
            let mut into = ReadBuf::new(room);
            match Pin::new(&mut *from).poll_read(context, &mut into) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if was_read => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
            let count = into.filled().len();
            was_read = true;
            self.end += count;
            self.ended = count == 0;
            self.was_filled = count == room_bytes;
            if self.ended || self.there().len() >= at_least {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Whether the buffer is read into as it is: all that came before was passed on, and it was not full.
    #[inline]
    fn has_room(&self) -> bool {
        self.start == 0 && self.end < self.readable && !self.was_filled
    }

    /// A buffer that could not hold what came grows; with little in the socket a small one stays in the processor's cache. False
    /// if it is full and there is no memory for a larger one.
    fn make_room(&mut self, at_least: usize) -> bool {
        if self.bytes.is_empty() {
            self.bytes = self.buffers.take(self.next);
            self.readable = self.next;
        }
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let len = self.readable;
        let mut wanted = len;
        if self.was_filled || self.end == len {
            // That so many bytes are to come is a promise of the peer's: it makes the buffer no larger than what has come.
            let len_max = at_least.min(len.saturating_mul(2)).max(BUFFER_BYTES_BUSY);
            wanted = len.saturating_mul(4).clamp(BUFFER_BYTES_MIN, len_max);
        }
        // A full buffer must grow, or reading into no room would look like the peer's end.
        wanted = wanted.max(self.end.saturating_add(1));
        if wanted > len && self.share.hold(wanted.saturating_sub(BUFFER_BYTES_BUSY)) {
            self.grow(wanted);
        }
        // What came before may have been passed on: then it goes on as it is.
        self.is_starved = self.end >= self.readable;
        !self.is_starved
    }

    /// Into another buffer, where all that was in this one was passed on.
    fn grow(&mut self, wanted: usize) {
        if self.end == 0 {
            self.bytes.truncate(self.readable);
            self.buffers.give_back(std::mem::take(&mut self.bytes));
            self.bytes = self.buffers.take(wanted);
        }
        self.readable = wanted;
        self.bytes.resize(wanted.max(self.bytes.len()), 0);
    }

    /// Lets other connections have its buffer if nothing is in it, and it is no larger than those of others that are busy.
    pub(crate) fn lend(&mut self) {
        if self.start == self.end && !self.bytes.is_empty() && self.readable <= BUFFER_BYTES_BUSY {
            self.next = match std::mem::take(&mut self.was_filled) {
                true => self.readable.saturating_mul(4).min(BUFFER_BYTES_BUSY),
                false => self.readable,
            };
            self.bytes.truncate(self.readable);
            self.buffers.give_back(std::mem::take(&mut self.bytes));
            self.readable = 0;
        }
    }

    /// Gives the memory back if nothing is in it, and begins with little when more comes.
    pub(crate) fn release(&mut self) {
        if self.start == self.end {
            self.lend();
            self.bytes = Vec::new();
            self.readable = 0;
            self.next = BUFFER_BYTES_MIN;
            self.share.hold(0);
            self.was_filled = false;
        }
    }
}

impl Drop for Input {
    /// What is in it goes nowhere any more: another connection may have its buffer.
    fn drop(&mut self) {
        (self.start, self.end) = (0, 0);
        self.lend();
    }
}

impl Room for Input {
    fn there(&self) -> &[u8] {
        self.there()
    }

    // The memory for that was taken with the statement's own.
    fn stretch(&mut self, bytes: usize) -> &mut [u8] {
        let before = self.end;
        self.end = self.start.saturating_add(bytes);
        let more = self.end.saturating_sub(self.bytes.len());
        if more > 0 {
            self.bytes.reserve_exact(more);
            self.bytes.resize(self.end, 0);
        }
        // What another connection has left in it is nobody's business.
        if let Some(new) = self.bytes.get_mut(before..self.end) {
            new.fill(0);
        }
        self.bytes.get_mut(self.start..self.end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_ends_leaves_its_buffer_to_others() {
        let buffers: Arc<Buffers> = Arc::default();
        let memory = Arc::new(Memory::new(1 << 20));
        let mut input = Input::new(memory, Arc::clone(&buffers));
        assert!(input.make_room(1));
        input.stretch(1).fill(b'x');
        let address = input.bytes.as_ptr();
        drop(input);
        let taken = buffers.take(BUFFER_BYTES_MIN);
        assert_eq!(taken.as_ptr(), address);
    }

    /// Buffers go from one connection to the next with what is in them.
    #[test]
    fn nothing_of_another_connection_is_seen_where_a_statement_grows() {
        let buffers = Arc::new(Buffers::default());
        buffers.give_back(vec![b'x'; BUFFER_BYTES_MIN]);
        let mut input = Input::new(Arc::new(Memory::new(1 << 20)), buffers);
        assert!(input.make_room(1));
        input.end = 2;
        assert_eq!(input.stretch(5), b"xx\0\0\0");
        assert_eq!(input.stretch(2), b"xx");
    }

    /// What a statement is rewritten to needs room, which is none for a longer one to be gathered in.
    #[test]
    fn a_statement_that_grows_in_place_makes_no_room_for_longer_ones() {
        let mut input = Input::new(Arc::new(Memory::new(1 << 20)), Arc::default());
        let mut bytes = 100 << 10;
        loop {
            while input.end < bytes && input.make_room(bytes) {
                input.end = bytes.min(input.readable);
                input.was_filled = input.end == input.readable;
            }
            if input.is_starved() {
                break;
            }
            assert!(bytes < 1 << 20, "more is gathered than there is memory");
            assert_eq!(input.stretch(2 * bytes).len(), 2 * bytes);
            assert_eq!(input.drop_front(2 * bytes), Ok(()));
            assert!(input.bytes.len() <= 2 * input.readable);
            bytes = bytes * 3 / 2;
        }
        assert!(bytes > 512 << 10);
        assert_eq!(input.drop_front(input.there().len()), Ok(()));
        input.release();
        assert!(input.share.hold(512 << 10), "all came back");
    }

    /// No memory is left, and all that came was passed on. What comes next is short.
    #[test]
    fn who_has_room_is_not_starved() {
        let mut input = Input::new(Arc::new(Memory::new(0)), Arc::default());
        while input.make_room(usize::MAX) {
            input.end = input.readable;
            input.was_filled = true;
        }
        assert!(input.is_starved());
        assert_eq!(input.drop_front(input.there().len()), Ok(()));
        assert!(input.make_room(usize::MAX));
        assert!(!input.is_starved());
        input.lend();
        assert!(input.make_room(1));
        assert!(!input.is_starved());
    }

    /// Dropped as far as there was something, the rest of a command would be taken for the next one.
    #[test]
    fn more_than_has_come_neither_goes_on_nor_is_dropped() {
        let mut input = Input::new(Arc::new(Memory::new(1 << 20)), Arc::default());
        input.stretch(3).copy_from_slice(b"abc");
        let overrun = |claimed| Err(Overrun { claimed, there: 3 });
        for claimed in [4, usize::MAX] {
            assert_eq!(input.drop_front(claimed), overrun(claimed));
            assert_eq!(input.clear(claimed), overrun(claimed));
            assert_eq!((input.there(), input.cleared()), (&b"abc"[..], &b""[..]));
        }
        assert_eq!(input.clear(2), Ok(()));
        assert_eq!(input.cleared(), b"ab");
        input.drop_cleared(1);
        assert_eq!((input.there(), input.cleared()), (&b"bc"[..], &b"b"[..]));
        input.drop_cleared(usize::MAX);
        assert_eq!((input.there(), input.cleared()), (&b"c"[..], &b""[..]));
        assert_eq!(input.drop_front(1), Ok(()));
        assert_eq!(
            input.drop_front(1),
            Err(Overrun {
                claimed: 1,
                there: 0
            })
        );
    }
}
