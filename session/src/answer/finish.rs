//! An answer that was passed on has ended: what that changes.

use keywright_rewrite::CharsetClass;
use keywright_wire::answer::End;
use keywright_wire::capability::MULTI_STATEMENTS;

use crate::answer::after::{After, Texts};
use crate::connection::Connection;
use crate::prepared::statements::Statements;
use crate::server::context::{Named, TextStatement};
use crate::step::SessionFacts;

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
            After::Database(name) if succeeded => {
                // In another character set than UTF-8 it is another name.
                let is_ascii = self.context.modes.charset != CharsetClass::NoAscii;
                self.context.known &= is_ascii && name.is_ascii();
                self.context.database = Some(name);
            }
            After::Tables { dropped, made } => {
                self.context.forget_keys();
                if self.drops_ruled(&dropped) {
                    self.rules.schema().note_defined();
                }
                self.tables_changed(&dropped, made, succeeded);
            }
            After::Texts { texts, unknown } => self.texts_changed(&texts, unknown, succeeded),
            After::Several {
                made,
                doubts_texts,
                doubts_unseen,
            } => self.several_ended(made, doubts_texts, doubts_unseen),
            After::Returned(reply) => self.insert_returned(&reply, succeeded),
            After::Inserted(before) => self.inserted_beside(before, end.as_ref()),
            After::TextPrepared(statement) => self.text_prepared(*statement, succeeded),
            After::Reset if succeeded => self.was_reset(),
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

    /// What was prepared out of texts has changed, and maybe anything else.
    fn texts_changed(&mut self, texts: &Texts, unknown: bool, succeeded: bool) {
        match texts {
            Texts::Gone(name) if succeeded => self.context.forget_text(name),
            // A PREPARE that fails may have made room for its statement before.
            Texts::Gone(name) => self.context.doubt_text(name),
            Texts::Doubtful => self.context.doubt_texts(),
        }
        if unknown {
            self.rules.schema().note_unseen();
            self.context.doubt();
            self.context.doubt_unseen();
        }
    }

    /// Several statements in one text have ended, and how many of them were carried out is not known.
    fn several_ended(&mut self, made: Vec<Named>, doubts_texts: bool, doubts_unseen: bool) {
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

    /// An INSERT on a table without a rule has ended: LAST_INSERT_ID() is still what it was `before` if no key was generated.
    fn inserted_beside(&mut self, before: Option<u64>, end: Option<&End>) {
        let Some(End::Ok(done)) = end else {
            return;
        };
        self.note_reported(done.insert_id);
        if done.insert_id == 0 && !done.ends_rows {
            self.last_insert_id = before;
        }
    }

    /// The session is as after a login, in the database that it had.
    fn was_reset(&mut self) {
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

    /// The server has prepared it, or has not.
    pub(crate) fn text_prepared(&mut self, statement: TextStatement, succeeded: bool) {
        if succeeded {
            self.context.texts.insert(statement.name.clone(), statement);
        } else {
            self.context.doubt_text(&statement.name);
        }
    }
}
