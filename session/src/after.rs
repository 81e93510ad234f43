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
    /// Tables were dropped, then temporary ones were made.
    Tables {
        dropped: Vec<Named>,
        made: Vec<Named>,
    },
    /// What was prepared out of texts, and whether anything else may have changed.
    Texts {
        texts: Texts,
        unknown: bool,
    },
    /// Several statements in one text, of which nobody says how many were carried out.
    Several {
        dropped: Vec<Named>,
        made: Vec<Named>,
        /// One of them may have prepared another statement out of a text.
        doubts_texts: bool,
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

/// What becomes of statements that were prepared out of texts.
#[derive(Debug)]
pub(crate) enum Texts {
    /// No statement of a rule has this name any more.
    Gone(Vec<u8>),
    /// Any name may have another one.
    Doubtful,
}

impl After {
    /// Anything may have changed, what was prepared out of texts too.
    pub(crate) const ANYTHING: Self = Self::Texts {
        texts: Texts::Doubtful,
        unknown: true,
    };
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
            After::Tables { dropped, made } => {
                self.context.forget_keys();
                if succeeded {
                    self.drop_tables(&dropped);
                    self.make_temporary(made);
                }
            }
            After::Texts { texts, unknown } => {
                match texts {
                    Texts::Gone(name) if succeeded => self.context.forget_text(&name),
                    // A PREPARE that fails may have made room for its statement before.
                    Texts::Gone(name) => self.context.doubt_text(&name),
                    Texts::Doubtful => self.context.doubt_texts(),
                }
                if unknown {
                    self.context.doubt();
                }
            }
            After::Several {
                dropped,
                made,
                doubts_texts,
            } => {
                self.context.doubt();
                if doubts_texts {
                    self.context.doubt_texts();
                }
                if succeeded {
                    self.drop_tables(&dropped);
                }
                self.make_temporary(made);
            }
            After::Returned(reply) => self.insert_returned(&reply, succeeded),
            After::Inserted(before) => {
                let none = |done: &Done| done.insert_id == 0 && !done.ends_rows;
                if matches!(&end, Some(End::Ok(done)) if none(done)) {
                    self.lid = before;
                }
            }
            After::TextPrepared(statement) => self.text_prepared(*statement, succeeded),
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
            After::Database(_) | After::Reset | After::Multi(_) => {}
        }
    }

    fn drop_tables(&mut self, dropped: &[Named]) {
        let rules = Arc::clone(&self.rules);
        let is = |(one, two): &Named, (of, name): &Named| {
            rules.same_name(one, of) && rules.same_name(two, name)
        };
        self.context
            .temporary
            .retain(|there| !dropped.iter().any(|name| is(there, name)));
    }

    fn make_temporary(&mut self, mut made: Vec<Named>) {
        // IF NOT EXISTS may name the same one again and again.
        let there = &mut self.context.temporary;
        made.retain(|name| !there.contains(name));
        there.extend(made);
    }
}
