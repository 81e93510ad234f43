//! A LOAD DATA under way. The server numbers the rows with LAST_INSERT_ID(), which is set to 0 before each try, and to its proper value
//! before a statement can see it.

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{LoadConstruct, LoadPlan, Unsupported};
use keywright_wire::answer::End;
use keywright_wire::bytes::{HEADER_BYTES, Header, write_packet};
use keywright_wire::packets::last_packet;

use crate::answer::reply::PendingLastInsertId;
use crate::client::decode::{OutOfOrder, Undecoded};
use crate::client::query::{Query, Whole};
use crate::connection::Connection;
use crate::insert::load_try::{LoadTry, has_too_few};
use crate::insert::local_file::{File, Room, Sending, Taken, Taking};
use crate::job::{Job, Next, Turn, Work};
use crate::judge::Reason;
use crate::step::{KeyFailure, Step};

/// Makes the server's LAST_INSERT_ID() what the rewritten statement expects.
pub(crate) const START: &[u8] = b"SET last_insert_id=0";

/// A statement and how far it has come.
#[derive(Debug)]
pub(crate) struct Load {
    attempt: LoadTry,
    /// Its command, and the bytes of attributes before its text.
    command: Header,
    front: usize,
    /// The client's file, which lies behind its command.
    file: Option<File>,
    phase: Phase,
}

/// What is next, or under way.
#[derive(Debug)]
enum Phase {
    /// The server is asked which file it wants.
    Asked,
    /// It has named the file, with this, and was sent an empty one.
    Named(Vec<u8>),
    /// The client sends its file.
    Taking(Taking),
    /// The driver looks for keys.
    Keys,
    /// It has them, or knows why there are none.
    Ready(Result<KeyBatch, KeyFailure>),
    /// LAST_INSERT_ID() is being made 0 for a try with these.
    Starting(KeyBatch),
    /// The try with these can go out.
    Started(KeyBatch),
    /// It went out; this was the first key.
    Sent(u64),
    /// The server gets the client's file.
    Sending(u64, Sending),
    /// The try had too few keys.
    Again,
    /// The server has refused it, with this, before it got the client's file.
    Refused(Vec<u8>),
}

impl Phase {
    fn turn(&self) -> Turn {
        match self {
            Self::Asked
            | Self::Named(_)
            | Self::Starting(_)
            | Self::Sent(_)
            | Self::Sending(..) => Turn::Upstream,
            Self::Taking(_) => Turn::File,
            Self::Keys => Turn::Keys,
            Self::Ready(_) | Self::Started(_) | Self::Again | Self::Refused(_) => Turn::Command,
        }
    }
}

impl Load {
    /// Asks the server for the name of the client's file, or for keys.
    pub(crate) fn begin(
        connection: &mut Connection,
        query: Query<'_>,
        rule: usize,
        plan: LoadPlan,
        before: u64,
    ) -> Next {
        let is_local = plan.is_local();
        let load = Box::new(Self {
            attempt: LoadTry::first(connection, rule, plan, before),
            command: query.header,
            front: query.front,
            file: None,
            phase: Phase::Asked,
        });
        if is_local {
            // It goes out unchanged and gets an empty file, so that the server checks it before the client sends anything.
            connection.send_own(query.text);
            Job::Work(load).with(Step::Blocked)
        } else {
            load.ask_keys(connection)
        }
    }
}

impl Work for Load {
    fn turn(&self) -> Turn {
        self.phase.turn()
    }

    fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.phase = Phase::Ready(keys);
    }

    /// The client's bytes, at whose front the command is still.
    fn on_client(
        mut self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        Ok(match std::mem::replace(&mut self.phase, Phase::Again) {
            Phase::Taking(taking) => self.take_file(connection, bytes, taking),
            Phase::Sending(first, sending) if connection.answer.wants_local_file() => {
                self.send_file(connection, bytes, (first, sending))
            }
            phase => match connection.whole_command(bytes) {
                Ok(whole) => self.go_on(connection, &whole, phase),
                Err(anew) if phase.turn() == Turn::Command => return Err(anew),
                Err(_) => self.at(phase, Step::Blocked),
            },
        })
    }

    /// The upstream asks for the client's file.
    fn on_file_wanted(
        &mut self,
        connection: &mut Connection,
        request: &[u8],
    ) -> Result<Step, OutOfOrder> {
        match self.phase {
            Phase::Asked => {
                // Reports of progress may come before it.
                let named = last_packet(request);
                let sequence = Header::read(named).map_or(1, |header| header.sequence);
                self.phase = Phase::Named(named.to_vec());
                connection.gathered.clear();
                write_packet(&[], sequence.wrapping_add(1), &mut connection.up);
                connection.answer.local_file_sent();
                Ok(Step::Consumed(request.len()))
            }
            Phase::Sent(first) => {
                self.phase = Phase::Sending(first, Sending::Command);
                Ok(Step::Consumed(request.len()))
            }
            Phase::Named(_)
            | Phase::Taking(_)
            | Phase::Keys
            | Phase::Ready(_)
            | Phase::Starting(_)
            | Phase::Started(_)
            | Phase::Sending(..)
            | Phase::Again
            | Phase::Refused(_) => Err(OutOfOrder),
        }
    }

    /// The upstream's answer has come whole.
    fn on_reply(
        mut self: Box<Self>,
        connection: &mut Connection,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        match std::mem::replace(&mut self.phase, Phase::Again) {
            Phase::Asked => self.file_refused(connection, answer),
            Phase::Named(request) if matches!(end, Some(End::Ok(_))) => {
                connection.down.extend(self.numbered(request));
                self.phase = Phase::Taking(Taking::behind(self.command));
                Job::Work(self)
            }
            Phase::Named(_) => self.file_refused(connection, answer),
            Phase::Starting(keys) => {
                self.phase = match end {
                    Some(End::Ok(_)) => Phase::Started(keys),
                    Some(End::Error | End::Prepared { .. }) | None => {
                        Phase::Refused(last_packet(answer).to_vec())
                    }
                };
                let before = PendingLastInsertId::To(self.attempt.before);
                (connection.last_insert_id, connection.pending_last_insert_id) =
                    (None, Some(before));
                Job::Work(self)
            }
            Phase::Sent(first) => self.answered(connection, answer, (first, false)),
            Phase::Sending(first, _) => self.answered(connection, answer, (first, true)),
            phase @ (Phase::Taking(_)
            | Phase::Keys
            | Phase::Ready(_)
            | Phase::Started(_)
            | Phase::Again
            | Phase::Refused(_)) => {
                self.phase = phase;
                Job::Work(self)
            }
        }
    }

    fn takes_file(&self) -> bool {
        true
    }

    fn is_half_way(&self) -> bool {
        true
    }
}

impl Load {
    fn at(mut self: Box<Self>, phase: Phase, step: Step) -> Next {
        self.phase = phase;
        Job::Work(self).with(step)
    }

    /// Command and file as if they were one packet.
    fn whole(&self) -> Header {
        match self.file {
            Some(file) => file.whole(self.command),
            None => self.command,
        }
    }

    fn ask_keys(self: Box<Self>, connection: &Connection) -> Next {
        let step = self.attempt.keys_step(connection);
        self.at(Phase::Keys, step)
    }

    /// The next step of a try.
    fn go_on(
        self: Box<Self>,
        connection: &mut Connection,
        whole: &Whole<'_>,
        phase: Phase,
    ) -> Next {
        match phase {
            Phase::Again => self.ask_keys(connection),
            Phase::Ready(keys) => match keys.and_then(|keys| self.attempt.fits(connection, keys)) {
                Ok(keys) => {
                    connection.send_own(START);
                    self.at(Phase::Starting(keys), Step::Blocked)
                }
                Err(failure) => connection
                    .refuse_without_keys(self.whole(), &failure)
                    .into(),
            },
            Phase::Started(keys) => self.send(connection, whole, &keys),
            Phase::Refused(answer) => self.reply_after_file(connection, answer).into(),
            phase @ (Phase::Asked
            | Phase::Named(_)
            | Phase::Taking(_)
            | Phase::Keys
            | Phase::Starting(_)
            | Phase::Sent(_)
            | Phase::Sending(..)) => self.at(phase, Step::Blocked),
        }
    }

    fn send(
        self: Box<Self>,
        connection: &mut Connection,
        whole: &Whole<'_>,
        keys: &KeyBatch,
    ) -> Next {
        let query = connection.query_of(whole, self.front);
        match self.attempt.send(connection, query, keys) {
            Ok(first) => self.at(Phase::Sent(first), Step::Blocked),
            Err(what) => connection
                .refuse_unsupported(self.whole(), Some(self.attempt.rule), what)
                .into(),
        }
    }

