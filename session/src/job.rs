//! What is under way for the client's command: one job at a time. It takes what the client and the upstream send, and answers with a
//! step. What the connection knows is beside it.

use keywright_core::KeyBatch;
use keywright_wire::answer::{End, Outcome};
use keywright_wire::bytes::{HEADER_BYTES, Header};

use crate::answer::after::After;
use crate::answer::last_insert_id::Reply;
use crate::client::decode::{OutOfOrder, Undecoded};
use crate::client::multi_statement::MultiStatement;
use crate::connection::Connection;
use crate::insert::loading::Load;
use crate::insert::native::NativeInsert;
use crate::insert::select::Select;
use crate::insert::values::Insert;
use crate::prepared::keyed::KeyedExecution;
use crate::prepared::prepare::Preparing;
use crate::prepared::text_prepare::TextExecution;
use crate::step::{KeyFailure, Step};

/// Longest answer that is gathered: to statements of our own, to INSERTs, and to a PREPARE with its 65,535 parameters.
const GATHERED_BYTES_MAX: usize = 16 << 20;

/// What is under way for the client's command.
#[derive(Debug)]
pub(crate) enum Job {
    /// Nothing: the next command is waited for, or the one at the front is looked at.
    Idle,
    /// The command at the front was answered, and goes nowhere.
    Answered,
    /// The upstream's answer is passed on to the client.
    Passing(After),
    /// A rewritten INSERT went out: its answer is put right once it is complete.
    Rewritten(Reply),
    /// An INSERT for which the server makes the keys.
    Native(NativeInsert),
    /// COM_STMT_PREPARE of an INSERT that gets keys.
    Prepare(Box<Preparing>),
    /// An INSERT of rows that waits for its keys.
    Insert(Box<Insert>),
    /// COM_STMT_EXECUTE of one that was prepared, until it has its keys.
    Execution(KeyedExecution),
    /// EXECUTE of one that was prepared out of a text.
    TextExecution(Box<TextExecution>),
    /// An INSERT … SELECT.
    Select(Box<Select>),
    /// A LOAD DATA.
    Load(Box<Load>),
    /// Statements of one text are sent one by one.
    Several(Box<MultiStatement>),
    /// Bytes pass both ways until the end.
    Passthrough,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The client's: its next command is waited for, or the one at the front is looked at.
    Command,
    /// The client's: it sends the file that it was asked for.
    File,
    /// The driver's: it looks for keys.
    Keys,
    /// The upstream's: it answers.
    Upstream,
    /// Nobody's: bytes pass both ways until the end.
    Passthrough,
}

/// What becomes of the command at the front, and what the driver does now. A function that returns a [`Step`] alone begins no job.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) job: Job,
    pub(crate) step: Step,
}

impl From<Step> for Next {
    fn from(step: Step) -> Self {
        Self {
            job: Job::Idle,
            step,
        }
    }
}

impl Job {
    /// The upstream is to answer a rewritten INSERT.
    pub(crate) fn of_reply(reply: Reply, returning: bool) -> Self {
        if returning {
            // A result set: rows pass as they are.
            Self::Passing(After::Returned(reply))
        } else {
            Self::Rewritten(reply)
        }
    }

    /// It begins, and the driver does this.
    pub(crate) fn with(self, step: Step) -> Next {
        Next { job: self, step }
    }

    /// There is no memory any more for a command that came whole before: it is looked at as one that is too long. Its table stays
    /// entered meanwhile.
    pub(crate) fn look_at_beginning(
        self,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        let next = connection.command(bytes)?;
        Ok(match (next.job, next.step) {
            (Self::Idle, Step::Blocked) => self.with(Step::Blocked),
            (job, step) => job.with(step),
        })
    }

    /// Whose turn it is, once nothing is asked of the server.
    #[inline]
    pub(crate) fn turn(&self) -> Turn {
        match self {
            Self::Idle | Self::Answered => Turn::Command,
            Self::Passing(_) | Self::Rewritten(_) | Self::Native(_) | Self::Prepare(_) => {
                Turn::Upstream
            }
            Self::Insert(insert) => insert.turn(),
            Self::Execution(execution) => execution.turn(),
            Self::TextExecution(execution) => execution.turn(),
            Self::Select(select) => select.turn(),
            Self::Load(load) => load.turn(),
            Self::Several(several) => several.child.turn(),
            Self::Passthrough => Turn::Passthrough,
        }
    }

    /// Whether the client is to send a file now.
    pub(crate) fn awaits_file(&self, connection: &Connection) -> bool {
        match self {
            Self::Load(load) => load.turn() == Turn::File,
            Self::Passing(_) => connection.answer.wants_local_file(),
            Self::Several(several) => several.child.awaits_file(connection),
            Self::Idle
            | Self::Answered
            | Self::Rewritten(_)
            | Self::Native(_)
            | Self::Prepare(_)
            | Self::Insert(_)
            | Self::Execution(_)
            | Self::TextExecution(_)
            | Self::Select(_)
            | Self::Passthrough => false,
        }
    }

