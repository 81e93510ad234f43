//! Multi-statement texts with a statement on a rule's table: each statement is sent by itself, and their answers are joined to the
//! one that the client waits for.

use keywright_rewrite::{
    InsertHead, Modes, RowsFrom, Unread, Unsupported, kind, split, split_first,
};
use keywright_wire::bytes::{HEADER_BYTES, Header, Reader};
use keywright_wire::packets::write_query;
use keywright_wire::protocol::{EOF, ERR, MORE_RESULTS};

use crate::answer::after::After;
use crate::client::decode::OutOfOrder;
use crate::client::text::{Query, Reading};
use crate::connection::Connection;
use crate::job::{Job, Next, Turn};
use crate::step::Step;

/// The statements of one text, and how far they were sent and answered.
#[derive(Debug)]
pub(crate) struct MultiStatement {
    /// Goes with each of them.
    attributes: Vec<u8>,
    text: Vec<u8>,
    /// Up to here the text was cut.
    cut: usize,
    /// See [`plain_from`].
    plain_from: usize,
    /// The command of one statement, of which so many bytes were consumed.
    command: Vec<u8>,
    consumed: usize,
    /// Number of the next packet to the client.
    sequence: u8,
    /// Bytes to come of the packet that the client gets now.
    left: usize,
    /// What is under way for that statement.
    pub(crate) child: Job,
    /// The last of them was answered, or the packets make no sense.
    pub(crate) is_over: bool,
}

/// What is to be done with a text of several statements.
enum Several {
    /// No rule is for any of them.
    Whole(After),
    OneByOne,
    Refuse(Unsupported),
}

impl MultiStatement {
    fn new(attributes: &[u8], text: &[u8], sequence: u8) -> Self {
        Self {
            attributes: attributes.to_vec(),
            text: text.to_vec(),
            cut: 0,
            plain_from: plain_from(text),
            command: Vec::new(),
            consumed: 0,
            sequence,
            left: 0,
            child: Job::Idle,
            is_over: false,
        }
    }

    /// What was not cut yet.
    fn rest(&self) -> &[u8] {
        self.text.get(self.cut..).unwrap_or_default()
    }

    /// Whether another statement follows. White space between statements is none, for the server; a comment is one.
    fn has_more(&self) -> bool {
        !self.rest().iter().all(u8::is_ascii_whitespace)
    }

    fn waiting(&self) -> &[u8] {
        self.command.get(self.consumed..).unwrap_or_default()
    }

    /// Makes the next statement the command at the front.
    fn cut_next(&mut self, modes: &Modes) {
        let piece = split_first(&self.text, self.cut, modes).range;
        self.cut = piece.end;
        let piece = self.text.get(piece).unwrap_or_default();
        let statement = piece.strip_suffix(b";").unwrap_or(piece);
        self.command.clear();
        self.consumed = 0;
        write_query(&self.attributes, statement, &mut self.command);
    }

    /// Numbers the packets of a part of an answer anew; where the last of them begins.
    fn number(&mut self, part: &mut [u8]) -> Option<usize> {
        let mut at = self.left.min(part.len());
        self.left -= at;
        let mut last = None;
        while let Some(header) = part.get(at..).and_then(Header::read) {
            if let Some(sequence) = part.get_mut(at + HEADER_BYTES - 1) {
                *sequence = self.sequence;
            }
            self.sequence = self.sequence.wrapping_add(1);
            last = Some(at);
            let end = at.saturating_add(header.total());
            self.left = end.saturating_sub(part.len());
            at = end.min(part.len());
        }
        last
    }

    /// The client's turn while statements of one text wait: one after another takes the place of its bytes. `None`: there is no other.
    pub(crate) fn on_client(
        &mut self,
        connection: &mut Connection,
    ) -> Result<Option<Step>, OutOfOrder> {
        // They have bytes of their own.
        let writes_in_place = std::mem::take(&mut connection.writes_in_place);
        while !self.is_over {
            if let Some(step) = self.next_step(connection)? {
                return Ok(Some(step));
            }
        }
        connection.writes_in_place = writes_in_place;
        Ok(None)
    }

