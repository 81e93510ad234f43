//! A native INSERT on a table that may be switched on at any moment. The server may refuse it at the fence before this program has
//! heard of the switch. Then the INSERT waits until the store was asked, and goes out again.
//!
//! MariaDB does not refuse an INSERT IGNORE at the fence: it leaves out the rows without a key, with a warning. So the session asks
//! for the warnings, which does not clear them.

use keywright_core::Cause;
use keywright_rewrite::Flavour;
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::Header;
use keywright_wire::packets::{error_of, last_packet, single_ok};

use crate::answer::after::After;
use crate::answer::errors::write_error;
use crate::client::decode::Undecoded;
use crate::connection::Connection;
use crate::insert::at_fence::{Answered, AtFence};
use crate::insert::leaves_out::{LeavesOut, Native};
use crate::insert::warnings::{Listed, Warnings};
use crate::job::{Job, Next, Turn, Work};
use crate::step::Step;

/// The servers' errors where they cannot make another key.
const AT_FENCE: [u16; 2] = [167, 1467];
/// The first of them, as a list of warnings shows it.
const AT_FENCE_WARNING: &[u8] = b"167";

/// What a client is told of whose statement nobody keeps.
const LEFT_OUT_OF_PASSED: &str = "keywright: the server had no key for rows of this statement and left them out, as the table went over to keys or \
    its column is full; those with one are in";

/// A native INSERT under way.
#[derive(Debug)]
pub(crate) enum NativeInsert {
    /// The server was sent it, and it is still at the front.
    Sent {
        header: Header,
        /// What its answer changes.
        after: After,
        leaves_out: LeavesOut,
    },
    /// It was answered, and its warnings are asked for.
    Warnings(Header, Answered, Warnings),
    /// The same of one that was passed on, or cannot go out again.
    PassedWarnings(PassedOn, Warnings),
}

/// The end of the answer to a command that was passed on, until its client gets it.
#[derive(Debug)]
pub(crate) struct PassedOn {
    after: After,
    end: Option<End>,
    last: Vec<u8>,
    /// What ROW_COUNT() is to the client.
    row_count: Option<u64>,
    /// What is next.
    then: Job,
}

impl Work for NativeInsert {
    fn turn(&self) -> Turn {
        Turn::Upstream
    }

    fn on_client(
        self: Box<Self>,
        _connection: &mut Connection,
        _bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        Ok(Job::Work(self).with(Step::Blocked))
    }

    /// The upstream's answer has come whole.
    fn on_reply(
        self: Box<Self>,
        connection: &mut Connection,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        match *self {
            Self::Sent {
                header,
                after,
                leaves_out,
            } => connection.answer_native((header, after, leaves_out), end, answer),
            Self::Warnings(header, answered, asked) => {
                connection.answer_warnings(header, answered, asked, answer)
            }
            Self::PassedWarnings(passed, asked) => {
                connection.answer_left_out(passed, asked, answer)
            }
        }
    }
}

impl Connection {
    /// Passes a command on for a rule that gives no keys. `number`: the statement's, where the server has another than the client.
    pub(crate) fn pass_native(
        &mut self,
        header: Header,
        bytes: &[u8],
        (shape, after): (Shape, After),
        native: Native,
    ) -> Next {
        let Native {
            rule, leaves_out, ..
        } = native;
        self.note_native(rule, native.rows_max);
        let whole = bytes.get(..header.total());
        let (Some(whole), true) = (whole, self.rules.is_switched(rule)) else {
            let next = self.pass(header, bytes, shape, after);
            return self.watch_fence(next, rule);
        };
        self.forget_command();
        self.memory_full = false;
        self.up.extend_from_slice(whole);
        self.answer.expect(shape);
        // It stays at the front until it has its answer.
        let sent = NativeInsert::Sent {
            header,
            after,
            leaves_out,
        };
        Job::Work(Box::new(sent)).with(Step::Blocked)
    }

