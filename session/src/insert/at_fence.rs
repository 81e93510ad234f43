//! A native INSERT that the server has refused at the fence: it waits for other rules, and goes out again by those.

use keywright_core::Cause;
use keywright_wire::answer::End;
use keywright_wire::bytes::Header;

use crate::answer::after::After;
use crate::client::decode::Undecoded;
use crate::connection::Connection;
use crate::job::{Job, Next, Turn, Work};
use crate::step::Step;

/// What a client is told of whose rows some are in, so that it cannot go out again.
const LEFT_OUT: &str = "keywright: the rules changed while the server had no key, and rows of this statement without one were left out; those with one are in";

/// The answer to a native INSERT, until the client gets it.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) after: After,
    pub(crate) end: Option<End>,
    pub(crate) answer: Vec<u8>,
    /// How many rows it changed.
    pub(crate) affected_rows: u64,
}

/// One that was refused, and is still at the front.
#[derive(Debug)]
pub(crate) struct AtFence {
    header: Header,
    /// The version of the rules by which it went out.
    version: u64,
    answered: Answered,
    /// No other rules came in time: the client gets the answer.
    is_final: bool,
}

impl AtFence {
    /// It waits from now on.
    pub(crate) fn begin(connection: &Connection, header: Header, answered: Answered) -> Job {
        connection.note_at_fence();
        Job::Work(Box::new(Self {
            header,
            version: connection.rules.version(),
            answered,
            is_final: false,
        }))
    }

    /// The client gets an answer.
    fn answer(self, connection: &mut Connection, is_newer: bool) -> Step {
        let Answered {
            after, end, answer, ..
        } = self.answered;
        connection.finish(after, end);
        if is_newer {
            // A second try could read the rows of the first.
            return connection.refuse(self.header, Cause::StoreUnavailable, LEFT_OUT);
        }
        connection.forget_command();
        connection.down.extend_from_slice(&answer);
        connection.leave();
        Step::Consumed(self.header.total())
    }
}

impl Work for AtFence {
    fn turn(&self) -> Turn {
        Turn::Command
    }

    fn is_at_fence(&self) -> bool {
        true
    }

    fn on_waited(&mut self) -> bool {
        self.is_final = true;
        true
    }

    fn on_client(
        self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        let is_newer = self.version != connection.rules.version();
        if is_newer && self.answered.affected_rows == 0 {
            // It may go out again.
            return connection.command(bytes);
        }
        if !is_newer && !self.is_final {
            return Ok(Job::Work(self).with(Step::Wait));
        }
        Ok(self.answer(connection, is_newer).into())
    }

    fn on_reply(
        self: Box<Self>,
        _connection: &mut Connection,
        _end: Option<End>,
        _answer: &[u8],
    ) -> Job {
        Job::Work(self)
    }
}
