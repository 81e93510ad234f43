//! What was written to a client and has not gone out, and the memory that it takes.

use std::sync::Arc;

use keywright_core::Cause;
use keywright_store::Failure;

use crate::connection::memory::{Memory, Share};

/// So much of replies waits without a share of the memory for all, and so much room is kept while none wait, bytes. A client that has not said who it is
/// gets no more.
pub(super) const FREE_BYTES: usize = 4 << 10;

/// What was written and has not gone out.
pub(super) struct Output {
    /// With what has gone out since the last [`Self::compact`].
    pub(super) bytes: Vec<u8>,
    gone: usize,
    /// What more of it there may be.
    pub(super) room: Room,
}

/// Room for replies that wait to go out: up to a limit, and beyond [`FREE_BYTES`] only as far as the memory for all has it.
pub(super) struct Room {
    share: Share,
    /// What they may take by now.
    granted_bytes: usize,
    /// What they may ever take, but for the last of them.
    bytes_max: usize,
    /// What they took when that was looked at last.
    waiting_bytes: usize,
    /// What the reply takes that was put off until those have gone out; 0: none was.
    put_off_bytes: usize,
}

impl Output {
    /// Of nothing, with room for so many bytes at most.
    pub(super) fn new(memory: Arc<Memory>, bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            gone: 0,
            room: Room::new(memory, bytes_max),
        }
    }

    pub(super) fn left(&self) -> &[u8] {
        self.bytes.get(self.gone..).unwrap_or_default()
    }

    /// So many bytes more have gone out.
    pub(super) fn went(&mut self, bytes: usize) {
        self.gone = self.gone.saturating_add(bytes);
    }

    /// Forgets what has gone out.
    pub(super) fn compact(&mut self) {
        if self.gone > 0 {
            self.bytes.drain(..self.gone.min(self.bytes.len()));
            self.gone = 0;
        }
    }

    /// All has gone out. `is_waited_for`: a reply that has its room already is still to come.
    pub(super) fn empty(&mut self, is_waited_for: bool) {
        self.gone = 0;
        self.bytes.clear();
        if self.bytes.capacity() > FREE_BYTES {
            self.bytes = Vec::new();
        }
        if !is_waited_for {
            self.room.give_back();
        }
    }
}

impl Room {
    fn new(memory: Arc<Memory>, bytes_max: usize) -> Self {
        Self {
            share: Share::new(memory),
            granted_bytes: FREE_BYTES,
            bytes_max,
            waiting_bytes: 0,
            put_off_bytes: 0,
        }
    }

    /// Whether there is room for more replies where so many bytes wait.
    pub(super) fn has(&mut self, waiting_bytes: usize) -> bool {
        self.waiting_bytes = waiting_bytes;
        if waiting_bytes >= self.bytes_max {
            return false;
        }
        // Else the request whose reply was put off would be carried out again and again while the client reads nothing.
        if !self.fits(self.put_off_bytes) {
            return false;
        }
        self.put_off_bytes = 0;
        while waiting_bytes >= self.granted_bytes {
            let more = self.granted_bytes.saturating_mul(2).min(self.bytes_max);
            if !self.grow(more) {
                return false;
            }
        }
        true
    }

    /// Whether a reply of so many bytes is to wait until those before it have gone out: there is no room for it behind them, and there always is without
    /// them. [`Self::has`] says when.
    pub(super) fn puts_off(&mut self, bytes: usize) -> bool {
        let is_put_off = bytes <= FREE_BYTES && !self.fits(bytes);
        if is_put_off {
            self.put_off_bytes = bytes;
        }
        is_put_off
    }