    /// Keeps the end of the answer back, and asks.
    pub(crate) fn ask_what_was_left_out(
        &mut self,
        (after, end): (After, Option<End>),
        last: &[u8],
        then: Job,
    ) -> Job {
        let passed = PassedOn {
            after,
            end,
            last: last.to_vec(),
            row_count: self.shown_row_count,
            then,
        };
        self.ask_passed_warnings(passed, Warnings::of(end))
    }

    fn ask_passed_warnings(&mut self, passed: PassedOn, asked: Warnings) -> Job {
        self.send_own(asked.question().as_bytes());
        Job::Work(Box::new(NativeInsert::PassedWarnings(passed, asked)))
    }

    /// The list of its warnings, or a part.
    fn answer_left_out(&mut self, passed: PassedOn, asked: Warnings, answer: &[u8]) -> Job {
        let is_left_out = match asked.listed(answer, AT_FENCE_WARNING) {
            Listed::Next(next) => return self.ask_passed_warnings(passed, next),
            // Whether rows were left out nobody knows, where it is no list.
            Listed::Has | Listed::NoList => true,
            Listed::HasNot => false,
        };
        let PassedOn {
            after,
            end,
            last,
            row_count,
            then,
        } = passed;
        self.shown_row_count = row_count;
        self.finish(after, end);
        if !is_left_out {
            self.down.extend_from_slice(&last);
            return then;
        }
        self.note_at_fence();
        let sequence = Header::read(&last).map_or(1, |header| header.sequence);
        let (cause, message) = (Cause::StoreUnavailable, LEFT_OUT_OF_PASSED);
        write_error(cause, message, sequence, &mut self.down);
        then
    }

    /// The server's answer to it.
    fn answer_native(
        &mut self,
        (header, after, leaves_out): (Header, After, LeavesOut),
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        let answered = |after, affected_rows| Answered {
            after,
            end,
            answer: answer.to_vec(),
            affected_rows,
        };
        if error_of(answer).is_some_and(|error| AT_FENCE.contains(&error)) {
            return AtFence::begin(self, header, answered(after, 0));
        }
        let is_maria = self.facts.server.flavour == Flavour::MariaDb;
        let warns = single_ok(answer).filter(|(_, _, done)| done.warnings > 0 && is_maria);
        if warns.is_some() && leaves_out == LeavesOut::OfPreparedQuery {
            return self.ask_what_was_left_out((after, end), last_packet(answer), Job::Answered);
        }
        if let Some((_, _, done)) = warns
            && leaves_out.may_be_so(done.affected_rows)
        {
            let answered = answered(after, done.affected_rows);
            return self.ask_warnings(header, answered, Warnings::of(end));
        }
        self.down.extend_from_slice(answer);
        self.finish(after, end);
        Job::Answered
    }

    fn ask_warnings(&mut self, header: Header, answered: Answered, asked: Warnings) -> Job {
        self.send_own(asked.question().as_bytes());
        Job::Work(Box::new(NativeInsert::Warnings(header, answered, asked)))
    }

    /// The list of its warnings, or a part.
    fn answer_warnings(
        &mut self,
        header: Header,
        answered: Answered,
        asked: Warnings,
        answer: &[u8],
    ) -> Job {
        // The client has not asked for them.
        self.shown_row_count = Some(answered.affected_rows);
        match asked.listed(answer, AT_FENCE_WARNING) {
            // Whether rows were left out is not known.
            Listed::NoList => {
                self.finish(answered.after, answered.end);
                self.fail_own(answer)
            }
            Listed::Next(next) => self.ask_warnings(header, answered, next),
            Listed::Has => AtFence::begin(self, header, answered),
            Listed::HasNot => {
                self.down.extend_from_slice(&answered.answer);
                self.finish(answered.after, answered.end);
                Job::Answered
            }
        }
    }
}
