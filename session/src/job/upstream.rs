//! The upstream's turn: its answer is passed on, or gathered for whoever waits for it.

use keywright_wire::answer::{End, Outcome};
use keywright_wire::bytes::{HEADER_BYTES, Header};

use crate::client::decode::OutOfOrder;
use crate::connection::Connection;
use crate::flow::Flow;
use crate::insert::leaves_out::may_have_left_out;
use crate::job::{Job, Turn};
use crate::step::Step;

/// Longest answer that is gathered: to statements of our own, to INSERTs, and to a PREPARE with its 65,535 parameters.
const GATHERED_BYTES_MAX: usize = 16 << 20;

impl Job {
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
        if connection.probe.is_some() {
            return self.gather(connection, bytes);
        }
        if let Self::Passthrough(flow) = self {
            return Ok(flow.pass_upstream(bytes));
        }
        match self.turn() {
            // Nobody asked: the server says why it is about to close.
            Turn::Command | Turn::File | Turn::Keys => Ok(Step::Forward(bytes.len())),
            Turn::Upstream if matches!(self, Self::Passing { .. }) => {
                self.pass_answer(connection, bytes)
            }
            Turn::Upstream => self.gather(connection, bytes),
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
                connection.note_answered(end);
                if let Self::Passing {
                    after,
                    watches_fence,
                } = std::mem::replace(self, Self::Idle)
                {
                    if watches_fence && may_have_left_out(end) {
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
                *self = Self::Passthrough(Flow::new(connection.facts.status));
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
            Self::Work(work) => work.on_reply(connection, end, answer),
            waiting @ (Self::Idle
            | Self::Answered
            | Self::Passing { .. }
            | Self::Several(_)
            | Self::Passthrough(_)) => waiting,
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
                match connection.probe {
                    Some(_) => connection.note_status(end),
                    None => connection.note_answered(end),
                }
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
                let Self::Work(work) = self else {
                    return Err(OutOfOrder);
                };
                work.on_file_wanted(connection, now)?
            }
            Outcome::Endless | Outcome::Malformed => return Err(OutOfOrder),
        })
    }
}

/// How much of the packet at the front there must be.
fn wanted(bytes: &[u8]) -> usize {
    Header::read(bytes).map_or(HEADER_BYTES, |header| header.total().max(bytes.len() + 1))
}
