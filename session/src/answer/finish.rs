//! An answer that was passed on has ended: what that changes.

use keywright_rewrite::CharsetClass;
use keywright_wire::answer::End;
use keywright_wire::capability::MULTI_STATEMENTS;
use keywright_wire::done::Done;

use crate::answer::after::{After, Texts};
use crate::connection::Connection;
use crate::prepared::statements::Statements;
use crate::server::context::TextStatement;
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
                if let Some(End::Ok(done)) = end {
                    self.note_reported(done.insert_id);
                }
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

    /// The server has prepared it, or has not.
    pub(crate) fn text_prepared(&mut self, statement: TextStatement, succeeded: bool) {
        if succeeded {
            self.context.texts.insert(statement.name.clone(), statement);
        } else {
            self.context.doubt_text(&statement.name);
        }
    }
}
