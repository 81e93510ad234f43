//! The client's turn: its next command begins a job, or the job at hand goes on with what it sends.

use keywright_wire::bytes::{HEADER_BYTES, Header};

use crate::client::decode::Undecoded;
use crate::connection::Connection;
use crate::job::{Job, Next, Turn};
use crate::step::Step;

impl Job {
    /// What to do with the client's bytes that were not consumed yet.
    pub(crate) fn on_client(&mut self, connection: &mut Connection, bytes: &[u8]) -> Step {
        if let Some(rest) = connection.rest {
            return connection.pass_on(rest, bytes);
        }
        if connection.probe.is_some() {
            return Step::Blocked;
        }
        if let Self::Passthrough(flow) = self {
            return flow.pass_client(bytes);
        }
        let turn = self.turn();
        match turn {
            Turn::Command | Turn::File => {}
            // It may have a file to send.
            Turn::Upstream if matches!(self, Self::Work(work) if work.takes_file()) => {}
            Turn::Upstream => return self.local_file(connection, bytes),
            Turn::Keys => return Step::Blocked,
        }
        let next = if let Self::Idle = self {
            connection.table_report.awaited = None;
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
                    Undecoded::Anew => return self.on_client(connection, bytes),
                }
            }
        };
        match step {
            // What was asked may be answered with an error that is the client's.
            Step::Blocked if turn == Turn::Command && connection.probe.is_some() => {
                connection.table_report.answer_sequence = answer_sequence(bytes);
                Step::Blocked
            }
            // It may have been refused before it has come whole.
            Step::Consumed(count) if turn == Turn::Command => connection.drop_rest(count, bytes),
            step => step,
        }
    }

    /// The client's bytes while the upstream answers: it may ask for a file.
    fn local_file(&self, connection: &mut Connection, bytes: &[u8]) -> Step {
        if matches!(self, Self::Passing { .. }) && connection.answer.wants_local_file() {
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
            Self::Work(work) => work.on_client(connection, bytes),
            waiting @ (Self::Idle
            | Self::Passing { .. }
            | Self::Rewritten(_)
            | Self::Several(_)
            | Self::Passthrough(_)) => Ok(waiting.with(Step::Blocked)),
        }
    }
}

/// The number of the first packet of the answer to the command at the front.
fn answer_sequence(bytes: &[u8]) -> Option<u8> {
    let mut rest = bytes;
    let mut header = Header::read(rest)?;
    while header.continues()
        && let Some(after) = rest.get(header.total()..)
        && let Some(next) = Header::read(after)
    {
        (rest, header) = (after, next);
    }
    Some(header.sequence.wrapping_add(1))
}
