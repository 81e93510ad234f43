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
    Gathering(Gathering),
    /// It is too long: what comes is dropped, so many bytes of this packet first.
    Dropping { left: usize, continues: bool },
}

/// What has come of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gathering {
    /// Bytes of the command before it.
    command: usize,
    /// Bytes that were read.
    bytes: usize,
    /// Lines that have ended.
    lines: u64,
    continues: bool,
}

/// How much may be gathered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) bytes_max: usize,
    /// There is no memory for more than what is there.
    pub(crate) memory_full: bool,
}

/// What becomes of what has come.
pub(crate) enum Taken {
    /// It is not all.
    Step(Step),
    /// It is all, with so many rows at most.
    Whole(File, u64),
    /// It is all, and was dropped. This is its last packet.
    Dropped(Header),
}

impl Taking {
    /// Of a file of which nothing has come.
    pub(crate) fn behind(command: Header) -> Self {
        Self::Gathering(Gathering {
            command: command.total(),
            bytes: 0,
            lines: 0,
            continues: false,
        })
    }

    /// The client's bytes: the command and what has come of the file, or what was not dropped yet.
    pub(crate) fn take(&mut self, bytes: &[u8], room: Room, line_end: u8) -> Taken {
        loop {
            let next = match self {
                Self::Gathering(gathering) => gathering.read(bytes, room, line_end),
                Self::Dropping { left: 0, continues } => next_packet(bytes, *continues),
                Self::Dropping { .. } if bytes.is_empty() => Err(Step::More { at_least: 1 }.into()),
                Self::Dropping { left, .. } => {
                    let now = (*left).min(bytes.len());
                    *left -= now;
                    Err(Step::Consumed(now).into())
                }
            };
            match next {
                Ok(dropping) => *self = dropping,
                Err(taken) => return taken,
            }
        }
    }
}

impl From<Step> for Taken {
    fn from(step: Step) -> Self {
        Self::Step(step)
    }
}

impl Gathering {
    /// Counts the lines of what has come. `Ok`: it is too long.
    fn read(&mut self, all: &[u8], room: Room, line_end: u8) -> Result<Taking, Taken> {
        loop {
            let start = self.command.saturating_add(self.bytes);
            let Some(header) = all.get(start..).and_then(Header::read) else {
                if room.memory_full {
                    let (left, continues) = (start, self.continues);
                    return Ok(Taking::Dropping { left, continues });
                }
                let at_least = start.saturating_add(HEADER_BYTES);
                return Err(Step::More { at_least }.into());
            };
            let end = start.saturating_add(header.total());
            if header.len == 0 && !self.continues {
                let file = File {
                    bytes: end.saturating_sub(self.command),
                    sequence: header.sequence,
                };
                return Err(Taken::Whole(file, self.lines.saturating_add(1)));
            }
            if end.saturating_sub(self.command) > room.bytes_max {
                let (left, continues) = (end, header.continues());
                return Ok(Taking::Dropping { left, continues });
            }
            let Some(packet) = all.get(start..end) else {
                return Err(Step::More { at_least: end }.into());
            };
            let text = packet.get(HEADER_BYTES..).unwrap_or_default();
            self.lines = self.lines.saturating_add(count(text, line_end));
            self.bytes = self.bytes.saturating_add(packet.len());
            self.continues = header.continues();
        }
    }
}

