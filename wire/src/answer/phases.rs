//! How far an answer has come, by its packets: what each of them is, and which may follow.

use crate::bytes::{Header, Reader};
use crate::done::{Done, is_progress, read_end, read_eof, read_ok};
use crate::protocol::{CURSOR_EXISTS, EOF, ERR, LOCAL_INFILE, MORE_RESULTS};

/// Flags of an execution that ask for a cursor.
const CURSOR_TYPES: u8 = 0x07;

/// What shape the answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nothing is answered.
    None,
    /// One packet of text: COM_STATISTICS.
    OnePacket,
    /// OK, ERR or EOF.
    Simple,
    /// OK, ERR, a result set, a request for a local file; perhaps several.
    Results,
    /// The same, but of the last result set the rows may stay in a cursor.
    Cursor,
    /// COM_STMT_PREPARE.
    Prepare,
    /// COM_STMT_FETCH.
    Fetch,
    /// COM_FIELD_LIST.
    Fields,
    /// ERR, or packets that have no end.
    Stream,
}

impl Shape {
    /// Of the answer to an execution with these flags.
    pub fn of_execution(flags: u8) -> Self {
        match flags & CURSOR_TYPES {
            0 => Self::Results,
            _ => Self::Cursor,
        }
    }
}

/// What a packet at the end of a result said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// OK, or the end of rows.
    Ok(Done),
    /// An error.
    Error,
    /// COM_STMT_PREPARE's answer is complete.
    Prepared {
        /// The statement's number.
        statement: u32,
        /// How many parameters it has.
        parameters: u16,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    First,
    /// Column definitions, then perhaps EOF, then what comes next.
    Definitions {
        left: u64,
        then: Then,
    },
    DefinitionsEnd {
        then: Then,
    },
    Rows,
    /// The client sends a file; its empty packet makes the upstream answer.
    LocalFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Rows,
    PrepareColumns(u64),
    PrepareEnd,
}

/// What a packet is to whoever walks over it.
pub(super) enum PacketEnd {
    /// It has not all come, and must be read before it is passed on.
    NeedMore,
    /// The answer goes on behind it.
    Pass,
    /// It is the last; `None`: of an answer that says nothing.
    End(Option<End>),
    /// The client's turn, behind it: it sends a file.
    LocalFile,
    /// No packet from this one on is the last.
    Endless,
    /// No answer has it here.
    Malformed,
}

/// One answer after the other, packet by packet.
#[derive(Debug)]
pub(super) struct Phases {
    deprecate_eof: bool,
    shape: Shape,
    phase: Phase,
    prepared: (u32, u16),
    has_rows: bool,
}

impl Phases {
    /// Of one connection. `deprecate_eof`: answers end with OK where they ended with EOF.
    pub(super) fn new(deprecate_eof: bool) -> Self {
        Self {
            deprecate_eof,
            shape: Shape::None,
            phase: Phase::Idle,
            prepared: (0, 0),
            has_rows: false,
        }
    }

    /// A command went out, whose answer has this shape.
    pub(super) fn expect(&mut self, shape: Shape) {
        self.shape = shape;
        self.has_rows = false;
        self.phase = match shape {
            Shape::None => Phase::Idle,
            Shape::OnePacket
            | Shape::Simple
            | Shape::Results
            | Shape::Cursor
            | Shape::Prepare
            | Shape::Stream => Phase::First,
            Shape::Fetch | Shape::Fields => Phase::Rows,
        };
    }

    /// Whether rows came in the answer, or stay in a cursor.
    pub(super) fn has_rows(&self) -> bool {
        self.has_rows
    }

    /// Whether it is the client's turn to send a file.
    #[inline]
    pub(super) fn wants_local_file(&self) -> bool {
        self.phase == Phase::LocalFile
    }

    /// The client has sent its file to the end.
    pub(super) fn local_file_sent(&mut self) {
        self.phase = Phase::First;
    }

