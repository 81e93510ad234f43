//! An INSERT … SELECT whose rows bring their keys out of a column: it goes out with a guard, and fails for a row that brings none.

use keywright_rewrite::{Kind, QueryPlan, SelectConstruct, Unsupported, is_cut_off, is_no_key};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::{HEADER_BYTES, Header, replace_packet};
use keywright_wire::packets::{error_text, last_packet};
use keywright_wire::protocol::COM_QUERY;

use crate::answer::after::After;
use crate::client::decode::Undecoded;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::job::{Job, Next, Turn, Work};
use crate::judge::Reason;
use crate::step::Step;

/// The upstream is to answer it.
#[derive(Debug)]
pub(crate) struct Guarded {
    rule: usize,
    /// What its answer changes.
    after: After,
}

impl Guarded {
    /// A command that was sent to the upstream with a guard, in place of one whose answer would be passed on.
    pub(crate) fn in_place_of(next: Next, rule: usize) -> Next {
        match next.job {
            Job::Passing { after, .. } => Job::Work(Box::new(Self { rule, after })).with(next.step),
            job @ (Job::Idle
            | Job::Answered
            | Job::Rewritten(_)
            | Job::Work(_)
            | Job::Several(_)
            | Job::Passthrough(_)) => job.with(next.step),
        }
    }
}

impl Connection {
    /// Sends the text with its guard.
    pub(crate) fn guarded_query(
        &mut self,
        (kind, query): (Kind, Query<'_>),
        rule: usize,
        plan: &QueryPlan,
    ) -> Next {
        let effect = self.effect_of(kind, query.text);
        if self.pending_last_insert_id.is_some() && effect.sees {
            return self.update_last_insert_id(effect.counts).into();
        }
        if let Err(what) = self.write_guarded(query, plan) {
            return self
                .refuse_unsupported(query.header, Some(rule), what)
                .into();
        }
        let after = self.note_effect(effect, After::Nothing);
        self.forget_command();
        self.answer.expect(Shape::Results);
        Job::Work(Box::new(Guarded { rule, after })).with(Step::Consumed(query.header.total()))
    }

    fn write_guarded(&mut self, query: Query<'_>, plan: &QueryPlan) -> Result<(), Unsupported> {
        let text = plan
            .guarded(query.text)
            .map_err(|_| Unsupported::NotAsPlanned)?;
        self.write_instead(query, &text)
    }

    /// Writes a text to the upstream's output in place of the client's.
    pub(crate) fn write_instead(
        &mut self,
        query: Query<'_>,
        text: &[u8],
    ) -> Result<(), Unsupported> {
        let attributes = query.attributes()?;
        let start = self.up.len();
        self.up.extend([0; HEADER_BYTES]);
        self.up.push(COM_QUERY);
        self.up.extend_from_slice(attributes);
        self.up.extend_from_slice(text);
        if !replace_packet(start, query.header.sequence, &mut self.up) {
            return Err(Unsupported::Longer);
        }
        Ok(())
    }
}

impl Work for Guarded {
    fn turn(&self) -> Turn {
        Turn::Upstream
    }

    fn on_client(
        self: Box<Self>,
        _connection: &mut Connection,
        _bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        Ok(Job::Work(self).with(Step::Blocked))
    }

    fn on_reply(
        self: Box<Self>,
        connection: &mut Connection,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        let last = last_packet(answer);
        match error_text(last) {
            Some((number, message)) if is_no_key(number, message) => {
                let sequence = Header::read(last).map_or(1, |header| header.sequence);
                let what = Unsupported::SelectWith(SelectConstruct::KeyMissing);
                connection.tell_refused(Some(self.rule), Reason::Unsupported(what), sequence);
            }
            Some((number, message)) if is_cut_off(number, message) => {
                connection.tell_cut_off(Some(self.rule), last);
            }
            Some(_) | None => connection.down.extend_from_slice(answer),
        }
        connection.finish(self.after, end);
        Job::Idle
    }
}