/// The next packet of a file that is dropped, up to its end, which is answered with an error.
fn next_packet(bytes: &[u8], continues: bool) -> Result<Taking, Taken> {
    let header = Header::read(bytes).ok_or(Step::More {
        at_least: HEADER_BYTES,
    })?;
    if header.len == 0 && !continues {
        return Err(Taken::Dropped(header));
    }
    Ok(Taking::Dropping {
        left: header.total(),
        continues: header.continues(),
    })
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

#[cfg(test)]
mod tests {
    use super::{Room, Taken, Taking};
    use crate::step::Step;
    use keywright_wire::bytes::Header;

    const COMMAND: &[u8] = b"\x05\0\0\0\x03LOAD";
    const FILE: &[u8] = b"\x06\0\0\x02a\nb\nc\n\x02\0\0\x03d\n\0\0\0\x04";

    fn taken(taking: &mut Taking, bytes: &[u8], room: Room) -> String {
        match taking.take(bytes, room, b'\n') {
            Taken::Step(Step::More { at_least }) => format!("more {at_least}"),
            Taken::Step(Step::Consumed(bytes)) => format!("consumed {bytes}"),
            Taken::Step(other) => format!("{other:?}"),
            Taken::Whole(file, rows) => format!("whole {} {rows}", file.bytes()),
            Taken::Dropped(last) => format!("dropped {}", last.sequence),
        }
    }

    fn behind() -> Taking {
        let sequence = 0;
        let len = COMMAND.len() - 4;
        Taking::behind(Header { len, sequence })
    }

    #[test]
    fn a_file_is_counted_behind_its_command_in_whatever_parts_it_comes() {
        let all = [COMMAND, FILE].concat();
        let room = Room {
            bytes_max: FILE.len(),
            memory_full: false,
        };
        // Four lines, and what may stand behind the last.
        let whole = format!("whole {} 5", FILE.len());
        assert_eq!(taken(&mut behind(), &all, room), whole);
        let mut taking = behind();
        for end in COMMAND.len()..all.len() {
            let said = taken(&mut taking, &all[..end], room);
            let wanted: Option<usize> = said.strip_prefix("more ").and_then(|n| n.parse().ok());
            assert!(wanted.is_some_and(|wanted| wanted > end), "{end}: {said}");
        }
        assert_eq!(taken(&mut taking, &all, room), whole);
    }

    const NARROW: Room = Room {
        bytes_max: 9,
        memory_full: false,
    };
    const FULL: Room = Room {
        bytes_max: 0,
        memory_full: true,
    };

    /// What is said at last of one that is dropped, of which `first` bytes are there at first, and what of it was left.
    fn dropped<'a>(
        taking: &mut Taking,
        all: &'a [u8],
        first: usize,
        room: Room,
    ) -> (String, &'a [u8]) {
        let mut rest = &all[..first];
        let mut bytes = 0;
        loop {
            let said = taken(taking, rest, room);
            match said.strip_prefix("consumed ") {
                Some(count) => {
                    let count: usize = count.parse().unwrap_or(usize::MAX);
                    bytes += count;
                    rest = &rest[count..];
                }
                None if said.starts_with("more") => {
                    assert!(bytes > 0, "there is no room for more");
                    rest = &all[bytes..];
                }
                None => return (said, rest),
            }
        }
    }

    #[test]
    fn one_that_is_too_long_is_dropped_up_to_its_end() {
        let all = [COMMAND, FILE].concat();
        for (room, first) in [(NARROW, all.len()), (FULL, COMMAND.len() + 3)] {
            let (end, rest) = dropped(&mut behind(), &all, first, room);
            assert_eq!((end.as_str(), rest), ("dropped 4", &[0, 0, 0, 4][..]));
        }
    }

    /// The packet behind it may be empty, and is no end then.
    #[test]
    fn a_packet_that_is_as_long_as_can_be_goes_on_in_the_next() {
        const LONGEST: usize = 0xFF_FFFF;
        let mut long = vec![0xFF, 0xFF, 0xFF, 2];
        long.resize(long.len() + LONGEST, b'x');
        let end = b"\0\0\0\x03\0\0\0\x04";
        let all = [COMMAND, &long, end].concat();
        let wide = Room {
            bytes_max: all.len(),
            memory_full: false,
        };
        let whole = format!("whole {} 1", all.len() - COMMAND.len());
        assert_eq!(taken(&mut behind(), &all, wide), whole);
        let last = ("dropped 4".to_owned(), &end[4..]);
        assert_eq!(dropped(&mut behind(), &all, all.len(), NARROW), last);
        // It has come, and then there is no memory any more.
        let mut taking = behind();
        let there = COMMAND.len() + long.len();
        assert!(taken(&mut taking, &all[..there], wide).starts_with("more"));
        assert_eq!(dropped(&mut taking, &all, there, FULL), last);
        // It comes behind one that is dropped already.
        let all = [COMMAND, b"\x0a\0\0\x01123456789\n", &long, end].concat();
        assert_eq!(dropped(&mut behind(), &all, all.len(), NARROW), last);
    }
}
