//! Where the upstream's answer to a command ends, by packet headers: rows are jumped over, never read.

mod phases;

use crate::bytes::{HEADER_BYTES, Header};

pub use phases::{End, Shape};
use phases::{PacketEnd, Phases};

/// What was found in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    /// Bytes that belong to the answer so far.
    pub bytes: usize,
    /// Where its last packet begins, if it ends here.
    pub last: usize,
    /// How it goes on behind them.
    pub outcome: Outcome,
}

/// How an answer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything there was walked over, or more is needed before going on.
    Going,
    /// The answer ends here.
    Ended(Option<End>),
    /// The client's turn: it sends a file.
    LocalFile,
    /// From here on there is no end.
    Endless,
    /// No answer looks like this.
    Malformed,
}

/// Follows one answer after the other.
#[derive(Debug)]
pub struct Answer {
    phases: Phases,
    /// Bytes of a packet that was recognised and has not all come yet.
    skip: usize,
    /// The packet being skipped was full, so the next one continues it.
    continued: bool,
}

impl Answer {
    /// Follows the answers on one connection. `deprecate_eof`: they end with OK where they ended with EOF.
    pub fn new(deprecate_eof: bool) -> Self {
        Self {
            phases: Phases::new(deprecate_eof),
            skip: 0,
            continued: false,
        }
    }

    /// A command went out, whose answer has this shape.
    pub fn expect(&mut self, shape: Shape) {
        self.phases.expect(shape);
    }

    /// Whether rows came in the answer, or stay in a cursor.
    pub fn has_rows(&self) -> bool {
        self.phases.has_rows()
    }

    /// Whether it is the client's turn to send a file.
    #[inline]
    pub fn wants_local_file(&self) -> bool {
        self.phases.wants_local_file()
    }

    /// The client has sent its file to the end.
    pub fn local_file_sent(&mut self) {
        self.phases.local_file_sent();
    }

    /// Walks over as much of `bytes` as can be read.
    pub fn walk(&mut self, bytes: &[u8]) -> Walked {
        let mut at = 0;
        loop {
            if self.skip > 0 {
                let now = self.skip.min(bytes.len() - at);
                at += now;
                self.skip -= now;
                if self.skip > 0 {
                    return going(at);
                }
            }
            if self.phases.expect_nothing() && !self.continued {
                return going(at);
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(header) = Header::read(rest) else {
                return going(at);
            };
            if self.continued {
                self.pass(header);
                continue;
            }
            let body = rest.get(HEADER_BYTES..).unwrap_or_default();
            match self.phases.packet(header, body) {
                PacketEnd::NeedMore => return going(at),
                PacketEnd::Pass => self.pass(header),
                PacketEnd::End(end) => {
                    return Walked {
                        bytes: at + header.total(),
                        last: at,
                        outcome: Outcome::Ended(end),
                    };
                }
                PacketEnd::LocalFile => {
                    return Walked {
                        bytes: at + header.total(),
                        last: at,
                        outcome: Outcome::LocalFile,
                    };
                }
                PacketEnd::Endless => {
                    return Walked {
                        bytes: at,
                        last: at,
                        outcome: Outcome::Endless,
                    };
                }
                // What came before it is the client's.
                PacketEnd::Malformed if at > 0 => return going(at),
                PacketEnd::Malformed => {
                    return Walked {
                        bytes: at,
                        last: at,
                        outcome: Outcome::Malformed,
                    };
                }
            }
        }
    }

    fn pass(&mut self, header: Header) {
        self.skip = header.total();
        self.continued = header.continues();
    }
}

fn going(bytes: usize) -> Walked {
    Walked {
        bytes,
        last: bytes,
        outcome: Outcome::Going,
    }
}
