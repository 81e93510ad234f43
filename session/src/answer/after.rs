//! What the end of an answer that was passed on changes.

use keywright_wire::answer::End;
use keywright_wire::capability::MULTI_STATEMENTS;
use keywright_wire::done::Done;

use crate::answer::last_insert_id::Reply;
use crate::connection::Connection;
use crate::prepared::statements::{Passed, Statements};
use crate::prepared::text_prepare::TextStatement;
use crate::step::SessionFacts;

/// Schema and table.
pub(crate) type Named = (Vec<u8>, Vec<u8>);

/// What an answer that was passed on changes.
#[derive(Debug)]
pub(crate) enum After {
    Nothing,
    /// Anything may have changed.
    Unknown,
    /// That, and tables were changed.
    Defined,
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
    /// Several statements in one text; how many of them were carried out is not known.
    Several {
        /// Temporary tables that may be there now.
        made: Vec<Named>,
        /// One of them may have prepared another statement out of a text.
        doubts_texts: bool,
        /// One of them may have made temporary tables out of sight.
        doubts_unseen: bool,
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

    /// Whether temporary tables may have been made out of sight.
    pub(crate) fn makes_unseen(&self) -> bool {
        match self {
            Self::Texts { unknown, .. } => *unknown,
            Self::Several { doubts_unseen, .. } => *doubts_unseen,
            Self::Defined => true,
            Self::Nothing
            | Self::Unknown
            | Self::Database(_)
            | Self::Tables { .. }
            | Self::Returned(_)
            | Self::Inserted(_)
            | Self::Reset
            | Self::Multi(_)
            | Self::Prepared(_)
            | Self::TextPrepared(_) => false,
        }
    }

    /// Whether it comes of a PREPARE, whose statement is carried out later.
    pub(crate) fn names_text(&self) -> bool {
        match self {
            Self::Texts { texts, .. } => match texts {
                Texts::Gone(_) => true,
                Texts::Doubtful => false,
            },
            Self::TextPrepared(_) => true,
            Self::Nothing
            | Self::Unknown
            | Self::Defined
            | Self::Database(_)
            | Self::Tables { .. }
            | Self::Several { .. }
            | Self::Returned(_)
            | Self::Inserted(_)
            | Self::Reset
            | Self::Multi(_)
            | Self::Prepared(_) => false,
        }
    }
}

impl Connection {
    pub(crate) fn finish(&mut self, after: After, end: Option<End>) {
        let succeeded = matches!(end, Some(End::Ok(_) | End::Prepared { .. }) | None);
        // Only an INSERT that generates a key uses insert_id up, and which one did is not known.
        if self.context.insert_id_set {
            self.context.known = false;
        }
        match after {
            After::Nothing => {}
            After::Unknown => self.context.doubt(),
            After::Defined => {
                self.rules.schema().note_defined();
                self.context.doubt();
                self.context.doubt_unseen();
            }
            After::Database(name) if succeeded => self.context.database = Some(name),
            After::Tables { dropped, made } => {
                self.context.forget_keys();
                if self.drops_ruled(&dropped) {
                    self.rules.schema().note_defined();
                }
                self.tables_changed(&dropped, made, succeeded);
            }
            After::Texts { texts, unknown } => {
                match texts {
                    Texts::Gone(name) if succeeded => self.context.forget_text(&name),
                    // A PREPARE that fails may have made room for its statement before.
                    Texts::Gone(name) => self.context.doubt_text(&name),
                    Texts::Doubtful => self.context.doubt_texts(),
                }
                if unknown {
                    self.rules.schema().note_unseen();
                    self.context.doubt();
                    self.context.doubt_unseen();
                }
            }
            After::Several {
                made,
                doubts_texts,
                doubts_unseen,
            } => {
                self.rules.schema().note_unseen();
                self.context.doubt();
                if doubts_unseen {
                    self.context.doubt_unseen();
                }
                if doubts_texts {
                    self.context.doubt_texts();
                }
                // One may have failed before them, or have dropped them behind.
                self.note_temporary(made, false);
            }
            After::Returned(reply) => self.insert_returned(&reply, succeeded),
            After::Inserted(before) => {
                let none = |done: &Done| done.insert_id == 0 && !done.ends_rows;
                if matches!(&end, Some(End::Ok(done)) if none(done)) {
                    self.last_insert_id = before;
                }
            }
            After::TextPrepared(statement) => self.text_prepared(*statement, succeeded),
            After::Reset if succeeded => {
                let facts = SessionFacts {
                    database: self.context.database.take(),
                    ..self.facts.clone()
                };
                self.context.reset(&facts);
                let max = self.facts.limits.statements_max;
                self.statements = Statements::new(max, self.facts.server.flavour);
                self.pending_last_insert_id = None;
                self.last_insert_id = Some(0);
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
}
