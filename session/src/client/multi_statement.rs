//! Texts of several statements: whether one of them is on a rule's table, so that each has to be sent by itself.

use keywright_rewrite::{InsertHead, RowsFrom, Unread, Unsupported, kind, split};

use crate::answer::after::After;
use crate::client::one_by_one::{OneByOne, plain_from};
use crate::client::text::{Query, Reading};
use crate::connection::Connection;
use crate::job::Next;
use crate::step::Step;

/// What is to be done with a text of several statements.
enum Several {
    /// No rule is for any of them.
    Whole(After),
    OneByOne,
    Refuse(Unsupported),
}

impl Connection {
    /// Whether one text may hold several statements, and this one does.
    pub(crate) fn is_several(&self, text: &[u8]) -> bool {
        self.allows_several()
            && memchr::memchr_iter(b';', text).any(|at| {
                text.get(at + 1..)
                    .is_some_and(|rest| !rest.iter().all(u8::is_ascii_whitespace))
            })
    }

    /// Several statements in one text: passed on as they are if none of them is for a table with a rule.
    pub(crate) fn several(&mut self, query: Query<'_>) -> Next {
        if !self.context.known {
            return self.ask_context().into();
        }
        let multi_statement = split(query.text, &self.context.modes);
        if multi_statement.len() == 1 {
            return self.one(query);
        }
        match self.read_several(query.text) {
            Err(()) => self.ask_context().into(),
            Ok(Several::Whole(after)) => self.pass_query(query, after),
            Ok(Several::Refuse(what)) => self.unsupported(query, None, what),
            Ok(Several::OneByOne) => match query.attributes() {
                Ok(attributes) => {
                    let sequence = query.header.sequence.wrapping_add(1);
                    let several = OneByOne::new(attributes, query.text, sequence);
                    self.one_by_one = Some(Box::new(several));
                    Step::Consumed(query.header.total()).into()
                }
                Err(what) => self.unsupported(query, None, what),
            },
        }
    }

    fn read_several(&mut self, text: &[u8]) -> Result<Several, ()> {
        let modes = self.context.modes;
        let (mut made, mut doubts_texts, mut doubts_unseen) = (Vec::new(), false, false);
        let (mut is_ruled, mut loads) = (false, false);
        // After a USE, SET or CALL the server reads the rest in a state that is not known yet.
        let mut changed = false;
        let plain_from = plain_from(text);
        for piece in split(text, &modes) {
            // The state is asked for when the rest has its turn.
            is_ruled |= changed && piece.range.start < plain_from;
            let piece = text.get(piece.range).unwrap_or_default();
            loads |= kind(piece, &modes).facts().rows == RowsFrom::File;
            let table = match self.read_statement(piece)? {
                Reading::Insert => match InsertHead::read(piece, &modes) {
                    Ok(head) => head.table,
                    Err(Unread::Refused) => continue,
                    Err(Unread::Unsupported(_)) => {
                        is_ruled = true;
                        continue;
                    }
                },
                Reading::Load(table) | Reading::Unsupported(table, _, _) => table,
                Reading::NextValue(next) => next.table,
                Reading::Prepare(_) | Reading::Execute(_) | Reading::Hidden(_) => {
                    is_ruled = true;
                    continue;
                }
                Reading::Pass(After::Tables { made: new, .. }) => {
                    made.extend(new);
                    continue;
                }
                Reading::Pass(after) => {
                    doubts_texts |= matches!(after, After::Texts { .. });
                    doubts_unseen |= after.makes_unseen();
                    changed |= changes_reading(&after);
                    continue;
                }
            };
            // What hides the table may be gone when its turn has come.
            is_ruled |= self.rule_behind(&table).is_some() || (changed && self.may_match(&table));
        }
        Ok(match (is_ruled, loads) {
            (false, _) => Several::Whole(After::Several {
                made,
                doubts_texts,
                doubts_unseen,
            }),
            (true, false) => Several::OneByOne,
            // The client would number the packets of its file after those of an answer that it never saw.
            (true, true) => Several::Refuse(Unsupported::Several),
        })
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