    /// `None`: the statement at hand has moved on.
    fn next_step(&mut self, connection: &mut Connection) -> Result<Option<Step>, OutOfOrder> {
        if self.is_answered(connection) && self.waiting().is_empty() {
            if !connection.context.known && self.cut < self.plain_from {
                return Ok(Some(connection.ask_context()));
            }
            self.cut_next(&connection.context.modes);
        }
        let before = connection.down.len();
        let waiting = self.command.get(self.consumed..).unwrap_or_default();
        let step = match self.child.on_client(connection, waiting) {
            Step::Forward(count) => {
                let front = waiting.get(..count).unwrap_or_default();
                connection.up.extend_from_slice(front);
                self.consumed += count;
                None
            }
            Step::Consumed(count) => {
                self.consumed += count;
                None
            }
            step @ (Step::Blocked | Step::Keys(_) | Step::Wait | Step::Close) => Some(step),
            // Each of them is a whole COM_QUERY.
            Step::More { .. } | Step::Authenticate(_) | Step::Show(_) => return Err(OutOfOrder),
        };
        self.reply(connection, before);
        Ok(step)
    }

    /// The upstream's turn while statements of one text wait, or the last of them is answered.
    pub(crate) fn on_upstream(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Step, OutOfOrder> {
        let before = connection.down.len();
        let step = match self.child.on_upstream(connection, bytes) {
            Step::Forward(count) => {
                let front = bytes.get(..count).unwrap_or_default();
                connection.down.extend_from_slice(front);
                Step::Consumed(count)
            }
            step @ (Step::Consumed(_)
            | Step::More { .. }
            | Step::Blocked
            | Step::Keys(_)
            | Step::Wait
            | Step::Authenticate(_)
            | Step::Show(_)
            | Step::Close) => step,
        };
        if connection.answer.wants_local_file() {
            self.is_over = true;
            return Err(OutOfOrder);
        }
        self.reply(connection, before);
        Ok(step)
    }

    /// Whether the statement at hand was answered, or none was sent yet.
    fn is_answered(&self, connection: &Connection) -> bool {
        self.child.turn() == Turn::Command && connection.probe.is_none()
    }

    /// What was added to the client's output from `before` on belongs to the answer of all statements together.
    fn reply(&mut self, connection: &mut Connection, before: usize) {
        let is_answered = self.is_answered(connection) && !connection.has_rest();
        let part = connection.down.get_mut(before..).unwrap_or_default();
        let last = self.number(part);
        let Some(last) = last
            .filter(|_| is_answered)
            .and_then(|at| part.get_mut(at..))
        else {
            return;
        };
        let failed = last.get(HEADER_BYTES) == Some(&ERR);
        if !failed && self.has_more() {
            // An OK or EOF packet, since the answer ended with it.
            let _ = announce_more(last);
        } else {
            // The rest of the text is not carried out.
            self.is_over = true;
        }
    }
}

/// Says in an OK or EOF packet that another result follows.
fn announce_more(packet: &mut [u8]) -> Option<()> {
    let payload = packet.get(HEADER_BYTES..)?;
    let mut reader = Reader(payload);
    let is_eof = reader.u8()? == EOF && payload.len() == 5;
    if is_eof {
        reader.u16()?;
    } else {
        reader.lenenc()?;
        reader.lenenc()?;
    }
    let at = packet.len() - reader.0.len();
    let status = reader.u16()? | MORE_RESULTS;
    packet
        .get_mut(at..at + 2)?
        .copy_from_slice(&status.to_le_bytes());
    Some(())
}

impl Connection {
    /// Whether one text may hold several statements, and this one does.
    pub(crate) fn is_several(&self, text: &[u8]) -> bool {
        self.allows_several()
            && memchr::memchr_iter(b';', text).any(|at| {
                text.get(at + 1..)
                    .is_some_and(|rest| !rest.iter().all(u8::is_ascii_whitespace))
            })
    }