    /// Takes room for one reply of so many bytes, behind those that wait.
    ///
    /// # Errors
    /// [`Cause::MemoryFull`].
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        if self.fits(bytes) {
            return Ok(());
        }
        let failure = Failure::new(Cause::MemoryFull, "replies fill memory_bytes_max");
        Err(failure.hint("ask for fewer keys, or again later"))
    }

    /// Whether there is room, or more is to be had, for so many bytes behind those that wait.
    fn fits(&mut self, bytes: usize) -> bool {
        let wanted = self.waiting_bytes.saturating_add(bytes);
        wanted <= self.granted_bytes || bytes == 0 || self.grow(wanted)
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let is_granted = self.share.hold(bytes);
        if is_granted {
            self.granted_bytes = bytes;
        }
        is_granted
    }

    fn give_back(&mut self) {
        if self.granted_bytes > FREE_BYTES {
            self.share.hold(0);
            self.granted_bytes = FREE_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use keywright_core::Cause;

    use super::{FREE_BYTES, Output};
    use crate::connection::memory::Memory;

    /// What a share of so many bytes takes.
    fn memory(bytes: usize) -> Arc<Memory> {
        Arc::new(Memory::new(2 * bytes))
    }

    #[test]
    fn replies_wait_as_far_as_there_is_memory_for_all() {
        let memory = memory(6 * FREE_BYTES);
        let output = || Output::new(Arc::clone(&memory), 4 * FREE_BYTES);
        let (mut one, mut other) = (output(), output());
        for (waiting, is_room) in [(0, true), (4, true), (5, false), (4, true)] {
            let waiting = (waiting * FREE_BYTES).saturating_sub(1);
            assert_eq!(one.room.has(waiting), is_room, "{waiting}");
        }
        // Beyond it would take twice as much, which is not there.
        assert!(other.room.has(FREE_BYTES));
        assert!(!other.room.has(2 * FREE_BYTES));
        let mut third = output();
        assert!(third.room.has(FREE_BYTES - 1));
        assert!(!third.room.has(FREE_BYTES));
        // What is still to come keeps its room.
        one.empty(true);
        assert!(!third.room.has(FREE_BYTES));
        one.empty(false);
        assert!(third.room.has(2 * FREE_BYTES));
        drop((one, other, third));
        assert!(output().room.has(4 * FREE_BYTES - 1));
    }

    #[test]
    fn a_long_reply_has_its_room_or_is_refused() {
        let mut output = Output::new(memory(10 * FREE_BYTES), 4 * FREE_BYTES);
        assert!(output.room.has(FREE_BYTES));
        assert!(output.room.take(9 * FREE_BYTES).is_ok());
        let refused = output.room.take(9 * FREE_BYTES + 1).unwrap_err();
        assert_eq!(refused.cause(), Cause::MemoryFull);
        // The limit is of those that wait before another is carried out.
        assert!(!output.room.has(4 * FREE_BYTES));
        output.empty(false);
        assert!(output.room.has(0) && output.room.take(10 * FREE_BYTES).is_ok());
    }

    #[test]
    fn a_short_reply_waits_for_those_before_it() {
        let room = &mut Output::new(memory(0), 4 * FREE_BYTES).room;
        let (waiting, short) = (FREE_BYTES / 2, FREE_BYTES / 2 + 1);
        assert!(room.has(waiting) && room.puts_off(short));
        // Before they have gone out, or enough of them, it is not tried again.
        assert!(!room.has(waiting));
        assert!(room.has(FREE_BYTES - short) && !room.puts_off(short));
        assert!(room.take(short).is_ok());
        // Alone it always has room, a long one never.
        assert!(room.has(waiting) && room.puts_off(FREE_BYTES));
        assert!(room.has(0) && !room.puts_off(FREE_BYTES));
        assert!(room.take(FREE_BYTES).is_ok());
        assert!(room.has(waiting) && !room.puts_off(FREE_BYTES + 1));
        let refused = room.take(FREE_BYTES + 1).unwrap_err();
        assert_eq!(refused.cause(), Cause::MemoryFull);
    }

    #[test]
    fn a_limit_below_what_is_free_holds() {
        let mut output = Output::new(memory(0), 64);
        assert!(output.room.has(63));
        assert!(!output.room.has(64));
        output.bytes.extend_from_slice(b"+OK\r\n");
        output.went(1);
        assert_eq!(output.left(), b"OK\r\n");
        output.compact();
        assert_eq!(output.bytes, b"OK\r\n");
    }
}
