//! An INSERT of one row whose key is a query that reads tables: it goes out so that it fails if the query comes to no key, and then once
//! more with one.

use keywright_rewrite::{
    Insert, InsertHead, KeyExpression, KeyOfQuery, Kind, Unsupported, is_cut_off, is_no_key,
};
use keywright_wire::answer::{End, Shape};
use keywright_wire::packets::{error_text, last_packet};

use crate::answer::after::After;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::values::Decided;
use crate::job::{Job, Next};
use crate::rules::OnExplicit;
use crate::server::probe::Probe;
use crate::server::question::{ComputedValues, Question};
use crate::step::Step;

/// The server's errors for a temporary table (MySQL), or a locked one, that a statement names more often than it may: the guard has the query
/// more than once.
const NOT_REOPENED: u16 = 1137;
const NOT_LOCKED: u16 = 1100;

impl Connection {
    /// An INSERT that this keeps from being read: perhaps its key is a query.
    pub(crate) fn insert_key_of_query(
        &mut self,
        (query, kind): (Query<'_>, Kind),
        rule: Option<usize>,
        what: Unsupported,
    ) -> Next {
        let Some(found) = self.key_of_query(query.text, rule, what) else {
            return self.unsupported(query, rule, what);
        };
        if self.table_report.computed.is_some() {
            // It came to none.
            let text = found.replaced(query.text, b"NULL");
            return match self.decide(query.with_text(&text), &text) {
                Decided::Keys(rule, plan) => self.insert_of_keys(query, (rule, plan), Some(text)),
                Decided::Unread(rule, what) => self.unsupported(query, rule, what),
                Decided::Not(next) => next,
                Decided::Pass | Decided::Bound(_) | Decided::Query(..) => {
                    self.unsupported(query, rule, what)
                }
            };
        }
        match &self.table_report.result {
            None => {
                return self
                    .ask(&Question::KeyType(found.question(query.text)))
                    .into();
            }
            Some(result) if matches!(result.as_slice(), [only] if only.is_integer) => {}
            Some(_) => return self.unsupported(query, rule, what),
        }
        // What becomes of a statement that brings a key.
        let text = found.replaced(query.text, b"1");
        match self.decide(query.with_text(&text), &text) {
            Decided::Pass => self.send_key_of_query((query, kind), rule, found),
            Decided::Unread(rule, what) => self.unsupported(query, rule, what),
            Decided::Not(next) => next,
            Decided::Keys(..) | Decided::Bound(_) | Decided::Query(..) => {
                self.unsupported(query, rule, what)
            }
        }
    }

    fn key_of_query(
        &self,
        text: &[u8],
        rule: Option<usize>,
        what: Unsupported,
    ) -> Option<KeyOfQuery> {
        let rule = rule.filter(|rule| self.rewrites(*rule))?;
        let rule = self.rules.rules().get(rule)?;
        // Whether it brings a key is seen when it has been carried out, more than once. A view in it may call a function.
        let may_bring = rule.on_explicit == OnExplicit::Keep && rule.is_steady;
        (may_bring && what == Unsupported::Key(KeyExpression::Subquery)).then_some(())?;
        let modes = &self.context.modes;
        let head = InsertHead::read(text, modes).ok()?;
        let insert = Insert::read(head, text, modes).ok()?;
        let key = self.key_column(rule, &insert.head().table);
        insert.key_of_query(text, modes, &key)
    }

    /// Sends it with its guard; the command stays at the front until that was answered.
    fn send_key_of_query(
        &mut self,
        (query, kind): (Query<'_>, Kind),
        rule: Option<usize>,
        found: KeyOfQuery,
    ) -> Next {
        let text = found.guarded(query.text);
        let effect = self.effect_of(kind, &text);
        if self.pending_last_insert_id.is_some() && effect.sees {
            return self.update_last_insert_id(effect.counts).into();
        }
        if let Err(what) = self.write_instead(query, &text) {
            return self.refuse_unsupported(query.header, None, what).into();
        }
        let after = self.note_effect(effect, After::Nothing);
        self.answer.expect(Shape::Results);
        self.probe = Some(Probe::KeyOfQuery(rule, after));
        Step::Blocked.into()
    }

    /// It was answered: that is the client's answer, unless the query came to no key.
    pub(crate) fn answer_key_of_query(
        &mut self,
        (rule, after): (Option<usize>, After),
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        let before = if let After::Inserted(before) = &after {
            *before
        } else {
            None
        };
        self.finish(after, end);
        let error = error_text(last_packet(answer));
        if error.is_some_and(|(number, message)| is_no_key(number, message)) {
            self.last_insert_id = before;
            self.table_report.computed = Some(ComputedValues::Known(vec![None]));
            return Job::Idle;
        }
        if error.is_some_and(|(number, _)| matches!(number, NOT_REOPENED | NOT_LOCKED)) {
            self.last_insert_id = before;
            // It is read again as one that cannot be guarded.
            self.table_report.result = Some(Vec::new());
            return Job::Idle;
        }
        self.note_answered(end);
        match error.is_some_and(|(number, message)| is_cut_off(number, message)) {
            true => self.tell_cut_off(rule, last_packet(answer)),
            false => self.down.extend_from_slice(answer),
        }
        self.forget_command();
        Job::Answered
    }
}