    /// Whether no packet of the upstream's is to come: nothing is under way, or it is the client's turn.
    pub(super) fn expect_nothing(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::LocalFile)
    }

    /// The packet of this header, of which so much is there.
    pub(super) fn packet(&mut self, header: Header, body: &[u8]) -> PacketEnd {
        let whole = body.get(..header.len);
        match self.phase {
            Phase::Idle | Phase::LocalFile => PacketEnd::Malformed,
            Phase::Definitions { left, then } => {
                let may_end = left <= 1 && self.deprecate_eof && then != Then::Rows;
                if may_end && whole.is_none() {
                    return PacketEnd::NeedMore;
                }
                self.phase = if left > 1 {
                    Phase::Definitions {
                        left: left - 1,
                        then,
                    }
                } else if self.deprecate_eof {
                    return self.after_definitions(then);
                } else {
                    Phase::DefinitionsEnd { then }
                };
                PacketEnd::Pass
            }
            Phase::DefinitionsEnd { then } => {
                let Some(eof) = whole else {
                    return PacketEnd::NeedMore;
                };
                // The statement failed while the rows for a cursor were gathered.
                if eof.first() == Some(&ERR) && then == Then::Rows && !is_progress(eof) {
                    return self.ended(None);
                }
                let Some(done) = read_eof(eof) else {
                    return PacketEnd::Malformed;
                };
                match then {
                    Then::Rows if self.is_cursor(done.status) => {
                        self.has_rows = true;
                        self.ended(Some(done))
                    }
                    Then::Rows | Then::PrepareColumns(_) | Then::PrepareEnd => {
                        self.after_definitions(then)
                    }
                }
            }
            Phase::Rows => self.row(header, body),
            Phase::First => match (whole, body.first()) {
                // What is behind an empty packet is another one's.
                (_, Some(first))
                    if self.shape == Shape::Stream && header.len > 0 && *first != ERR =>
                {
                    PacketEnd::Endless
                }
                (Some(payload), _) => self.first(payload),
                (None, _) => PacketEnd::NeedMore,
            },
        }
    }

    /// Whether the rows stay in a cursor. MariaDB says so also while a routine has one of its own open, whose results have their
    /// rows, and are never the last.
    fn is_cursor(&self, status: u16) -> bool {
        self.shape == Shape::Cursor && status & (CURSOR_EXISTS | MORE_RESULTS) == CURSOR_EXISTS
    }

    /// The current packet is the last of a block of definitions.
    fn after_definitions(&mut self, then: Then) -> PacketEnd {
        match then {
            Then::Rows => {
                self.phase = Phase::Rows;
                PacketEnd::Pass
            }
            Then::PrepareColumns(0) | Then::PrepareEnd => self.prepared_end(),
            Then::PrepareColumns(left) => {
                self.phase = Phase::Definitions {
                    left,
                    then: Then::PrepareEnd,
                };
                PacketEnd::Pass
            }
        }
    }

    fn prepared_end(&mut self) -> PacketEnd {
        self.phase = Phase::Idle;
        let (statement, parameters) = self.prepared;
        PacketEnd::End(Some(End::Prepared {
            statement,
            parameters,
        }))
    }

    fn row(&mut self, header: Header, body: &[u8]) -> PacketEnd {
        if header.len == 0 {
            return PacketEnd::Pass;
        }
        let Some(first) = body.first() else {
            return PacketEnd::NeedMore;
        };
        // A column's definition never begins so; a row may, if its first value is 16 MB long.
        let short = if self.deprecate_eof || self.shape == Shape::Fields {
            !header.continues()
        } else {
            header.len < 9
        };
        match *first {
            EOF if short => {
                let Some(payload) = body.get(..header.len) else {
                    return PacketEnd::NeedMore;
                };
                match read_end(payload) {
                    Some(done) => {
                        self.has_rows |= self.is_cursor(done.status);
                        self.ended(Some(done))
                    }
                    None => PacketEnd::Malformed,
                }
            }
            ERR => match body.get(..header.len) {
                None => PacketEnd::NeedMore,
                // While tables are checked, reports come before their rows.
                Some(report) if is_progress(report) => PacketEnd::Pass,
                Some(_) => self.ended(None),
            },
            _ => {
                self.has_rows = true;
                PacketEnd::Pass
            }
        }
    }

    fn first(&mut self, payload: &[u8]) -> PacketEnd {
        let Some(first) = payload.first() else {
            return PacketEnd::Malformed;
        };
        match (self.shape, *first) {
            (Shape::OnePacket, _) => {
                self.phase = Phase::Idle;
                PacketEnd::End(None)
            }
            (_, ERR) if is_progress(payload) => PacketEnd::Pass,
            (_, ERR) => self.ended(None),
            (Shape::Prepare, 0) => self.prepare(payload),
            (Shape::Results | Shape::Cursor, LOCAL_INFILE) => {
                self.phase = Phase::LocalFile;
                PacketEnd::LocalFile
            }
            (Shape::Simple | Shape::Results | Shape::Cursor, 0) => match read_ok(payload) {
                Some(done) => self.ended(Some(done)),
                None => PacketEnd::Malformed,
            },
            (Shape::Simple, EOF) => match read_end(payload) {
                Some(done) => self.ended(Some(done)),
                None => PacketEnd::Malformed,
            },
            (Shape::Results | Shape::Cursor, _) => match Reader(payload).lenenc() {
                Some(left) => {
                    self.phase = Phase::Definitions {
                        left,
                        then: Then::Rows,
                    };
                    PacketEnd::Pass
                }
                None => PacketEnd::Malformed,
            },
            (Shape::Prepare | Shape::Simple, _) => PacketEnd::Malformed,
            (Shape::None | Shape::Fetch | Shape::Fields | Shape::Stream, _) => PacketEnd::Malformed,
        }
    }

    fn prepare(&mut self, payload: &[u8]) -> PacketEnd {
        let mut reader = Reader(payload);
        let _ok = reader.u8();
        let (Some(statement), Some(columns), Some(parameters)) =
            (reader.u32(), reader.u16(), reader.u16())
        else {
            return PacketEnd::Malformed;
        };
        self.prepared = (statement, parameters);
        let (columns, parameters) = (u64::from(columns), u64::from(parameters));
        self.phase = match (parameters, columns) {
            (0, 0) => return self.prepared_end(),
            (0, left) => Phase::Definitions {
                left,
                then: Then::PrepareEnd,
            },
            (left, columns) => Phase::Definitions {
                left,
                then: Then::PrepareColumns(columns),
            },
        };
        PacketEnd::Pass
    }

    /// One result is over; `None`: with an error, after which nothing follows.
    fn ended(&mut self, done: Option<Done>) -> PacketEnd {
        let more = done.is_some_and(|done| done.status & MORE_RESULTS != 0)
            && matches!(self.shape, Shape::Results | Shape::Cursor);
        if more {
            self.phase = Phase::First;
            return PacketEnd::Pass;
        }
        self.phase = Phase::Idle;
        PacketEnd::End(Some(done.map_or(End::Error, End::Ok)))
    }
}
