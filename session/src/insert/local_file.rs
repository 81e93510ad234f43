//! The client's file of a LOAD DATA LOCAL into a table with a rule. It stays behind the command in the client's bytes until its
//! lines are counted and have keys.

use keywright_wire::bytes::{HEADER_BYTES, Header};

use crate::step::Step;

/// Ends a file that holds nothing.
pub(crate) const NO_MORE: [u8; 4] = [0, 0, 0, 2];

/// A file that has come whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    bytes: usize,
    /// Number of its last packet.
    sequence: u8,
}

impl File {
    /// How long it is, with the headers of its packets.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A header as if command and file were one packet.
    pub(crate) fn whole(&self, command: Header) -> Header {
        Header {
            len: command.len.saturating_add(self.bytes),
            sequence: self.sequence,
        }
    }
}

/// A file that is on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Taking {
    /// It is gathered behind the command.
    Gathering {
        command: usize,
        /// Bytes that were read.
        bytes: usize,
        /// Lines that have ended.
        lines: u64,
        continues: bool,
    },
    /// It is too long: what comes is dropped, so many bytes of this packet first.
    Dropping { left: usize, continues: bool },
}

/// What has come of it.
pub(crate) enum Taken {
    /// A part.
    Step(Step),
    /// All of it, with so many rows at most.
    Whole(File, u64),
    /// All of it, and it was dropped. This is its last packet.
    Dropped(Header),
}

impl Taking {
    /// Of a file that nothing has come of.
    pub(crate) fn behind(command: Header) -> Self {
        Self::Gathering {
            command: command.total(),
            bytes: 0,
            lines: 0,
            continues: false,
        }
    }

    /// The client's bytes: the command and what has come of the file, or what was not dropped yet. So many bytes may be gathered, or
    /// there is no memory for more.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        (bytes_max, memory_full): (usize, bool),
        line_end: u8,
    ) -> Taken {
        match *self {
            Self::Gathering { .. } => self.gather(bytes, (bytes_max, memory_full), line_end),
            Self::Dropping { left, continues } => self.drop(bytes, left, continues),
        }
    }

    fn gather(
        &mut self,
        all: &[u8],
        (bytes_max, memory_full): (usize, bool),
        line_end: u8,
    ) -> Taken {
        let Self::Gathering {
            command,
            bytes,
            lines,
            continues,
        } = self
        else {
            return Taken::Step(Step::Consumed(0));
        };
        loop {
            let start = command.saturating_add(*bytes);
            let Some(header) = all.get(start..).and_then(Header::read) else {
                if memory_full {
                    let (left, continues) = (start, *continues);
                    *self = Self::Dropping { left, continues };
                    return Taken::Step(Step::Consumed(0));
                }
                return Taken::Step(Step::More {
                    at_least: start.saturating_add(HEADER_BYTES),
                });
            };
            let end = start.saturating_add(header.total());
            if header.len == 0 && !*continues {
                let file = File {
                    bytes: end.saturating_sub(*command),
                    sequence: header.sequence,
                };
                return Taken::Whole(file, lines.saturating_add(1));
            }
            if end.saturating_sub(*command) > bytes_max {
                let (left, continues) = (end, header.continues());
                *self = Self::Dropping { left, continues };
                return Taken::Step(Step::Consumed(0));
            }
            let Some(packet) = all.get(start..end) else {
                return Taken::Step(Step::More { at_least: end });
            };
            let text = packet.get(HEADER_BYTES..).unwrap_or_default();
            *lines = lines.saturating_add(count(text, line_end));
            *bytes = bytes.saturating_add(packet.len());
            *continues = header.continues();
        }
    }

    /// Drops what comes up to the file's end, which is answered with an error.
    fn drop(&mut self, bytes: &[u8], left: usize, continues: bool) -> Taken {
        if left > 0 {
            if bytes.is_empty() {
                return Taken::Step(Step::More { at_least: 1 });
            }
            let now = left.min(bytes.len());
            let left = left - now;
            *self = Self::Dropping { left, continues };
            return Taken::Step(Step::Consumed(now));
        }
        let Some(header) = Header::read(bytes) else {
            return Taken::Step(Step::More {
                at_least: HEADER_BYTES,
            });
        };
        if header.len == 0 && !continues {
            return Taken::Dropped(header);
        }
        *self = Self::Dropping {
            left: header.total(),
            continues: header.continues(),
        };
        Taken::Step(Step::Consumed(0))
    }
}

/// A file that is sent on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sending {
    /// The command before it is still there.
    Command,
    /// So many bytes are left.
    File(usize),
}

/// How many bytes of a text are `byte`.
fn count(text: &[u8], byte: u8) -> u64 {
    let found = memchr::memchr_iter(byte, text).count();
    u64::try_from(found).unwrap_or(u64::MAX)
}