    /// Answers the command, and the client's file if there is one, as the server did.
    fn reply_after_file(&self, connection: &mut Connection, mut answer: Vec<u8>) -> Step {
        let whole = self.whole();
        connection.forget_command();
        if let Some(sequence) = answer.get_mut(HEADER_BYTES - 1) {
            *sequence = whole.sequence.wrapping_add(1);
        }
        connection.down.append(&mut answer);
        Step::Consumed(whole.total())
    }

    /// The client's bytes while it sends its file.
    fn take_file(
        mut self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
        mut taking: Taking,
    ) -> Next {
        let room = Room {
            bytes_max: connection.gather_bytes_max(),
            memory_full: connection.memory_full,
        };
        let taken = taking.take(bytes, room, self.attempt.plan.line_end());
        let (file, rows) = match taken {
            Taken::Step(step) => return self.at(Phase::Taking(taking), step),
            Taken::Whole(file, rows) => (file, rows),
            Taken::Dropped(end) => return self.refuse_file(connection, end).into(),
        };
        (self.file, self.attempt.rows) = (Some(file), rows);
        let rows_max = connection.facts.limits.select_rows_max;
        if rows <= rows_max {
            return self.ask_keys(connection);
        }
        let rule = Some(self.attempt.rule);
        connection
            .refuse_for(self.whole(), rule, Reason::LoadRows { rows_max })
            .into()
    }

    /// The file was too long, and has come to its end.
    fn refuse_file(&self, connection: &mut Connection, end: Header) -> Step {
        if connection.memory_full {
            connection.memory_full = false;
            let message = "keywright: statement buffer limit reached (memory_bytes_max)";
            return connection.refuse(end, Cause::MemoryFull, message);
        }
        let what = Unsupported::LoadWith(LoadConstruct::LongFile);
        connection.refuse_unsupported(end, Some(self.attempt.rule), what)
    }

    /// The client's bytes while the upstream waits for its file.
    fn send_file(
        self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
        (first, sending): (u64, Sending),
    ) -> Next {
        let Some(file) = self.file else {
            return self.at(Phase::Sending(first, sending), Step::Blocked);
        };
        match sending {
            Sending::Command => {
                let step = Step::Consumed(self.command.total());
                self.at(Phase::Sending(first, Sending::File(file.bytes())), step)
            }
            Sending::File(left) => {
                let now = left.min(bytes.len());
                if now == 0 {
                    let step = Step::More { at_least: 1 };
                    return self.at(Phase::Sending(first, sending), step);
                }
                let left = left - now;
                if left == 0 {
                    connection.answer.local_file_sent();
                }
                self.at(
                    Phase::Sending(first, Sending::File(left)),
                    Step::Forward(now),
                )
            }
        }
    }

    /// A packet of the server's as the first of the answer to the command.
    fn numbered(&self, mut packet: Vec<u8>) -> Vec<u8> {
        if let Some(sequence) = packet.get_mut(HEADER_BYTES - 1) {
            *sequence = self.command.sequence.wrapping_add(1);
        }
        packet
    }

    /// An error, which to the client comes at once.
    fn file_refused(&self, connection: &mut Connection, answer: &[u8]) -> Job {
        let answer = self.numbered(last_packet(answer).to_vec());
        connection.down.extend(answer);
        connection.forget_command();
        Job::Answered
    }

    /// A try was answered: with the error for too few keys, or with the answer that the client gets. `is_sent`: the server got the file.
    fn answered(
        mut self: Box<Self>,
        connection: &mut Connection,
        answer: &[u8],
        (first, is_sent): (u64, bool),
    ) -> Job {
        // Reports of progress may come before it.
        let last = last_packet(answer);
        // The lines of a file were counted.
        if has_too_few(last) && self.file.is_none() && self.attempt.grow(connection) {
            return Job::Work(self);
        }
        connection.forget_command();
        if self.file.is_some() && !is_sent {
            // The file is still there, and is answered together with its command.
            self.phase = Phase::Refused(last.to_vec());
            return Job::Work(self);
        }
        // Otherwise it was sent on together with its command.
        let then = match self.file {
            None => Job::Answered,
            Some(_) => Job::Idle,
        };
        self.attempt.tell(connection, answer, first);
        then
    }
}
