//! Texts of several statements: whether one of them is on a rule's table, so that each has to be sent by itself.

use std::ops::Range;

use keywright_rewrite::{
    InsertHead, RowsFrom, TableName, Unread, Unsupported, kind, reads_otherwise_in_swe7, split,
};
use keywright_wire::answer::Shape;

use crate::answer::after::After;
use crate::answer::reply::{Effect, names_row_count};
use crate::client::one_by_one::{OneByOne, plain_from};
use crate::client::query::Query;
use crate::client::reading::Reading;
use crate::connection::Connection;
use crate::job::{Job, Next};
use crate::server::context::Named;
use crate::step::Step;

/// What is to be done with a text of several statements.
enum Several {
    /// No rule is for any of them.
    Whole(After, Effect),
    /// Rules that only observe are for these.
    Observed(Vec<(usize, Range<usize>)>, After),
    OneByOne,
    Refuse(Unsupported),
}

/// What was found among the statements of a text.
#[derive(Default)]
struct Found {
    /// Temporary tables that may be there afterwards.
    made: Vec<Named>,
    doubts_texts: bool,
    doubts_unseen: bool,
    /// A rule is for one of them, or may be.
    is_ruled: bool,
    /// One loads a file.
    loads: bool,
    /// After a USE, SET or CALL the server reads the rest in a state that is not known yet.
    changed: bool,
}

impl Connection {
    /// Several statements in one text: passed on as they are if none of them is for a table with a rule. `None`: it is one.
    pub(crate) fn several(&mut self, query: Query<'_>) -> Option<Next> {
        if !self.context.known {
            return Some(self.ask_context().into());
        }
        if split(query.text, &self.context.modes).len() == 1 {
            return None;
        }
        Some(match self.read_several(query.text) {
            Err(()) => self.ask_context().into(),
            Ok(Several::Whole(after, effect)) => self.pass_several(query, after, effect),
            Ok(Several::Observed(inserts, after)) => self.observe_several(query, &inserts, after),
            Ok(Several::Refuse(what)) => self.unsupported(query, None, what),
            Ok(Several::OneByOne) => match query.attributes() {
                Ok(attributes) => {
                    let sequence = query.header.sequence.wrapping_add(1);
                    let several = OneByOne::new(attributes, query.text, sequence);
                    Job::Several(Box::new(several)).with(Step::Consumed(query.header.total()))
                }
                Err(what) => self.unsupported(query, None, what),
            },
        })
    }

    fn read_several(&mut self, text: &[u8]) -> Result<Several, ()> {
        let modes = self.context.modes;
        let (only_observes, mut observed) = (self.only_observes(), Vec::new());
        let mut found = Found::default();
        let mut effect = Effect::NOTHING;
        let plain_from = plain_from(text);
        for piece in split(text, &modes) {
            let statement = text.get(piece.range.clone()).unwrap_or_default();
            let rows = kind(statement, &modes).facts().rows;
            // The state is asked for when the rest has its turn.
            found.is_ruled |= found.changed
                && (piece.range.start < plain_from
                    || (rows != RowsFrom::Never && reads_otherwise_in_swe7(statement, &modes)));
            found.loads |= rows == RowsFrom::File;
            effect = effect.and(match found.changed {
                // It may be read in another way when it has its turn.
                true => Effect::UNKNOWN,
                false => self.effect_if_any(statement),
            });
            let reading = self.read_statement(statement)?;
            let is_insert = matches!(reading, Reading::Insert);
            let Some(table) = self.target(statement, reading, &mut found) else {
                continue;
            };
            // What hides the table may be gone when its turn has come.
            match self.rule_behind(&table) {
                _ if found.changed && self.may_match(&table) => found.is_ruled = true,
                Some(rule) if only_observes && is_insert => observed.push((rule, piece.range)),
                Some(_) => found.is_ruled = true,
                None => {}
            }
        }
        let after = After::Several {
            made: found.made,
            doubts_texts: found.doubts_texts,
            doubts_unseen: found.doubts_unseen,
        };
        Ok(match (found.is_ruled, found.loads) {
            (false, _) if observed.is_empty() => Several::Whole(after, effect),
            (false, _) => Several::Observed(observed, after),
            (true, false) => Several::OneByOne,
            // The client would number the packets of its file after those of an answer that it never saw.
            (true, true) => Several::Refuse(Unsupported::Several),
        })
    }

    /// Of most statements nothing follows.
    fn effect_if_any(&self, statement: &[u8]) -> Effect {
        let kind = self.statement_kind(statement);
        match self.needs_effect(kind, statement) {
            true => self.effect_of(kind, statement),
            false => Effect::NOTHING,
        }
    }

    /// Passes them on together. What any of them sees of LAST_INSERT_ID() is put right before the first.
    fn pass_several(&mut self, query: Query<'_>, after: After, effect: Effect) -> Next {
        if let Some(step) = self.restore_row_count(|| names_row_count(query.text)) {
            return step.into();
        }
        if let Some(step) = self.update_before(&effect, effect.counts) {
            return step.into();
        }
        let after = self.note_effect(effect, after);
        self.pass(query.header, query.bytes, Shape::Results, after)
    }

    /// The table that a statement puts rows into, or takes keys of; of any other what follows from it is noted.
    fn target(&self, statement: &[u8], reading: Reading, found: &mut Found) -> Option<TableName> {
        match reading {
            Reading::Insert => match InsertHead::read(statement, &self.context.modes) {
                Ok(head) => return Some(head.table),
                Err(Unread::Refused) => {}
                Err(Unread::Unsupported(_)) => found.is_ruled = true,
            },
            Reading::Load(table) | Reading::Unsupported(table, _, _) => return Some(table),
            Reading::NextValue(next) => return Some(next.table),
            Reading::Prepare(_) | Reading::Execute(_) | Reading::Hidden(_) => {
                found.is_ruled = true;
            }
            Reading::Pass(After::Tables { made, .. }) => found.made.extend(made),
            Reading::Pass(after) => {
                found.doubts_texts |= matches!(after, After::Texts { .. });
                found.doubts_unseen |= after.makes_unseen();
                found.changed |= changes_reading(&after);
            }
        }
        None
    }
}

/// Whether a statement may change how the names and texts behind it are read.
fn changes_reading(after: &After) -> bool {
    match after {
        After::Unknown | After::Database(_) | After::Several { .. } => true,
        After::Texts { unknown, .. } => *unknown,
        // Tables are changed, and nothing else.
        After::Defined
        | After::Nothing
        | After::Tables { .. }
        | After::Returned(_)
        | After::Inserted(_)
        | After::Reset
        | After::Multi(_)
        | After::Prepared(_)
        | After::TextPrepared(_) => false,
    }
}
