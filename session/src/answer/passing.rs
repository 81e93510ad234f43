//! Bytes that are passed on untouched.

use std::sync::Arc;

use crate::answer::after::After;
use crate::connection::Connection;
use crate::insert::native::Native;
use crate::job::{Job, Next};
use crate::prepared::observed::Execution;
use crate::prepared::statements::{ByMode, Changes, Keyless};
use crate::server::question::KeyThere;
use crate::step::Step;
use keywright_core::Cause;
use keywright_rewrite::{Flavour, Unsupported};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{HEADER_BYTES, Header};
use keywright_wire::protocol::COM_STMT_BULK_EXECUTE;

/// A command's rest that is still to be passed on, or dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passing {
    left: usize,
    continues: bool,
    /// The command was answered already: its rest goes nowhere.
    is_refused: bool,
}

impl Passing {
    fn new(header: Header) -> Self {
        Self {
            left: header.total(),
            continues: header.continues(),
            is_refused: false,
        }
    }
}

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
        self.passing = Some(Passing::new(header));
        job.with(self.pass_on(bytes))
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
            false => Job::Passing(after),
        }
    }

    /// An execution of the statement that the client names so.
    pub(crate) fn execute_passed(&mut self, header: Header, bytes: &[u8], named: u32) -> Next {
        const FLAGS: usize = HEADER_BYTES + 1 + 4;
        let flags = match bytes.get(FLAGS) {
            Some(flags) => *flags,
            // The server will say that it is malformed.
            None if header.total() <= FLAGS => 0,
            None => {
                return Step::More {
                    at_least: FLAGS + 1,
                }
                .into();
            }
        };
        let id = self.statements.number(named);
        let passed = self.statements.passed.get(&id).cloned().unwrap_or_default();
        if let Some(observed) = &passed.observed {
            match self.execute_observed(header, bytes, id, observed) {
                Execution::Native => {}
                Execution::Ours => return self.command(bytes),
                Execution::Not(step) => return step.into(),
            }
        } else if self.keeps_locks()
            && let Some(step) = self.enter_all(header, &passed.named)
        {
            return step.into();
        }
        if let Some(keyless) = &passed.keyless
            && let Some(step) = self.check_keyless(header, keyless)
        {
            return step.into();
        }
        if let Some(by_mode) = passed.by_mode
            && let Some(step) = self.check_mode(header, by_mode)
        {
            return step.into();
        }
        if let Some(by_order) = &passed.by_order
            && let Some(step) = self.check_order(header, id, by_order)
        {
            return step.into();
        }
        if passed.effect.sees && self.pending_last_insert_id.is_some() {
            return self.update_last_insert_id(passed.effect.counts).into();
        }
        let after = Self::after_execution(&passed.change);
        let after = self.note_effect(passed.effect, after);
        if let Some(observed) = &passed.observed
            && let Some(native) = observed.native()
            && self.statements.upstream(named) == named
            && flags == 0
        {
            let shape = Shape::of_execution(flags);
            let is_bulk = bytes.get(HEADER_BYTES) == Some(&COM_STMT_BULK_EXECUTE);
            let native = Native {
                rows_max: native.rows_max.filter(|_| !is_bulk),
                ..native
            };
            return self.pass_native(header, bytes, (shape, after), native);
        }
        if let Some(observed) = &passed.observed {
            self.note_native(observed.rule, None);
            self.watch_fence(observed.rule);
        }
        self.pass_named(header, bytes, named, Shape::of_execution(flags), after)
    }

    /// What comes before the execution of an INSERT that was prepared to get no keys; `None`: nothing.
    fn check_keyless(&mut self, header: Header, keyless: &Keyless) -> Option<Step> {
        let rules = Arc::clone(&self.rules);
        let (table, index) = (&keyless.table, keyless.rule);
        let rule = rules.rules().get(index)?;
        if !self.context.known {
            return Some(self.ask_context());
        }
        // The client has set insert_id for it.
        if self.context.insert_id_set {
            return None;
        }
        match self.rule_now(table) {
            Ok(Some(_)) => {}
            // A temporary table hides it.
            Ok(None) => return None,
            Err(question) => return Some(self.ask(&question)),
        }
        let there = match self.key_there(table, index, rule) {
            Ok(there) => there,
            Err(question) => return Some(self.ask(&question)),
        };
        let what = match there {
            KeyThere::No => return None,
            KeyThere::Yes | KeyThere::Narrow | KeyThere::Untold if keyless.is_hidden => {
                Unsupported::Hidden
            }
            KeyThere::Untold => return None,
            KeyThere::Yes | KeyThere::Narrow => Unsupported::KeyLater,
        };
        let is_refused = self.refuses(Some(index));
        is_refused.then(|| self.refuse_unsupported(header, Some(index), what))
    }

    /// The same of one whose keys were its own because of what sql_mode was.
    fn check_mode(&mut self, header: Header, by_mode: ByMode) -> Option<Step> {
        if !self.context.known {
            return Some(self.ask_context());
        }
        let rule = Some(by_mode.rule);
        let is_refused = by_mode.sql_mode != self.sql_mode() && self.refuses(rule);
        is_refused.then(|| self.refuse_unsupported(header, rule, Unsupported::ZeroChanged))
    }

    /// What an execution of a statement that is passed on changes.
    fn after_execution(change: &Changes) -> After {
        match change {
            Changes::Nothing => After::Nothing,
            Changes::Unknown => After::Unknown,
            Changes::Defined => After::Defined,
            Changes::Anything => After::ANYTHING,
            Changes::Tables { dropped, made } => After::Tables {
                dropped: dropped.clone(),
                made: made.clone(),
            },
        }
    }

    /// Passes the rest of a command on whose first `front` bytes were replaced; it has no answer.
    pub(crate) fn pass_rest(&mut self, header: Header, front: usize) -> Step {
        let left = header.total().saturating_sub(front);
        self.passing = (left > 0 || header.continues()).then_some(Passing {
            left,
            ..Passing::new(header)
        });
        Step::Consumed(front)
    }

    /// Whether a command's rest is still to be passed on.
    pub(crate) fn is_passing(&self) -> bool {
        self.passing.is_some()
    }

    /// Passes on a command after which the session understands nothing more, such as a replica's, unless the session must see a
    /// COM_CHANGE_USER.
    pub(crate) fn stream(&mut self, header: Header, bytes: &[u8]) -> Next {
        if self.must_see_change_user {
            let message = "replication and cloning: not where the proxy must see who logs in";
            return self
                .refuse(header, Cause::StatementUnsupported, message)
                .into();
        }
        self.pass(header, bytes, Shape::Stream, After::Nothing)
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
                is_refused: passing.is_refused,
                ..Passing::new(header)
            });
            return self.pass_on(bytes);
        }
        let now = passing.left.min(bytes.len());
        if now == 0 {
            return Step::More { at_least: 1 };
        }
        let left = passing.left - now;
        self.passing = (left > 0 || passing.continues).then_some(Passing { left, ..passing });
        match passing.is_refused {
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
        self.passing = Some(Passing {
            is_refused: true,
            ..Passing::new(header)
        });
        self.pass_on(bytes)
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
        self.passing = Some(Passing::new(header));
        self.pass_on(bytes)
    }
}
