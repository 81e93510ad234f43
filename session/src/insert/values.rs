//! An INSERT or REPLACE of rows on a table with a rule: whether it gets keys, and the job that puts them in.

use keywright_core::KeyBatch;
use keywright_rewrite::{
    InPlace, LastInsertId, LastInsertIdUse, Plan, QueryPlan, Unsupported, last_insert_id_use,
};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::{BODY_BYTES_MAX, HEADER_BYTES, replace_packet};
use keywright_wire::protocol::COM_QUERY;

use crate::answer::after::After;
use crate::answer::reply::names_row_count;
use crate::client::decode::Undecoded;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::in_place::{Rewriting, WritesInPlace};
use crate::insert::keys::Awaited;
use crate::insert::leaves_out::Native;
use crate::insert::plan::Planned;
use crate::job::{Job, Next, Turn, Work};
use crate::judge::{Facts, Verdict, decide};
use crate::step::{KeyFailure, StatementOutcome, Step};

/// Shortest text that is rewritten in place, bytes: a shorter one is copied as quickly.
const IN_PLACE_BYTES_MIN: usize = 32 << 10;

/// An INSERT of rows under way, until it goes out.
#[derive(Debug)]
pub(crate) struct Insert {
    rule: usize,
    plan: Plan,
    /// Bytes of attributes before its text, and of the text.
    front: usize,
    text_bytes: usize,
    /// The session's own text of it, in place of the client's.
    own: Option<Vec<u8>>,
    keys: Awaited,
}

/// What is to become of an INSERT.
pub(crate) enum Decided {
    /// It gets keys for its rows.
    Keys(usize, Plan),
    /// Its rows come from a query.
    Query(usize, QueryPlan),
    /// It goes out as it is.
    Pass,
    /// So it does where it is prepared, and its keys are what is bound to `?`: known to the server alone where a text executes it.
    Bound(usize),
    /// It cannot be read: this forbids it.
    Unread(Option<usize>, Unsupported),
    /// Something else.
    Not(Next),
}

impl From<Next> for Decided {
    fn from(next: Next) -> Self {
        Self::Not(next)
    }
}

impl From<Step> for Decided {
    fn from(step: Step) -> Self {
        Self::Not(step.into())
    }
}

impl Connection {
    /// One that goes out with keys. `own`: the session's own text of it.
    pub(crate) fn insert_of_keys(
        &self,
        query: Query<'_>,
        (rule, plan): (usize, Plan),
        own: Option<Vec<u8>>,
    ) -> Next {
        let step = self.keys_step(rule, plan.keys());
        let insert = Insert {
            rule,
            plan,
            front: query.front,
            text_bytes: query.text.len(),
            own,
            keys: Awaited::Asked,
        };
        Job::Work(Box::new(insert)).with(step)
    }

