//! An INSERT whose keys the server computes: it is asked for them first, and the INSERT goes out with what it has answered. Of keys that are
//! no numbers it is asked which are NULL.

use keywright_rewrite::{ComputedKeys, Insert, InsertHead, KeyExpression, Kind, Unsupported};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::{HEADER_BYTES, Reader, write_packet};
use keywright_wire::capability::EXTENDED_METADATA;
use keywright_wire::packets::{error_of, last_packet, only_row, text_columns};
use keywright_wire::protocol::NULL;

use crate::answer::after::After;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::values::Decided;
use crate::job::{Job, Next};
use crate::server::probe::Probe;
use crate::server::question::ComputedValues;
use crate::step::Step;

/// The server's errors for a number that is out of range, and for what was interrupted.
const OUT_OF_RANGE: u16 = 1690;
const INTERRUPTED: u16 = 1317;

impl Connection {
    /// An INSERT that this keeps from being read: perhaps it can be, with the values of its keys.
    pub(crate) fn insert_computed(
        &mut self,
        (query, kind): (Query<'_>, Kind),
        rule: Option<usize>,
        what: Unsupported,
    ) -> Next {
        let Some(computed) = self.computed_keys(query.text, rule, what, false) else {
            return self.insert_key_of_query((query, kind), rule, what);
        };
        let values = match &self.table_report.computed {
            Some(ComputedValues::Known(values)) => values,
            // The server refuses it by itself, for this or for what it finds before.
            Some(ComputedValues::OutOfRange) if computed.fails_again() => {
                if let Some(step) = self.enter(query.header, rule) {
                    return step.into();
                }
                return self.pass_kind(kind, query, After::Nothing);
            }
            Some(ComputedValues::OutOfRange | ComputedValues::Other) => {
                let what = Unsupported::Key(KeyExpression::Value);
                return self.unsupported(query, rule, what);
            }
            None if self.pending_last_insert_id.is_some() && computed.sees_last_insert_id() => {
                return self.update_last_insert_id(false).into();
            }
            None => {
                let question = computed.question(query.text);
                let probe = Probe::Computed {
                    count: computed.count(),
                    tells: true,
                };
                return self.ask_by_text(&question, probe).into();
            }
        };
        let text = computed.with_values(query.text, values);
        let own = query.with_text(&text);
        self.table_report.nulls_are_known = computed.are_texts();
        let decided = self.decide(own, &text);
        self.table_report.nulls_are_known = false;
        match decided {
            Decided::Keys(rule, plan) => self.insert_of_keys(query, (rule, plan), Some(text)),
            Decided::Pass | Decided::Bound(_) => self.pass_own(own, kind),
            Decided::Unread(rule, what) => self.unsupported(query, rule, what),
            Decided::Query(..) => self.unsupported(query, rule, Unsupported::NotAsPlanned),
            Decided::Not(next) => next,
        }
    }

    /// The keys of a statement that is refused for them, if the server may be asked for them; `is_prepared`: at each execution.
    pub(crate) fn computed_keys(
        &self,
        text: &[u8],
        rule: Option<usize>,
        what: Unsupported,
        is_prepared: bool,
    ) -> Option<ComputedKeys> {
        let rule = rule.filter(|rule| self.rewrites(*rule) && is_computed(what))?;
        self.computed_keys_of(text, rule, is_prepared)
    }

    /// The same for a rule.
    pub(crate) fn computed_keys_of(
        &self,
        text: &[u8],
        rule: usize,
        is_prepared: bool,
    ) -> Option<ComputedKeys> {
        let rule = self.rules.rules().get(rule)?;
        let modes = &self.context.modes;
        let head = InsertHead::read(text, modes).ok()?;
        let insert = Insert::read(head, text, modes).ok()?;
        let key = self.key_column(rule, &insert.head().table);
        insert.computed_keys(text, modes, &key, is_prepared)
    }

    /// Sends a text in place of the client's, and passes its answer on.
    fn pass_own(&mut self, query: Query<'_>, kind: Kind) -> Next {
        let effect = self.effect_of(kind, query.text);
        if self.pending_last_insert_id.is_some() && effect.sees {
            return self.update_last_insert_id(effect.counts).into();
        }
        if let Err(what) = self.write_instead(query, query.text) {
            return self.refuse_unsupported(query.header, None, what).into();
        }
        let after = self.note_effect(effect, After::Nothing);
        self.forget_command();
        self.answer.expect(Shape::Results);
        Job::passing(after).with(Step::Consumed(query.header.total()))
    }

    /// The answer to the question for computed keys.
    pub(crate) fn answer_computed(
        &mut self,
        (count, tells): (usize, bool),
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        // It may come behind the columns.
        let last = last_packet(answer);
        let number = error_of(last);
        if number == Some(OUT_OF_RANGE) {
            self.table_report.computed = Some(ComputedValues::OutOfRange);
            return Job::Idle;
        }
        if let Some(error) = last.get(HEADER_BYTES..)
            && tells
            && number == Some(INTERRUPTED)
        {
            // The client's command may have come in more packets than the question.
            let sequence = self.table_report.answer_sequence.unwrap_or(1);
            write_packet(error, sequence, &mut self.down);
            self.shown_row_count = None;
            self.forget_command();
            return Job::Answered;
        }
        // In an INSERT the server may take for an error what it only warns of here.
        let values = match end {
            Some(End::Ok(done)) if done.warnings == 0 => self.computed_values(count, answer),
            Some(End::Ok(_) | End::Error | End::Prepared { .. }) | None => None,
        };
        let computed = values.map_or(ComputedValues::Other, ComputedValues::Known);
        self.table_report.computed = Some(computed);
        Job::Idle
    }

    fn computed_values(&self, count: usize, answer: &[u8]) -> Option<Vec<Option<i128>>> {
        let is_extended = self.facts.capabilities & EXTENDED_METADATA != 0;
        let types = text_columns(answer, count, is_extended)?;
        let mut row = Reader(only_row(answer, count, self.deprecates_eof())?);
        let mut values = Vec::with_capacity(count);
        for of_type in types {
            if row.0.first() == Some(&NULL) {
                row.u8()?;
                values.push(None);
                continue;
            }
            // Numbers, too, come in the character set of the client's results, which may have two or four bytes for each digit.
            let told = row.text()?.iter().copied();
            let told: Vec<u8> = told
                .filter(|byte| of_type.is_text() || *byte != 0)
                .collect();
            let value = std::str::from_utf8(&told).ok()?;
            let digits = value.strip_prefix('-').unwrap_or(value);
            let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let fits = digits.len() <= of_type.whole_digits();
            values.push(Some(value.parse().ok().filter(|_| is_whole && fits)?));
        }
        Some(values)
    }
}

/// Whether this says that the server would have to compute the key.
fn is_computed(what: Unsupported) -> bool {
    matches!(
        what,
        Unsupported::Key(
            KeyExpression::Call
                | KeyExpression::Variable
                | KeyExpression::Subquery
                | KeyExpression::Operator
        )
    )
}