    /// Several statements in one text: passed on as they are if none of them is for a table with a rule.
    pub(crate) fn several(&mut self, query: Query<'_>) -> Next {
        if !self.context.known {
            return self.ask_context().into();
        }
        let multi_statement = split(query.text, &self.context.modes);
        if multi_statement.len() == 1 {
            return self.one(query);
        }
        match self.read_several(query.text) {
            Err(()) => self.ask_context().into(),
            Ok(Several::Whole(after)) => self.pass_query(query, after),
            Ok(Several::Refuse(what)) => self.unsupported(query, None, what),
            Ok(Several::OneByOne) => match query.attributes() {
                Ok(attributes) => {
                    let sequence = query.header.sequence.wrapping_add(1);
                    let several = MultiStatement::new(attributes, query.text, sequence);
                    Job::Several(Box::new(several)).with(Step::Consumed(query.header.total()))
                }
                Err(what) => self.unsupported(query, None, what),
            },
        }
    }

    fn read_several(&mut self, text: &[u8]) -> Result<Several, ()> {
        let modes = self.context.modes;
        let (mut made, mut doubts_texts, mut doubts_unseen) = (Vec::new(), false, false);
        let (mut is_ruled, mut loads) = (false, false);
        // After a USE, SET or CALL the server reads the rest in a state that is not known yet.
        let mut changed = false;
        let plain_from = plain_from(text);
        for piece in split(text, &modes) {
            // The state is asked for when the rest has its turn.
            is_ruled |= changed && piece.range.start < plain_from;
            let piece = text.get(piece.range).unwrap_or_default();
            loads |= kind(piece, &modes).facts().rows == RowsFrom::File;
            let table = match self.read_statement(piece)? {
                Reading::Insert => match InsertHead::read(piece, &modes) {
                    Ok(head) => head.table,
                    Err(Unread::Refused) => continue,
                    Err(Unread::Unsupported(_)) => {
                        is_ruled = true;
                        continue;
                    }
                },
                Reading::Load(table) | Reading::Unsupported(table, _, _) => table,
                Reading::Prepare(_) | Reading::Execute(_) | Reading::Hidden(_) => {
                    is_ruled = true;
                    continue;
                }
                Reading::Pass(After::Tables { made: new, .. }) => {
                    made.extend(new);
                    continue;
                }
                Reading::Pass(after) => {
                    doubts_texts |= matches!(after, After::Texts { .. });
                    doubts_unseen |= after.makes_unseen();
                    changed |= changes_reading(&after);
                    continue;
                }
            };
            // What hides the table may be gone when its turn has come.
            is_ruled |= self.rule_behind(&table).is_some() || (changed && self.may_match(&table));
        }
        Ok(match (is_ruled, loads) {
            (false, _) => Several::Whole(After::Several {
                made,
                doubts_texts,
                doubts_unseen,
            }),
            (true, false) => Several::OneByOne,
            // The client would number the packets of its file after those of an answer that it never saw.
            (true, true) => Several::Refuse(Unsupported::Several),
        })
    }
}

/// From where on sql_mode makes no difference to where statements end and what they name. Found once for a text, which may hold very
/// many statements.
fn plain_from(text: &[u8]) -> usize {
    memchr::memrchr2(b'"', b'\\', text).map_or(0, |at| at + 1)
}

/// Whether a statement may change how the names and texts behind it are read.
fn changes_reading(after: &After) -> bool {
    match after {
        After::Unknown | After::Database(_) | After::Several { .. } => true,
        After::Texts { unknown, .. } => *unknown,
        // Tables are changed, and nothing else.
        After::Defined
        | After::Nothing
        | After::Tables { .. }
        | After::Returned(_)
        | After::Inserted(_)
        | After::Reset
        | After::Multi(_)
        | After::Prepared(_)
        | After::TextPrepared(_) => false,
    }
}
