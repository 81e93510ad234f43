//! Bytes that are passed on untouched.

use keywright_core::Cause;
use keywright_rewrite::Flavour;
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{HEADER_BYTES, Header};

use crate::answer::after::After;
use crate::connection::{CommandRest, Connection};
use crate::job::{Job, Next};
use crate::step::Step;

impl Connection {
    /// Passes a command on untouched; its answer has this shape and changes that.
    pub(crate) fn pass(
        &mut self,
        header: Header,
        bytes: &[u8],
        shape: Shape,
        after: After,
    ) -> Next {
        let job = self.expect(shape, after);
        job.with(self.pass_on(CommandRest::new(header), bytes))
    }

    /// Passes a command on that begins with a statement's number, which the server may know by another.
    pub(crate) fn pass_named(
        &mut self,
        header: Header,
        bytes: &[u8],
        named: u32,
        shape: Shape,
        after: After,
    ) -> Next {
        const FRONT_BYTES: usize = HEADER_BYTES + 1 + 4;
        let is_same = match self.facts.server.flavour {
            Flavour::MariaDb => self.statements.upstream(named) == named,
            Flavour::MySql => true,
        };
        let before = bytes.get(..=HEADER_BYTES);
        let (Some(before), false) = (before, is_same) else {
            return self.pass(header, bytes, shape, after);
        };
        let number = self.statements.upstream(named);
        self.up.extend_from_slice(before);
        self.up.extend(number.to_le_bytes());
        let job = self.expect(shape, after);
        job.with(self.pass_rest(header, FRONT_BYTES))
    }

    fn expect(&mut self, shape: Shape, after: After) -> Job {
        self.forget_command();
        self.memory_full = false;
        self.answer.expect(shape);
        match shape == Shape::None {
            true => Job::Idle,
            false => Job::passing(after),
        }
    }

    /// Passes the rest of a command on whose first `front` bytes were replaced; it has no answer.
    pub(crate) fn pass_rest(&mut self, header: Header, front: usize) -> Step {
        let left = header.total().saturating_sub(front);
        self.rest = (left > 0 || header.continues()).then_some(CommandRest {
            left,
            ..CommandRest::new(header)
        });
        Step::Consumed(front)
    }

    /// Whether a command's rest is still to be passed on.
    pub(crate) fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// Passes on a command after which the session understands nothing more, such as a replica's, unless the session must see a
    /// COM_CHANGE_USER.
    pub(crate) fn stream(&mut self, header: Header, bytes: &[u8]) -> Next {
        if self.must_see_change_user {
            let message = "replication and cloning: not where keywright must see who logs in";
            return self
                .refuse(header, Cause::StatementUnsupported, message)
                .into();
        }
        self.pass(header, bytes, Shape::Stream, After::Nothing)
    }

    /// Passes on, or drops, what there is of a command.
    pub(crate) fn pass_on(&mut self, rest: CommandRest, bytes: &[u8]) -> Step {
        self.rest = Some(rest);
        if rest.left == 0 {
            let Some(header) = Header::read(bytes) else {
                return Step::More {
                    at_least: HEADER_BYTES,
                };
            };
            let is_refused = rest.is_refused;
            let next = CommandRest::new(header);
            return self.pass_on(CommandRest { is_refused, ..next }, bytes);
        }
        let now = rest.left.min(bytes.len());
        if now == 0 {
            return Step::More { at_least: 1 };
        }
        let left = rest.left - now;
        self.rest = (left > 0 || rest.continues).then_some(CommandRest { left, ..rest });
        match rest.is_refused {
            true => Step::Consumed(now),
            false => Step::Forward(now),
        }
    }

    /// A command at the front was refused, perhaps before it has come whole: what of it is still to come is no command.
    pub(crate) fn drop_rest(&mut self, refused: usize, bytes: &[u8]) -> Step {
        let Some(header) = Header::read(bytes) else {
            return Step::Consumed(refused);
        };
        let is_whole = refused <= bytes.len() && (refused != header.total() || !header.continues());
        if is_whole {
            return Step::Consumed(refused);
        }
        self.drop_front(header, bytes)
    }

    /// The command at the front goes nowhere.
    pub(crate) fn drop_front(&mut self, header: Header, bytes: &[u8]) -> Step {
        let rest = CommandRest {
            is_refused: true,
            ..CommandRest::new(header)
        };
        self.pass_on(rest, bytes)
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
        self.pass_on(CommandRest::new(header), bytes)
    }
}
