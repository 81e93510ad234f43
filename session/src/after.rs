//! What the end of an answer that was passed on changes.

use std::sync::Arc;

use crate::answer::{Done, End};
use crate::context::Context;
use crate::last_id::Reply;
use crate::session::{MULTI_STATEMENTS, Session};
use crate::statements::{Passed, Statements};
use crate::step::SessionFacts;
use crate::text_prepare::TextStatement;

/// Schema and table.
pub(crate) type Named = (Vec<u8>, Vec<u8>);

/// What an answer that was passed on changes.
#[derive(Debug)]
pub(crate) enum After {
    Nothing,
    /// Anything may have changed.
    Unknown,
    /// The database, if it succeeded.
    Database(Vec<u8>),
    /// Tables were dropped, then temporary ones were made; and whether anything else may have changed.
    Tables {
        dropped: Vec<Named>,
        made: Vec<Named>,
        unknown: bool,
    },
    /// Rows with generated keys were returned, if it succeeded.
    Returned(Reply),
    /// An INSERT on a table without a rule: LAST_INSERT_ID() is still this if no key was generated.
    Inserted(Option<u64>),
    /// COM_RESET_CONNECTION.
    Reset,
    /// COM_SET_OPTION: whether several statements are allowed.
    Multi(bool),
    /// A statement was prepared that is passed on.
    Prepared(Box<Passed>),
    /// A statement on a rule's table was prepared out of a text, if it succeeded.
    TextPrepared(Box<TextStatement>),
}

impl Session {
    pub(crate) fn finish(&mut self, after: After, end: Option<End>) {
        let succeeded = matches!(end, Some(End::Ok(_) | End::Prepared { .. }) | None);
        // Only an INSERT that generates a key uses it up, and which one did nobody says.
        if self.context.insert_id_set {
            self.context.known = false;
        }
        match after {
            After::Nothing => {}
            After::Unknown => self.context.doubt(),
            After::Database(name) if succeeded => self.context.database = Some(name),
            After::Tables {
                dropped,
                mut made,
                unknown,
            } => {
                self.context.forget_keys();
                if unknown {
                    self.context.doubt();
                }
                if succeeded {
                    let rules = Arc::clone(&self.rules);
                    let is = |(one, two): &Named, (of, name): &Named| {
                        rules.same_name(one, of) && rules.same_name(two, name)
                    };
                    self.context
                        .temporary
                        .retain(|there| !dropped.iter().any(|name| is(there, name)));
                }
                // A text of several statements may fail after one that made a table.
                if succeeded || unknown {
                    // IF NOT EXISTS may name the same one again and again.
                    let there = &mut self.context.temporary;
                    made.retain(|name| !there.contains(name));
                    there.extend(made);
                }
            }
            After::Returned(reply) => self.insert_returned(&reply, succeeded),
            After::Inserted(before) => {
                let none = |done: &Done| done.insert_id == 0 && !done.ends_rows;
                if matches!(&end, Some(End::Ok(done)) if none(done)) {
                    self.lid = before;
                }
            }
            After::TextPrepared(statement) if succeeded => self.text_prepared(*statement),
            After::Reset if succeeded => {
                let facts = SessionFacts {
                    database: self.context.database.take(),
                    ..self.facts.clone()
                };
                self.context = Context::new(&facts);
                self.statements = Statements::new(self.facts.limits.statements_max);
                self.pending_lid = None;
                self.lid = Some(0);
            }
            After::Multi(on) if succeeded => {
                self.facts.capabilities &= !MULTI_STATEMENTS;
                self.facts.capabilities |= if on { MULTI_STATEMENTS } else { 0 };
            }
            After::Prepared(passed) => {
                if let Some(End::Prepared { statement, .. }) = end {
                    self.statements.passed(statement, *passed);
                }
            }
            After::Database(_) | After::Reset | After::Multi(_) | After::TextPrepared(_) => {}
        }
    }
}
