//! Executions of statements that are passed on: what is to be known before, and what follows.

use std::sync::Arc;

use keywright_rewrite::Unsupported;
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{HEADER_BYTES, Header};
use keywright_wire::protocol::COM_STMT_BULK_EXECUTE;

use crate::answer::after::After;
use crate::client::decode::Undecoded;
use crate::connection::Connection;
use crate::insert::guarded::Guarded;
use crate::insert::leaves_out::Native;
use crate::job::Next;
use crate::judge::decide_unread;
use crate::prepared::observed::Execution;
use crate::prepared::passed_statement::{ByMode, Changes, Keyless, Passed};
use crate::server::question::KeyThere;
use crate::step::Step;

/// The flags of an execution: how its answer is to be given.
fn flags_of(header: Header, bytes: &[u8]) -> Result<u8, Undecoded> {
    const FLAGS: usize = HEADER_BYTES + 1 + 4;
    match bytes.get(FLAGS) {
        Some(flags) => Ok(*flags),
        // The server will say that it is malformed.
        None if header.total() <= FLAGS => Ok(0),
        None => Err(Undecoded::More {
            at_least: FLAGS + 1,
        }),
    }
}

impl Connection {
    /// An execution of the statement that the client names so.
    pub(crate) fn execute_passed(
        &mut self,
        header: Header,
        bytes: &[u8],
        named: u32,
    ) -> Result<Next, Undecoded> {
        let flags = flags_of(header, bytes)?;
        let id = self.statements.number(named);
        let passed = self.statements.passed.get(&id).cloned().unwrap_or_default();
        if let Some(observed) = &passed.observed {
            match self.execute_observed(header, bytes, id, observed) {
                Execution::Native => {}
                Execution::Ours => return Err(Undecoded::Anew),
                Execution::Not(step) => return Ok(step.into()),
            }
        } else if self.keeps_locks()
            && let Some(step) = self.enter_all(header, &passed.named)
        {
            return Ok(step.into());
        }
        let mut watched = match self.check_passed(header, id, &passed) {
            Ok(watched) => watched,
            Err(step) => return Ok(step.into()),
        };
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
            return Ok(self.pass_native(header, bytes, (shape, after), native));
        }
        if let Some(observed) = &passed.observed {
            self.note_native(observed.rule, None);
            watched = Some(observed.rule);
        }
        let next = self.pass_named(header, bytes, named, Shape::of_execution(flags), after);
        Ok(match (passed.guarded, watched) {
            (Some(rule), _) => Guarded::in_place_of(next, rule),
            (None, Some(rule)) => self.watch_fence(next, rule),
            (None, None) => next,
        })
    }

    /// What comes before an execution is sent; `Ok`: nothing, with the rule at whose fence its answer is watched. `Err`: it waits for
    /// the server's answer, or was refused.
    fn check_passed(
        &mut self,
        header: Header,
        id: u32,
        passed: &Passed,
    ) -> Result<Option<usize>, Step> {
        if let Some(keyless) = &passed.keyless
            && let Some(step) = self.check_keyless(header, keyless)
        {
            return Err(step);
        }
        if let Some(by_mode) = passed.by_mode
            && let Some(step) = self.check_mode(header, by_mode)
        {
            return Err(step);
        }
        let watched = match &passed.by_order {
            Some(by_order) => self.check_order(header, id, by_order)?,
            None => None,
        };
        if let Some(step) = self.restore_row_count(|| passed.effect.counts) {
            return Err(step);
        }
        match self.update_before(&passed.effect, passed.effect.counts) {
            Some(step) => Err(step),
            None => Ok(watched),
        }
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
            KeyThere::Yes | KeyThere::Narrow | KeyThere::Text | KeyThere::Untold
                if keyless.is_hidden =>
            {
                Unsupported::Hidden
            }
            KeyThere::Text | KeyThere::Untold => return None,
            KeyThere::Yes | KeyThere::Narrow => Unsupported::KeyLater,
        };
        self.refuse_unread(header, index, what)
    }

    /// The same of one whose keys were its own because of what sql_mode was.
    fn check_mode(&mut self, header: Header, by_mode: ByMode) -> Option<Step> {
        if !self.context.known {
            return Some(self.ask_context());
        }
        match by_mode.sql_mode == self.sql_mode() {
            true => None,
            false => self.refuse_unread(header, by_mode.rule, Unsupported::ZeroChanged),
        }
    }

    /// Refuses what this keeps from getting keys, unless it may go out without.
    fn refuse_unread(&mut self, header: Header, rule: usize, what: Unsupported) -> Option<Step> {
        let reason = decide_unread(self.policy(Some(rule)), what).err()?;
        Some(self.refuse_for(header, Some(rule), reason))
    }

    /// What an execution of a statement that is passed on changes.
    fn after_execution(change: &Changes) -> After {
        match change {
            Changes::Nothing => After::Nothing,
            Changes::Database(name) => After::Database(name.clone()),
            Changes::Unknown => After::Unknown,
            Changes::Defined => After::Defined,
            Changes::Anything => After::ANYTHING,
            Changes::Tables { dropped, made } => After::Tables {
                dropped: dropped.clone(),
                made: made.clone(),
            },
        }
    }
}
