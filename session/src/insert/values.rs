//! An INSERT or REPLACE on a table with a rule, sent as text: plan, keys, splice, and the answer that the client gets.

use std::sync::Arc;

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{LastInsertId, LastInsertIdUse, Plan, Unsupported, last_insert_id_use};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{HEADER_BYTES, Header, make_packet};
use keywright_wire::packets::error_of;
use keywright_wire::protocol::COM_QUERY;

use crate::answer::after::After;
use crate::answer::errors::write_error;
use crate::answer::last_insert_id::names_row_count;
use crate::connection::Connection;
use crate::insert::native::Native;
use crate::insert::plan::Planned;
use crate::insert::refuse::observed;
use crate::job::{Job, Next};
use crate::prepared::text_prepare::Reprepared;
use crate::rules::{Mode, OnAmbiguousId, OnExplicit, Rule};
use crate::server::question::Told;
use crate::step::{KeyFailure, KeyRequest, StatementOutcome, Step};

/// What is known of the command at the front of the client's bytes, which may be read several times before it goes out.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    /// Its plan, once there is one.
    pub(crate) plan: Option<(usize, Plan)>,
    /// The keys for it.
    pub(crate) keys: Option<Result<KeyBatch, KeyFailure>>,
    /// EXECUTE of a statement that was prepared by PREPARE: it was prepared with these keys.
    pub(crate) reprepared: Option<Reprepared>,
    /// The plan is for a text that the server is to prepare, and not for the command's own.
    pub(crate) is_for_prepared: bool,
}

impl Stage {
    /// Whether the command is an INSERT that has got its keys, or knows that there are none.
    pub(crate) fn is_planned_insert(&self) -> bool {
        self.plan.is_some() && self.keys.is_some() && !self.is_for_prepared
    }

    /// Whether the command has more to do on its table, without entering it again.
    pub(crate) fn is_half_way(&self) -> bool {
        self.keys.is_some() || self.reprepared.is_some()
    }
}

impl Connection {
    /// The command at the front is done with.
    pub(crate) fn forget_command(&mut self) {
        self.take_stage();
    }

    /// The same, of which something is still needed.
    pub(crate) fn take_stage(&mut self) -> Stage {
        self.told = Told::default();
        std::mem::take(&mut self.stage)
    }

    pub(crate) fn insert(&mut self, header: Header, bytes: &[u8], text: &[u8]) -> Next {
        if let Some(keys) = self.stage.keys.take() {
            return self.splice(header, bytes, text, keys);
        }
        self.decide(header, bytes, text, text)
    }

    /// Asks for the keys of an INSERT, or passes on or refuses the text that the client sent for it.
    pub(crate) fn decide(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        insert: &[u8],
    ) -> Next {
        let (index, plan) = match self.plan(insert) {
            Ok(Planned::Plan(index, plan)) => (index, plan),
            Ok(Planned::Query(index, plan)) if std::ptr::eq(text, insert) => {
                return self.select(header, bytes, text, index, plan);
            }
            Ok(Planned::Query(index, _)) => {
                return self.unsupported(header, bytes, Some(index), Unsupported::Select);
            }
            Ok(Planned::Pass | Planned::Keyless(..)) => {
                return self.pass_query(header, bytes, text, After::Nothing);
            }
            Ok(Planned::Ask(question)) => return self.ask(&question).into(),
            Err((rule, what)) => return self.unsupported(header, bytes, rule, what),
        };
        let rules = Arc::clone(&self.rules);
        let Some(rule) = rules.rules().get(index) else {
            return self.pass_query(header, bytes, text, After::Nothing);
        };
        if let Some(step) = self.enter(header, Some(index)) {
            return step.into();
        }
        if rule.mode == Mode::Observe {
            if let Some(what) = observed(rule, &plan) {
                self.note(Some(index), what);
            }
            return match plan.returning() {
                true => {
                    self.note_native(index, Native::of(index, &plan).rows_max);
                    self.watch_fence(index);
                    self.pass_query(header, bytes, text, After::Nothing)
                }
                false => self.pass_native_query(header, bytes, text, Native::of(index, &plan)),
            };
        }
        if plan.explicit() && rule.on_explicit == OnExplicit::Refuse {
            return self.refuse_explicit(header, index, rule).into();
        }
        if plan.keys() == 0 {
            return self.pass_query(header, bytes, text, After::Nothing);
        }
        if has_ambiguous_id(&plan) && rule.on_ambiguous_id == OnAmbiguousId::Refuse {
            return self.refuse_ambiguous_id(header, index).into();
        }
        // This reads the whole text, so it is asked last.
        let sees = self.pending_last_insert_id.is_some()
            && last_insert_id_use(insert, &self.context.modes) == LastInsertIdUse::Sees;
        let count = plan.keys();
        let last_insert_id = self.last_insert_id_of(&plan, count);
        if self.needs_last_insert_id(sees, last_insert_id, count) {
            return self
                .update_last_insert_id(sees && names_row_count(insert))
                .into();
        }
        let plan = match last_insert_id {
            LastInsertId::Literal => plan.unwrapped(),
            LastInsertId::Wrapped | LastInsertId::None => plan,
        };
        self.stage.plan = Some((index, plan));
        self.stage.is_for_prepared = !std::ptr::eq(text, insert);
        self.ask_keys(index, count)
    }

    /// Keys for so many rows, spaced as the session's auto_increment_increment says.
    pub(crate) fn ask_keys(&mut self, rule: usize, rows: u64) -> Next {
        Job::Keys.with(self.keys_step(rule, rows))
    }

