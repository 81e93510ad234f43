//! `PREPARE name FROM 'INSERT …'` on a rule's table: each EXECUTE is preceded by a PREPARE of the same text with its keys in it.

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{
    CharsetClass, InsertHead, Modes, PrepareSource, Unread, Unsupported, without_terminator,
};

use crate::after::After;
use crate::answer::{End, Shape};
use crate::bytes::Header;
use crate::context::Context;
use crate::last_id::Reply;
use crate::plan::Planned;
use crate::session::{Gather, Session, Turn};
use crate::step::{KeyFailure, Step, What};
use crate::text::Look;

/// A statement that was prepared out of a text.
#[derive(Debug, Clone)]
pub(crate) struct TextStatement {
    name: Vec<u8>,
    /// The rule of its table when it was prepared.
    rule: usize,
    text: Vec<u8>,
    /// Names without schema and the text itself were read in this state.
    database: Option<Vec<u8>>,
    modes: Modes,
    /// Something was carried out since that may have prepared another statement of this name.
    is_doubtful: bool,
    /// The server may have it with keys in it, which were used.
    has_keys: bool,
}

/// A text PREPARE with keys in it, and what comes of its EXECUTE.
#[derive(Debug)]
pub(crate) struct Reprepared {
    reply: Reply,
    returning: bool,
}

impl Context {
    /// A statement was carried out whose doings are not known.
    pub(crate) fn doubt_texts(&mut self) {
        for statement in self.texts.values_mut() {
            statement.is_doubtful = true;
        }
    }
}

impl Session {
    /// What a PREPARE out of a text means for the rules. `Err`: the server's modes must be known first.
    pub(crate) fn look_into(&mut self, source: PrepareSource) -> Result<Look, ()> {
        if !self.context.known {
            return Err(());
        }
        let (name, text) = match source {
            PrepareSource::Text { name, text } => (
                name.to_ascii_lowercase(),
                without_terminator(&text).to_vec(),
            ),
            PrepareSource::Computed { name } => {
                self.context.texts.remove(&name.to_ascii_lowercase());
                return Ok(Look::Pass(After::Unknown));
            }
            PrepareSource::Unreadable => {
                self.context.doubt_texts();
                return Ok(Look::Pass(After::Unknown));
            }
        };
        // Whether it succeeds or fails, what had this name before is gone.
        self.context.texts.remove(&name);
        let modes = self.context.modes;
        let table = match InsertHead::read(&text, &modes) {
            Ok(head) => head.table,
            Err(Unread::Refused | Unread::Unsupported(_)) => {
                if let Some((table, what)) = self.load_to_prepare(&text) {
                    return Ok(Look::Unsupported(table, what));
                }
                return Ok(Look::Pass(After::Unknown));
            }
        };
        let Some(rule) = self.rule_of(&table) else {
            return Ok(Look::Pass(After::Unknown));
        };
        // EXECUTE IMMEDIATE has no name. Names are compared by rules of the server's own.
        let is_plain = !name.is_empty() && name.is_ascii() && modes.charset == CharsetClass::Safe;
        Ok(if is_plain {
            Look::Prepare(Box::new(TextStatement {
                name,
                rule,
                text,
                database: self.context.database.clone(),
                modes,
                is_doubtful: false,
                has_keys: false,
            }))
        } else {
            Look::Unsupported(table, Unsupported::TextPrepare)
        })
    }

    /// The client's own PREPARE is passed on, so that the server says what is wrong with it.
    pub(crate) fn prepare_text(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        statement: TextStatement,
    ) -> Step {
        if self.context.texts.len() >= self.facts.limits.statements_max {
            let message = "keywright-proxy: too many prepared statements on tables with rules";
            return self.refuse(header, Cause::MemoryFull, message);
        }
        let after = After::TextPrepared(Box::new(statement));
        self.pass_query(header, bytes, text, after)
    }

    /// The server has prepared it.
    pub(crate) fn text_prepared(&mut self, statement: TextStatement) {
        self.context.texts.insert(statement.name.clone(), statement);
    }

