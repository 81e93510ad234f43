//! COM_STMT_EXECUTE of an INSERT on a table with a rule: the keys become parameters.

use keywright_core::KeyBatch;
use keywright_rewrite::{LastInsertId, LongDataConstruct, Unsupported};
use keywright_wire::bytes::{Header, Joined, joined};

use crate::client::decode::{self, Undecoded};
use crate::connection::Connection;
use crate::job::{Job, Next};
use crate::judge::{Facts, Verdict, decide, decide_unread};
use crate::prepared::keyed::KeyedExecution;
use crate::prepared::refresh::Refreshed;
use crate::prepared::variant::variant_of;
use crate::step::StatementOutcome;

impl Connection {
    pub(crate) fn execute(&mut self, header: Header, bytes: &[u8]) -> Result<Next, Undecoded> {
        let named = decode::executed(header, bytes, 5)?;
        let id = self.statements.number(named);
        if !self.statements.ours.contains_key(&id) {
            return if self.statements.selects.contains_key(&id) {
                Ok(self.execute_select(header, bytes, id))
            } else if self.statements.next_values.contains_key(&id) {
                self.execute_next_value(header, bytes, id)
            } else {
                self.execute_passed(header, bytes, named)
            };
        }
        match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => self.execute_ours(header, &payload, id),
            Joined::More(at_least) => Err(Undecoded::More { at_least }),
            Joined::TooLong => Ok(self.refuse_long_execution().into()),
        }
    }

    /// An execution, which has come whole, of a statement that was prepared with room for keys.
    #[inline]
    fn execute_ours(&mut self, header: Header, payload: &[u8], id: u32) -> Result<Next, Undecoded> {
        // The modes decide whether a bound 0 asks for a key, and an insert_id of the client's whether any may be had.
        if !self.context.known {
            return Ok(self.ask_context().into());
        }
        let is_passed = match self.refresh(header, id) {
            Refreshed::Ours => false,
            Refreshed::Passed => true,
            Refreshed::Not(step) => return Ok(step.into()),
        };
        let Some(statement) = self.statements.ours.get(&id) else {
            let what = Unsupported::NotAsPlanned;
            return Ok(self.refuse_execution(header, id, what).into());
        };
        let (rule, asks_by_value) = (statement.rule, statement.asks_by_value());
        let counts = statement.counts;
        if let Some(step) = self.enter(header, Some(rule)) {
            return Ok(step.into());
        }
        if let Some(step) = self.restore_row_count(|| counts) {
            return Ok(step.into());
        }
        let rest = payload.get(4..).unwrap_or_default();
        let is_native = !self.rewrites(rule);
        Ok(match is_passed || self.context.insert_id_set || is_native {
            true => self.execute_unkeyed(header, id, rest),
            false => self.execute_keyed((header, id), rest, asks_by_value),
        })
    }

    /// An execution that gets no keys.
    fn execute_unkeyed(&mut self, header: Header, id: u32, rest: &[u8]) -> Next {
        let execution = match self.read_execution(header, id, rest) {
            Ok(execution) => execution,
            Err(step) => return step.into(),
        };
        let statement = self.statements.ours.get(&id);
        if statement.is_some_and(|statement| !statement.long_data.is_empty()) {
            let what = Unsupported::LongData(LongDataConstruct::AsItIs);
            return self.refuse_execution(header, id, what).into();
        }
        self.execute_as_is(header, id, &execution)
    }

    /// One that this forbids keys: it goes out as it is where its rule says so.
    fn leave_execution(
        &mut self,
        (header, id): (Header, u32),
        rest: &[u8],
        what: Unsupported,
    ) -> Next {
        let rule = self.rule_of_statement(id);
        if decide_unread(self.policy(rule), what).is_err() {
            return self.refuse_execution(header, id, what).into();
        }
        let next = self.execute_unkeyed(header, id, rest);
        // Otherwise something comes first, or it was refused all the same.
        if matches!(next.job, Job::Passing { .. }) {
            self.forget_command();
            self.note(rule, StatementOutcome::Passed(what.label()));
            self.note(rule, StatementOutcome::Native(None));
        }
        next
    }

    /// One that gets keys, if it asks for any.
    fn execute_keyed(
        &mut self,
        (header, id): (Header, u32),
        rest: &[u8],
        asks_by_value: bool,
    ) -> Next {
        let computed = match self.computed_params(header, id) {
            Ok(computed) => computed,
            Err(step) => return step.into(),
        };
        // Often values matter only once there are keys beside them.
        let read = asks_by_value.then(|| self.read_keyed(header, id, rest, &computed));
        let execution = match read.transpose() {
            Ok(execution) => execution,
            Err(step) => return step.into(),
        };
        let Some(statement) = self.statements.ours.get(&id) else {
            return self
                .refuse_execution(header, id, Unsupported::NotAsPlanned)
                .into();
        };
        let params = execution.as_ref().map_or(&[][..], |read| &read.params);
        let wanted = match self.wanted(statement, params) {
            Ok(wanted) => wanted,
            Err(what) => return self.leave_execution((header, id), rest, what),
        };
        let (index, asking) = (statement.rule, wanted.asking.first().copied());
        let last_insert_id = self.last_insert_id_of_execution(statement, wanted.keys);
        let variant = variant_of(statement, asking, last_insert_id);
        let sees = statement.plan.last_insert_id() == LastInsertId::Literal;
        let facts = Facts {
            own_keys: wanted.explicit.into(),
            keys: wanted.keys.into(),
            ..Facts::of_rows(&statement.plan, wanted.keys > 0)
        };
        match decide(self.policy(Some(index)), &facts) {
            Verdict::Rewrite | Verdict::Pass | Verdict::Observe(_) => {}
            Verdict::Leave(what) => return self.leave_execution((header, id), rest, what),
            Verdict::Refuse(reason) => {
                return self.refuse_for(header, Some(index), reason).into();
            }
        }
        if self.needs_last_insert_id(sees, last_insert_id, wanted.keys) {
            return self.update_last_insert_id(statement.counts).into();
        }
        let spacing = self.spacing_of(index);
        let made = statement
            .variants
            .iter()
            .position(|made| made.is_for(variant, spacing));
        if made != Some(0) && !statement.long_data.is_empty() {
            // What was sent as long data went to the first text.
            let what = Unsupported::LongData(LongDataConstruct::AnotherText);
            return self.refuse_execution(header, id, what).into();
        }
        if made.is_none() {
            return self.prepare_variant(header, id, variant).into();
        }
        match &execution {
            Some(execution) if wanted.keys == 0 => {
                let none = KeyBatch::Listed(Vec::new());
                self.execute_with(header, id, execution, Ok(none))
            }
            Some(_) | None => KeyedExecution::begin(self, (id, false), index, wanted.keys),
        }
    }
}
