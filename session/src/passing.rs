//! Bytes that are passed on untouched.

use crate::after::After;
use crate::answer::Shape;
use crate::bytes::{HEADER_BYTES, Header};
use crate::insert::Stage;
use crate::session::{Session, Turn};
use crate::step::Step;
use keywright_core::Cause;

/// A command's rest that is still to be passed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passing {
    left: usize,
    continues: bool,
}

impl Session {
    /// Passes a command on untouched; its answer has this shape and changes that.
    pub(crate) fn pass(
        &mut self,
        header: Header,
        bytes: &[u8],
        shape: Shape,
        after: After,
    ) -> Step {
        self.stage = Stage::default();
        self.memory_full = false;
        self.answer.expect(shape);
        if shape != Shape::None {
            self.turn = Turn::Answer(after);
        }
        self.passing = Some(Passing {
            left: header.total(),
            continues: header.continues(),
        });
        self.pass_on(bytes)
    }

    /// Passes the rest of a command on whose first `front` bytes were replaced; it has no answer.
    pub(crate) fn pass_rest(&mut self, header: Header, front: usize) -> Step {
        let left = header.total().saturating_sub(front);
        self.passing = (left > 0 || header.continues()).then_some(Passing {
            left,
            continues: header.continues(),
        });
        Step::Consumed(front)
    }

    /// Whether a command's rest is still to be passed on.
    pub(crate) fn is_passing(&self) -> bool {
        self.passing.is_some()
    }

    /// From now on nothing is understood, unless that must not be.
    pub(crate) fn go_blind(&mut self, header: Header) -> Step {
        if self.is_attentive {
            let message = "replication and cloning: not where the proxy must see who logs in";
            return self.refuse(header, Cause::StatementUnsupported, message);
        }
        self.turn = Turn::Blind;
        Step::Consumed(0)
    }

    pub(crate) fn pass_on(&mut self, bytes: &[u8]) -> Step {
        let Some(passing) = self.passing else {
            return Step::Consumed(0);
        };
        if passing.left == 0 {
            let Some(header) = Header::read(bytes) else {
                return Step::More {
                    at_least: HEADER_BYTES,
                };
            };
            self.passing = Some(Passing {
                left: header.total(),
                continues: header.continues(),
            });
            return self.pass_on(bytes);
        }
        let now = passing.left.min(bytes.len());
        if now == 0 {
            return Step::More { at_least: 1 };
        }
        let left = passing.left - now;
        self.passing = (left > 0 || passing.continues).then_some(Passing { left, ..passing });
        Step::Forward(now)
    }

    /// The client's file for LOAD DATA LOCAL, up to its empty packet.
    pub(crate) fn local_file(&mut self, bytes: &[u8]) -> Step {
        let Some(header) = Header::read(bytes) else {
            return Step::More {
                at_least: HEADER_BYTES,
            };
        };
        if header.len == 0 {
            self.answer.local_file_sent();
            return Step::Forward(HEADER_BYTES);
        }
        self.passing = Some(Passing {
            left: header.total(),
            continues: header.continues(),
        });
        self.pass_on(bytes)
    }
}