    /// What becomes of an INSERT for which the client sent a text: the INSERT itself, or an EXECUTE of it.
    pub(crate) fn decide(&mut self, query: Query<'_>, insert: &[u8]) -> Decided {
        // What is asked below changes it again, and then the statement comes here once more.
        if let Some(step) = self.restore_row_count(|| names_row_count(insert)) {
            return step.into();
        }
        let (index, plan) = match self.plan(insert) {
            Ok(Planned::Plan(index, plan)) => (index, plan),
            Ok(Planned::Query(index, plan)) => return Decided::Query(index, plan),
            Ok(Planned::Pass | Planned::Missing(_) | Planned::Keyless(..)) => return Decided::Pass,
            Ok(Planned::Ask(question)) => return self.ask(&question).into(),
            Err((rule, what)) => return Decided::Unread(rule, what),
        };
        if let Some(step) = self.enter(query.header, Some(index)) {
            return step.into();
        }
        // A bound key is known to the server alone.
        let facts = Facts::of_rows(&plan, plan.keys() > 0);
        match decide(self.policy(Some(index)), &facts) {
            Verdict::Rewrite => {}
            Verdict::Pass if !plan.key_parameters().is_empty() => return Decided::Bound(index),
            Verdict::Pass => return Decided::Pass,
            Verdict::Observe(what) => return self.observe(query, (index, &plan), what).into(),
            Verdict::Leave(what) => return self.unsupported(query, Some(index), what).into(),
            Verdict::Refuse(reason) => {
                return self.refuse_for(query.header, Some(index), reason).into();
            }
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
        Decided::Keys(index, plan)
    }

    /// Passes on an INSERT whose rule only observes.
    fn observe(
        &mut self,
        query: Query<'_>,
        (index, plan): (usize, &Plan),
        what: Option<StatementOutcome>,
    ) -> Next {
        if let Some(what) = what {
            self.note(Some(index), what);
        }
        let native = Native::of(index, plan);
        if plan.returning() {
            self.note_native(index, native.rows_max);
            let next = self.pass_query(query, After::Nothing);
            self.watch_fence(next, index)
        } else {
            self.pass_native_query(query, native)
        }
    }

    /// Writes the command with its keys to the upstream's output.
    fn write_spliced(
        &mut self,
        query: Query<'_>,
        (plan, keys): (&Plan, &KeyBatch),
    ) -> Result<(), Unsupported> {
        let attributes = query.attributes()?;
        let start = self.up.len();
        self.up
            .reserve(HEADER_BYTES + 1 + plan.spliced_bytes(query.text));
        self.up.extend([0; HEADER_BYTES]);
        self.up.push(COM_QUERY);
        self.up.extend_from_slice(attributes);
        if plan.splice(query.text, keys, &mut self.up).is_err() {
            self.up.truncate(start);
            return Err(Unsupported::NotAsPlanned);
        }
        if !replace_packet(start, query.header.sequence, &mut self.up) {
            return Err(Unsupported::Longer);
        }
        Ok(())
    }

    /// How an INSERT is rewritten where it lies, if it is.
    fn how_in_place(&self, query: Query<'_>, plan: &Plan, keys: &KeyBatch) -> Option<InPlace> {
        // What follows it would have to move as well.
        let is_alone = query.bytes.len() == query.header.total() && query.header.sequence == 0;
        if !self.in_place.may() || !is_alone || query.text.len() < IN_PLACE_BYTES_MIN {
            return None;
        }
        query.attributes().ok()?;
        let how = plan.in_place(query.text, keys)?;
        let total = query.text_at().checked_add(how.new_bytes())?;
        let is_one_packet = total - HEADER_BYTES < BODY_BYTES_MAX;
        // Memory was taken for a copy.
        let fits = how.more_bytes() <= query.text.len();
        (is_one_packet && fits && total >= query.bytes.len()).then_some(how)
    }

    /// Writes it there as soon as the driver lets it.
    fn rewrite_in_place(&mut self, query: Query<'_>, plan: Plan, how: InPlace) {
        let at = query.text_at();
        let rewriting = Rewriting { plan, how, at };
        self.in_place = WritesInPlace::Will(Box::new(rewriting));
    }
}

impl Work for Insert {
    fn turn(&self) -> Turn {
        self.keys.turn()
    }

    fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.keys = Awaited::Here(keys);
    }

    /// The command is still at the front: it goes out with its keys.
    fn on_client(
        mut self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        let Some(keys) = self.keys.take() else {
            return Ok(Job::Work(self).with(Step::Blocked));
        };
        let whole = connection.whole_command(bytes)?;
        let query = whole.query(self.front, self.text_bytes);
        let query = match &self.own {
            Some(text) => query.with_text(text),
            None => query,
        };
        connection.forget_command();
        let (rule, plan) = (self.rule, &self.plan);
        let keys = match connection.rules.rules().get(rule) {
            Some(rule) => keys.and_then(|keys| connection.spread(rule, keys, plan.keys())),
            None => keys,
        };
        let keys = match keys {
            Ok(keys) => keys,
            Err(failure) => {
                let step = connection.refuse_without_keys(query.header, &failure);
                return Ok(step.into());
            }
        };
        let in_place = match self.own {
            Some(_) => None,
            None => connection.how_in_place(query, plan, &keys),
        };
        if in_place.is_none()
            && let Err(what) = connection.write_spliced(query, (plan, &keys))
        {
            let step = connection.refuse_unsupported(query.header, Some(rule), what);
            return Ok(step.into());
        }
        connection.answer.expect(Shape::Results);
        connection.note(Some(rule), StatementOutcome::Rewritten);
        let reply = connection.reply(rule, plan, plan.last_insert_id(), &keys);
        let job = Job::of_reply(reply, plan.returning());
        if let Some(how) = in_place {
            connection.rewrite_in_place(query, self.plan, how);
        }
        Ok(job.with(Step::Consumed(query.header.total())))
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
