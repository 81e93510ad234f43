//! What is under way for the client's command: one job at a time. It takes what the client and the upstream send, and answers with a
//! step. What the connection knows is beside it.

mod client;
mod upstream;

use std::fmt;

use keywright_core::KeyBatch;
use keywright_wire::answer::End;

use crate::answer::after::After;
use crate::answer::reply::Reply;
use crate::client::decode::{OutOfOrder, Undecoded};
use crate::client::one_by_one::OneByOne;
use crate::connection::Connection;
use crate::flow::{Flow, Rest};
use crate::step::{KeyFailure, Step};

/// What is under way for the client's command.
#[derive(Debug)]
pub(crate) enum Job {
    /// Nothing: the next command is waited for, or the one at the front is looked at.
    Idle,
    /// The command at the front was answered, and goes nowhere.
    Answered,
    /// The upstream's answer is passed on to the client. It changes that.
    Passing {
        after: After,
        /// The server may leave out rows of the command at the fence.
        watches_fence: bool,
    },
    /// A rewritten INSERT went out: its answer is put right once it is complete.
    Rewritten(Reply),
    /// A statement that takes several steps.
    Work(Box<dyn Work>),
    /// Several statements of one text, each of which is sent by itself: the one at hand has a job of its own, beside this.
    Several(Box<OneByOne>),
    /// Bytes pass both ways until the end, and this is how they flow.
    Passthrough(Flow),
}

/// A statement that takes several steps between the client and the upstream. How far it has come is one enum, in the file of its kind.
pub(crate) trait Work: fmt::Debug + Send {
    /// Whose turn it is.
    fn turn(&self) -> Turn;

    /// Keys, or why there are none, where it is the driver's turn.
    fn on_keys(&mut self, _keys: Result<KeyBatch, KeyFailure>) {}

    /// The client's bytes that were not consumed yet.
    fn on_client(
        self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded>;

    /// The upstream's answer has come whole: what is next.
    fn on_reply(
        self: Box<Self>,
        connection: &mut Connection,
        end: Option<End>,
        answer: &[u8],
    ) -> Job;

    /// The upstream asks for the client's file with this, and with reports of progress before it.
    fn on_file_wanted(
        &mut self,
        _connection: &mut Connection,
        _request: &[u8],
    ) -> Result<Step, OutOfOrder> {
        Err(OutOfOrder)
    }

    /// Whether it takes a file of the client's, which lies behind its command.
    fn takes_file(&self) -> bool {
        false
    }

    /// Whether the server has refused it at the fence, and it waits for other rules.
    fn is_at_fence(&self) -> bool {
        false
    }

    /// It has waited for them for too long; false: it did not.
    fn on_waited(&mut self) -> bool {
        false
    }

    /// Whether it has more to do on a table that it has entered, once the upstream has answered.
    fn is_half_way(&self) -> bool {
        false
    }
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
    /// The upstream's: it answers. Of a passthrough nobody knows.
    Upstream,
}

/// What becomes of the command at the front, and what the driver does now. A function that returns a [`Step`] alone begins no job.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) job: Job,
    pub(crate) step: Step,
}

impl Next {
    /// Where it is passed on, its warnings are looked at before its client hears that it succeeded.
    pub(crate) fn watching_fence(mut self) -> Self {
        if let Job::Passing { watches_fence, .. } = &mut self.job {
            *watches_fence = true;
        }
        self
    }
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
            Self::passing(After::Returned(reply))
        } else {
            Self::Rewritten(reply)
        }
    }

    /// The upstream's answer is passed on.
    pub(crate) fn passing(after: After) -> Self {
        Self::Passing {
            after,
            watches_fence: false,
        }
    }

    /// It begins, and the driver does this.
    pub(crate) fn with(self, step: Step) -> Next {
        Next { job: self, step }
    }

    /// Whose turn it is, once nothing is asked of the server.
    #[inline]
    pub(crate) fn turn(&self) -> Turn {
        match self {
            Self::Idle | Self::Answered => Turn::Command,
            Self::Passing { .. } | Self::Rewritten(_) | Self::Several(_) | Self::Passthrough(_) => {
                Turn::Upstream
            }
            Self::Work(work) => work.turn(),
        }
    }

    /// The statement that takes several steps, if that is what is under way.
    fn work(&self) -> Option<&dyn Work> {
        match self {
            Self::Work(work) => Some(&**work),
            Self::Idle
            | Self::Answered
            | Self::Passing { .. }
            | Self::Rewritten(_)
            | Self::Several(_)
            | Self::Passthrough(_) => None,
        }
    }

    /// What a passthrough is doing; nobody asks of others, which are read.
    pub(crate) fn rest(&self) -> Rest {
        match self {
            Self::Passthrough(flow) => flow.rest(),
            Self::Idle
            | Self::Answered
            | Self::Passing { .. }
            | Self::Rewritten(_)
            | Self::Work(_)
            | Self::Several(_) => Rest::Busy,
        }
    }

    /// Whether the client is to send a file now.
    pub(crate) fn awaits_file(&self, connection: &Connection) -> bool {
        match self {
            Self::Work(work) => work.turn() == Turn::File,
            Self::Passing { .. } => connection.answer.wants_local_file(),
            Self::Idle
            | Self::Answered
            | Self::Rewritten(_)
            | Self::Several(_)
            | Self::Passthrough(_) => false,
        }
    }

    /// Whether the command at the front, if there is one, can be looked at anew.
    pub(crate) fn can_begin_anew(&self) -> bool {
        match self {
            Self::Idle => true,
            // A file may have come for it.
            Self::Work(work) => !work.takes_file() && work.turn() == Turn::Command,
            Self::Answered
            | Self::Passing { .. }
            | Self::Rewritten(_)
            | Self::Several(_)
            | Self::Passthrough(_) => false,
        }
    }

    /// Other rules are in force. The command at the front is to be looked at anew, unless it waits for them and sees what comes of that.
    pub(crate) fn go_by_other_rules(&mut self) {
        if !self.is_at_fence() {
            *self = Self::Idle;
        }
    }

    /// Whether the command at the front was refused at the fence, and waits for other rules.
    pub(crate) fn is_at_fence(&self) -> bool {
        self.work().is_some_and(|work| work.is_at_fence())
    }

    /// The command at the front has waited for other rules for too long; false: it is not a job yet.
    pub(crate) fn on_waited(&mut self) -> bool {
        match self {
            Self::Work(work) => work.on_waited(),
            Self::Idle
            | Self::Answered
            | Self::Passing { .. }
            | Self::Rewritten(_)
            | Self::Several(_)
            | Self::Passthrough(_) => false,
        }
    }

    /// Whether it has more to do on a table that it has entered.
    fn is_half_way(&self) -> bool {
        self.work().is_some_and(|work| work.is_half_way())
    }

    /// Keys, or why there are none; afterwards the client's side is asked again.
    pub(crate) fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        if let Self::Work(work) = self
            && work.turn() == Turn::Keys
        {
            work.on_keys(keys);
        }
    }
}
