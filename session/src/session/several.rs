//! Several statements of one text, of which each is sent by itself: one after another is the job at hand, and their answers are joined to
//! the one that the client waits for.

use keywright_wire::bytes::HEADER_BYTES;
use keywright_wire::protocol::ERR;

use crate::client::decode::OutOfOrder;
use crate::client::one_by_one::{OneByOne, announce_more};
use crate::connection::Connection;
use crate::job::{Job, Turn};
use crate::session::Session;
use crate::step::Step;

impl Session {
    /// The client's turn while statements of one text wait: one after another takes the place of its bytes. `None`: there are none, or no
    /// others.
    pub(super) fn next_of_several(&mut self) -> Option<Step> {
        let Job::Several(several) = &mut self.job else {
            return None;
        };
        let step = send(&mut self.connection, &mut self.child, several);
        self.end_several();
        step.unwrap_or_else(|OutOfOrder| Some(self.connection.end_out_of_order()))
    }

    /// The upstream's turn meanwhile. `None`: there are none.
    pub(super) fn answer_of_several(&mut self, bytes: &[u8]) -> Option<Step> {
        let Job::Several(several) = &mut self.job else {
            return None;
        };
        let step = join_answer(&mut self.connection, &mut self.child, several, bytes);
        self.end_several();
        Some(step.unwrap_or_else(|OutOfOrder| self.connection.end_out_of_order()))
    }

    /// Once they are over, what is at hand is the job.
    fn end_several(&mut self) {
        if let Job::Several(several) = &self.job
            && several.is_over
        {
            self.job = match std::mem::replace(&mut self.child, Job::Idle) {
                // Its bytes went with it.
                Job::Answered => Job::Idle,
                child => child,
            };
        }
    }
}

fn send(
    connection: &mut Connection,
    child: &mut Job,
    several: &mut OneByOne,
) -> Result<Option<Step>, OutOfOrder> {
    // They have bytes of their own.
    let in_place = std::mem::take(&mut connection.in_place);
    while !several.is_over {
        if let Some(step) = send_one(connection, child, several)? {
            return Ok(Some(step));
        }
    }
    connection.in_place = in_place;
    Ok(None)
}

/// `None`: the statement at hand has moved on.
fn send_one(
    connection: &mut Connection,
    child: &mut Job,
    several: &mut OneByOne,
) -> Result<Option<Step>, OutOfOrder> {
    if several.waiting().is_empty() && is_answered(child, connection) {
        if !connection.context.known && several.cut < several.plain_from {
            return Ok(Some(connection.ask_context()));
        }
        several.cut_next(&connection.context.modes);
    }
    let before = connection.down.len();
    let waiting = several.waiting();
    let step = match child.on_client(connection, waiting) {
        Step::Forward(count) => {
            let front = waiting.get(..count).unwrap_or_default();
            connection.up.extend_from_slice(front);
            several.consumed += count;
            None
        }
        Step::Consumed(count) => {
            several.consumed += count;
            None
        }
        step @ (Step::Blocked | Step::Keys(_) | Step::Wait | Step::Close) => Some(step),
        // Each of them is a whole COM_QUERY.
        Step::More { .. } | Step::Authenticate(_) | Step::Show(_) => return Err(OutOfOrder),
    };
    if let Job::Several(_) = child {
        // Each of them is one statement.
        return Err(OutOfOrder);
    }
    join(connection, child, several, before);
    Ok(step)
}

fn join_answer(
    connection: &mut Connection,
    child: &mut Job,
    several: &mut OneByOne,
    bytes: &[u8],
) -> Result<Step, OutOfOrder> {
    let before = connection.down.len();
    let step = match child.on_upstream(connection, bytes) {
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
        several.is_over = true;
        return Err(OutOfOrder);
    }
    join(connection, child, several, before);
    Ok(step)
}

/// What was added to the client's output from `before` on belongs to the answer of all statements together.
fn join(connection: &mut Connection, child: &Job, several: &mut OneByOne, before: usize) {
    let is_answered = is_answered(child, connection) && !connection.has_rest();
    let part = connection.down.get_mut(before..).unwrap_or_default();
    let last = several.number(part);
    let Some(last) = last
        .filter(|_| is_answered)
        .and_then(|at| part.get_mut(at..))
    else {
        return;
    };
    let failed = last.get(HEADER_BYTES) == Some(&ERR);
    if !failed && several.has_more() {
        // An OK or EOF packet, since the answer ended with it.
        let _ = announce_more(last);
    } else {
        // The rest of the text is not carried out.
        several.is_over = true;
    }
}

/// Whether the statement at hand was answered, or none was sent yet.
fn is_answered(child: &Job, connection: &Connection) -> bool {
    child.turn() == Turn::Command && connection.probe.is_none()
}