    /// Whether the command at the front, if there is one, can be looked at anew.
    pub(crate) fn can_begin_anew(&self) -> bool {
        match self {
            // A file may have come for it.
            Self::Load(_) => false,
            Self::Several(several) => several.child.can_begin_anew(),
            Self::Answered => false,
            Self::Idle
            | Self::Passing(_)
            | Self::Rewritten(_)
            | Self::Native(_)
            | Self::Prepare(_)
            | Self::Insert(_)
            | Self::Execution(_)
            | Self::TextExecution(_)
            | Self::Select(_)
            | Self::Passthrough => self.turn() == Turn::Command,
        }
    }

    /// The command at the front is to be looked at anew.
    pub(crate) fn forget(&mut self) {
        if let Self::Several(several) = self {
            several.child.forget();
        } else {
            *self = Self::Idle;
        }
    }

    /// Whether it has more to do on a table that it has entered.
    fn is_half_way(&self) -> bool {
        matches!(
            self,
            Self::TextExecution(_) | Self::Select(_) | Self::Load(_)
        )
    }

    /// Keys, or why there are none; afterwards the client's side is asked again.
    pub(crate) fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        if self.turn() != Turn::Keys {
            return;
        }
        match self {
            Self::Insert(insert) => insert.on_keys(keys),
            Self::Execution(execution) => execution.on_keys(keys),
            Self::TextExecution(execution) => execution.on_keys(keys),
            Self::Select(select) => select.on_keys(keys),
            Self::Load(load) => load.on_keys(keys),
            Self::Several(several) => several.child.on_keys(keys),
            Self::Idle
            | Self::Answered
            | Self::Passing(_)
            | Self::Rewritten(_)
            | Self::Native(_)
            | Self::Prepare(_)
            | Self::Passthrough => {}
        }
    }

    /// The client's turn while statements of one text wait. `None`: there are none, or no others.
    pub(crate) fn on_client_of_several(&mut self, connection: &mut Connection) -> Option<Step> {
        let Self::Several(several) = self else {
            return None;
        };
        let step = several.on_client(connection);
        self.end_several();
        step.unwrap_or_else(|OutOfOrder| Some(connection.end_out_of_order()))
    }

    /// What to do with the client's bytes that were not consumed yet.
    pub(crate) fn on_client(&mut self, connection: &mut Connection, bytes: &[u8]) -> Step {
        if let Some(rest) = connection.rest {
            return connection.pass_on(rest, bytes);
        }
        if connection.probe.is_some() {
            return Step::Blocked;
        }
        let turn = self.turn();
        match turn {
            Turn::Command | Turn::File => {}
            // It may have a file to send.
            Turn::Upstream if matches!(self, Self::Load(_)) => {}
            Turn::Upstream => return self.local_file(connection, bytes),
            Turn::Keys => return Step::Blocked,
            Turn::Passthrough => return connection.flow.pass_client(bytes),
        }
        let is_answered = matches!(self, Self::Answered);
        let next = if let Self::Idle = self {
            connection.command(bytes)
        } else {
            std::mem::replace(self, Self::Idle).go_on(connection, bytes)
        };
        let step = match next {
            Ok(next) => {
                *self = next.job;
                next.step
            }
            Err(undecoded) => {
                *self = Self::Idle;
                match undecoded {
                    Undecoded::More { at_least } => Step::More { at_least },
                    Undecoded::OutOfOrder => connection.end_out_of_order(),
                }
            }
        };
        match step {
            // It may have been refused before it has come whole.
            Step::Consumed(count) if turn == Turn::Command && !is_answered => {
                connection.drop_rest(count, bytes)
            }
            step => step,
        }
    }

    /// The client's bytes while the upstream answers: it may ask for a file.
    fn local_file(&self, connection: &mut Connection, bytes: &[u8]) -> Step {
        if matches!(self, Self::Passing(_)) && connection.answer.wants_local_file() {
            connection.local_file(bytes)
        } else {
            Step::Blocked
        }
    }

    /// The same of one that has begun.
    fn go_on(self, connection: &mut Connection, bytes: &[u8]) -> Result<Next, Undecoded> {
        match self {
            Self::Answered => Ok(match Header::read(bytes) {
                Some(header) => connection.drop_front(header, bytes).into(),
                None => Self::Answered.with(Step::More {
                    at_least: HEADER_BYTES,
                }),
            }),
            Self::Insert(insert) => insert.on_client(connection, bytes),
            Self::Execution(execution) => execution.on_client(connection, bytes),
            Self::TextExecution(execution) => execution.on_client(connection, bytes),
            Self::Select(select) => select.on_client(connection, bytes),
            Self::Load(load) => load.on_client(connection, bytes),
            waiting @ (Self::Idle
            | Self::Passing(_)
            | Self::Rewritten(_)
            | Self::Native(_)
            | Self::Prepare(_)
            | Self::Several(_)
            | Self::Passthrough) => Ok(waiting.with(Step::Blocked)),
        }
    }

    /// What to do with the upstream's bytes that were not consumed yet.
    pub(crate) fn on_upstream(&mut self, connection: &mut Connection, bytes: &[u8]) -> Step {
        match self.take_answer(connection, bytes) {
            Ok(step) => step,
            Err(OutOfOrder) => connection.end_out_of_order(),
        }
    }

    #[inline(always)]
    fn take_answer(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Step, OutOfOrder> {
        if let Self::Several(several) = self {
            let step = several.on_upstream(connection, bytes);
            self.end_several();
            return step;
        }
        if connection.probe.is_some() {
            return self.gather(connection, bytes);
        }
        match self.turn() {
            // Nobody asked: the server says why it is about to close.
            Turn::Command | Turn::File | Turn::Keys => Ok(Step::Forward(bytes.len())),
            Turn::Passthrough => Ok(connection.flow.pass_upstream(bytes)),
            Turn::Upstream if matches!(self, Self::Passing(_)) => {
                self.pass_answer(connection, bytes)
            }
            Turn::Upstream => self.gather(connection, bytes),
        }
    }

    fn end_several(&mut self) {
        if let Self::Several(several) = self
            && several.is_over
        {
            *self = match std::mem::replace(&mut several.child, Self::Idle) {
                // Its bytes went with it.
                Self::Answered => Self::Idle,
                child => child,
            };
        }
    }

    fn pass_answer(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Step, OutOfOrder> {
        let walked = connection.answer.walk(bytes);
        Ok(match walked.outcome {
            Outcome::Going if walked.bytes == 0 => Step::More {
                at_least: wanted(bytes),
            },
            Outcome::Going | Outcome::LocalFile => Step::Forward(walked.bytes),
            Outcome::Ended(end) => {
                connection.note_status(end);
                if let Self::Passing(after) = std::mem::replace(self, Self::Idle) {
                    if connection.may_have_left_out(end) {
                        let answer = bytes.get(..walked.bytes).unwrap_or_default();
                        let (before, last) =
                            answer.split_at_checked(walked.last).unwrap_or_default();
                        connection.down.extend_from_slice(before);
                        *self = connection.ask_what_was_left_out((after, end), last, Self::Idle);
                        return Ok(Step::Consumed(walked.bytes));
                    }
                    connection.finish(after, end);
                    connection.leave();
                }
                Step::Forward(walked.bytes)
            }
            Outcome::Endless => {
                *self = Self::Passthrough;
                Step::Forward(bytes.len())
            }
            Outcome::Malformed => return Err(OutOfOrder),
        })
    }

    /// The upstream's answer has come whole: what is next.
    fn on_reply(self, connection: &mut Connection, end: Option<End>, answer: &[u8]) -> Self {
        match self {
            Self::Rewritten(reply) => {
                connection.answer_insert(&reply, end, answer);
                Self::Idle
            }
            Self::Native(native) => native.on_reply(connection, end, answer),
            Self::Prepare(preparing) => {
                preparing.on_reply(connection, end, answer);
                Self::Idle
            }
            Self::TextExecution(execution) => execution.on_reply(connection, end, answer),
            Self::Select(select) => select.on_reply(connection, end, answer),
            Self::Load(load) => load.on_reply(connection, end, answer),
            waiting @ (Self::Idle
            | Self::Answered
            | Self::Passing(_)
            | Self::Insert(_)
            | Self::Execution(_)
            | Self::Several(_)
            | Self::Passthrough) => waiting,
        }
    }

    fn gather(&mut self, connection: &mut Connection, bytes: &[u8]) -> Result<Step, OutOfOrder> {
        let walked = connection.answer.walk(bytes);
        let now = bytes.get(..walked.bytes).unwrap_or_default();
        Ok(match walked.outcome {
            Outcome::Going if walked.bytes == 0 => Step::More {
                at_least: wanted(bytes),
            },
            Outcome::Going => {
                connection.gathered.extend_from_slice(now);
                if connection.gathered.len() > GATHERED_BYTES_MAX {
                    return Err(OutOfOrder);
                }
                Step::Consumed(walked.bytes)
            }
            Outcome::Ended(end) => {
                connection.note_status(end);
                let mut before = std::mem::take(&mut connection.gathered);
                // Mostly it comes whole.
                let answer = match before.is_empty() {
                    true => now,
                    false => {
                        before.extend_from_slice(now);
                        &before
                    }
                };
                let job = std::mem::replace(self, Self::Idle);
                *self = match connection.probe.take() {
                    Some(probe) => match connection.answer_probe(probe, end, answer) {
                        // The command at the front is looked at again.
                        Self::Idle => job,
                        answered => answered,
                    },
                    None => job.on_reply(connection, end, answer),
                };
                if !self.is_half_way() {
                    connection.leave();
                }
                Step::Consumed(walked.bytes)
            }
            Outcome::LocalFile => {
                let Self::Load(load) = self else {
                    return Err(OutOfOrder);
                };
                load.on_file_wanted(connection, now)?
            }
            Outcome::Endless | Outcome::Malformed => return Err(OutOfOrder),
        })
    }
}

/// How much of the packet at the front there must be.
fn wanted(bytes: &[u8]) -> usize {
    Header::read(bytes).map_or(HEADER_BYTES, |header| header.total().max(bytes.len() + 1))
}