    /// EXECUTE of a statement that was prepared out of a text.
    pub(crate) fn execute_text(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        name: &[u8],
    ) -> Step {
        let Some(statement) = self.context.texts.get(name).cloned() else {
            return self.pass_query(header, bytes, text, After::Unknown);
        };
        if !self.context.known {
            return self.ask_context();
        }
        if let Some(Reprepared { reply, returning }) = self.stage.reprepared.take() {
            let step = self.pass(header, bytes, Shape::Results, After::Nothing);
            self.turn = Turn::of_reply(reply, returning);
            return step;
        }
        if let Some(keys) = self.stage.keys.take() {
            return self.reprepare(header, &statement, keys);
        }
        let is_same = statement.database == self.context.database
            && statement.modes == self.context.modes
            && !statement.is_doubtful;
        let would_repeat = statement.has_keys && !self.gets_keys(&statement.text);
        if is_same && !would_repeat {
            self.decide(header, bytes, text, &statement.text)
        } else if self.rewrites(statement.rule) {
            // Never passed on: the server may have it with keys that were used already.
            let rule = Some(statement.rule);
            self.refuse_unsupported(header, rule, Unsupported::TextPrepare)
        } else {
            self.pass_query(header, bytes, text, After::Unknown)
        }
    }

    /// Whether a text gets keys anew, as far as that is known yet.
    fn gets_keys(&mut self, text: &[u8]) -> bool {
        match self.plan(text) {
            Ok(Planned::Plan(_, plan)) => plan.keys() > 0,
            Ok(Planned::AskColumns(_)) => true,
            Ok(Planned::Query(..) | Planned::Pass) | Err(_) => false,
        }
    }

    /// Prepares the text with its keys, in place of what has its name.
    fn reprepare(
        &mut self,
        header: Header,
        statement: &TextStatement,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Step {
        let Some((index, plan)) = self.stage.plan.take() else {
            return self.malformed();
        };
        let Some(rule) = self.rules.rules().get(index).cloned() else {
            return self.malformed();
        };
        let keys = match keys.and_then(|keys| self.spread(&rule, keys, plan.keys())) {
            Ok(keys) => keys,
            Err(failure) => return self.refuse(header, failure.cause, &failure.message),
        };
        let mut spliced = Vec::with_capacity(statement.text.len() + 64);
        // A bound key is known to the server alone.
        if !plan.key_parameters().is_empty()
            || plan.splice(&statement.text, &keys, &mut spliced).is_err()
        {
            return self.refuse_unsupported(header, Some(index), Unsupported::TextPrepare);
        }
        let mut text = b"PREPARE ".to_vec();
        write_quoted(&statement.name, b'`', false, &mut text);
        text.extend_from_slice(b" FROM ");
        write_quoted(
            &spliced,
            b'\'',
            !statement.modes.no_backslash_escapes,
            &mut text,
        );
        self.note(Some(index), What::Rewritten);
        // Whatever the answer will be.
        if let Some(statement) = self.context.texts.get_mut(&statement.name) {
            statement.has_keys = true;
        }
        let reprepared = Reprepared {
            reply: self.reply(&plan, plan.lid(), &keys),
            returning: plan.returning(),
        };
        self.own_query(&text, Gather::Reprepare(reprepared))
    }

    /// The server's answer to it.
    pub(crate) fn answer_reprepare(
        &mut self,
        reprepared: Reprepared,
        end: Option<End>,
        answer: &[u8],
    ) {
        if matches!(end, Some(End::Ok(_))) {
            self.stage.reprepared = Some(reprepared);
        } else {
            self.fail_own(answer);
        }
    }
}

/// Appends a text between quotation marks.
fn write_quoted(text: &[u8], quote: u8, has_escapes: bool, out: &mut Vec<u8>) {
    out.push(quote);
    for byte in text {
        if *byte == quote || (has_escapes && *byte == b'\\') {
            out.push(*byte);
        }
        out.push(*byte);
    }
    out.push(quote);
}