    /// The same, where the job is another.
    pub(crate) fn keys_step(&self, rule: usize, rows: u64) -> Step {
        let count = rows
            .saturating_sub(1)
            .saturating_mul(self.context.increment)
            .saturating_add(1);
        Step::Keys(KeyRequest {
            rule: self.rules.configured(rule),
            count,
            contiguous: true,
        })
    }

    /// The spacing of one statement's keys, if it is known: a rule may leave room for others' keys between its own.
    pub(crate) fn spacing_of(&self, rule: usize) -> u64 {
        let apart = self.apart.get(&rule).copied().unwrap_or(1);
        common_multiple(apart, self.context.increment)
    }

    /// The keys as they are spread over the rows, checked against the rule.
    pub(crate) fn spread(
        &self,
        rule: &Rule,
        keys: KeyBatch,
        rows: u64,
    ) -> Result<KeyBatch, KeyFailure> {
        let keys = match keys {
            KeyBatch::Numbers { first, spacing, .. } => KeyBatch::Numbers {
                first,
                spacing: common_multiple(spacing, self.context.increment),
                count: rows,
            },
            KeyBatch::Listed(mut numbers) => {
                numbers.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
                KeyBatch::Listed(numbers)
            }
            KeyBatch::Texts(mut texts) => {
                texts.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
                KeyBatch::Texts(texts)
            }
            KeyBatch::Bytes(mut bytes) => {
                bytes.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
                KeyBatch::Bytes(bytes)
            }
        };
        self.in_bits(rule, keys, rows)
    }

    /// The keys of so many rows, if they are not too large for the rule.
    pub(crate) fn in_bits(
        &self,
        rule: &Rule,
        keys: KeyBatch,
        rows: u64,
    ) -> Result<KeyBatch, KeyFailure> {
        let last = keys.number(rows.saturating_sub(1));
        let too_large = last.is_some_and(|last| last.checked_shr(rule.bits_max).unwrap_or(0) > 0);
        if too_large {
            return Err(KeyFailure {
                cause: Cause::TagExhausted,
                message: format!(
                    "keywright: key {} has more than {} bits",
                    last.unwrap_or(0),
                    rule.bits_max
                ),
            });
        }
        Ok(keys)
    }

    fn splice(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Next {
        let stage = self.take_stage();
        let Some((index, plan)) = stage.plan else {
            return self.malformed().into();
        };
        let rules = Arc::clone(&self.rules);
        let Some(rule) = rules.rules().get(index) else {
            return self.malformed().into();
        };
        let keys = keys.and_then(|keys| self.spread(rule, keys, plan.keys()));
        let keys = match keys {
            Ok(keys) => keys,
            Err(failure) => return self.refuse(header, failure.cause, &failure.message).into(),
        };
        let in_place = self.in_place(header, bytes, text, &plan, &keys);
        if in_place.is_none()
            && let Err(what) = self.write_spliced(header, bytes, text, (&plan, &keys))
        {
            return self.refuse_unsupported(header, Some(index), what).into();
        }
        self.answer.expect(Shape::Results);
        self.note(Some(index), StatementOutcome::Rewritten);
        let reply = self.reply(&plan, plan.last_insert_id(), &keys);
        let job = Job::of_reply(reply, plan.returning());
        if let Some(how) = in_place {
            self.rewrite_in_place(plan, how);
        }
        job.with(Step::Consumed(header.total()))
    }

    /// Writes the command with its keys to the upstream's output.
    fn write_spliced(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        (plan, keys): (&Plan, &KeyBatch),
    ) -> Result<(), Unsupported> {
        let attributes = self.attributes(bytes)?;
        let start = self.up.len();
        self.up.reserve(HEADER_BYTES + 1 + plan.spliced_bytes(text));
        self.up.extend([0; HEADER_BYTES]);
        self.up.push(COM_QUERY);
        self.up.extend_from_slice(attributes);
        if plan.splice(text, keys, &mut self.up).is_err() {
            self.up.truncate(start);
            return Err(Unsupported::Unknown("the statement's head"));
        }
        if make_packet(start, &mut self.up) != header.sequence {
            self.up.truncate(start);
            return Err(Unsupported::Longer);
        }
        Ok(())
    }

    /// The server refused a question of ours, so it would refuse the client's statement too. The client gets that error as its answer.
    pub(crate) fn fail_own(&mut self, answer: &[u8]) -> Job {
        if error_of(answer).is_some() {
            self.down.extend_from_slice(answer);
        } else {
            let message = "keywright cannot read the state of the session";
            write_error(Cause::StatementUnsupported, message, 1, &mut self.down);
        }
        self.forget_command();
        self.context.known = false;
        Job::Answered
    }
}

/// The spacing of keys where the source's is `apart` and a driver expects `increment`. If the source's does not divide the driver's,
/// no spacing suits the driver, and the source's is taken.
fn common_multiple(apart: u64, increment: u64) -> u64 {
    let (apart, increment) = (apart.max(1), increment.max(1));
    let (mut divisor, mut rest) = (apart, increment);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (apart / divisor).saturating_mul(increment)
}

/// Whether it may stay unknown which rows go in, and so which id to report.
pub(crate) fn has_ambiguous_id(plan: &Plan) -> bool {
    plan.rows() > 1
        && plan.last_insert_id() != LastInsertId::None
        && (plan.ignore() || plan.on_duplicate())
}
