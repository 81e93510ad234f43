//! A native INSERT on a table that may go over to keys at any moment: the server may refuse it at the fence before this program has
//! heard of that. Then it waits until the store was asked, and goes out again.

use crate::after::After;
use crate::answer::{End, Shape};
use crate::bytes::Header;
use crate::packets::error_of;
use crate::session::{Gather, Session, Turn};
use crate::step::Step;

/// The servers' errors where they cannot make another key.
const AT_FENCE: [u16; 2] = [167, 1467];

/// What the server said to an INSERT that it refused at the fence.
#[derive(Debug)]
pub(crate) struct AtFence {
    /// The version of the rules by which it went out.
    pub(crate) version: u64,
    pub(crate) answer: Vec<u8>,
    /// Nothing has changed since for too long: the client gets the answer.
    pub(crate) is_final: bool,
}

impl Session {
    /// Passes a command on for a rule that gives no keys. `number`: the statement's, where the server has another than the client.
    pub(crate) fn pass_native(
        &mut self,
        header: Header,
        bytes: &[u8],
        (shape, after): (Shape, After),
        rule: usize,
    ) -> Step {
        let whole = bytes.get(..header.total());
        let (Some(whole), true) = (whole, self.rules.is_switched(rule)) else {
            return self.pass(header, bytes, shape, after);
        };
        self.stage = crate::insert::Stage::default();
        self.memory_full = false;
        self.up.extend_from_slice(whole);
        self.answer.expect(shape);
        self.turn = Turn::Gather(Gather::Native(after));
        // It stays at the front until it has its answer.
        Step::Consumed(0)
    }

    /// The server's answer to it.
    pub(crate) fn answer_native(&mut self, after: After, end: Option<End>, answer: &[u8]) {
        if error_of(answer).is_some_and(|error| AT_FENCE.contains(&error)) {
            self.note_at_fence();
            self.at_fence = Some(AtFence {
                version: self.rules.version(),
                answer: answer.to_vec(),
                is_final: false,
            });
            return;
        }
        self.drop_command = true;
        self.down.extend_from_slice(answer);
        self.finish(after, end);
    }

    /// Whether the command at the front was refused at the fence, and waits for other rules.
    pub fn is_at_fence(&self) -> bool {
        self.at_fence.is_some()
    }

    /// What becomes of the command at the front if the server has refused it at the fence; `None`: it was not, or may go out again.
    pub(crate) fn answer_at_fence(&mut self, header: Header) -> Option<Step> {
        let AtFence {
            version,
            answer,
            is_final,
        } = self.at_fence.take()?;
        if version != self.rules.version() {
            return None;
        }
        if !is_final {
            self.at_fence = Some(AtFence {
                version,
                answer,
                is_final,
            });
            return Some(Step::Wait);
        }
        self.stage = crate::insert::Stage::default();
        self.down.extend_from_slice(&answer);
        self.leave();
        Some(Step::Consumed(header.total()))
    }
}
