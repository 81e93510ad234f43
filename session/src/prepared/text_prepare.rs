//! `PREPARE name FROM 'INSERT …'` on a rule's table. The name keeps the client's text. Before each EXECUTE the proxy prepares a
//! statement of its own, out of the same text with keys in it, and executes that. So a procedure that executes the client's
//! statement, unseen by the proxy, never inserts keys that are used up.

use std::sync::Arc;

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{
    CharsetClass, InsertHead, Modes, PrepareSource, Unread, Unsupported, execute_by, quote_string,
    without_terminator,
};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::Header;
use keywright_wire::packets::write_command;
use keywright_wire::protocol::COM_QUERY;

use crate::answer::after::{After, Texts};
use crate::answer::last_insert_id::Reply;
use crate::budget::Held;
use crate::client::text::Reading;
use crate::connection::Connection;
use crate::job::{Gather, Job, Next};
use crate::server::context::Context;
use crate::step::{KeyFailure, StatementOutcome, Step};

/// The name of the proxy's own statement. Its keys are used up, so nobody else may execute it.
const OWN_NAME: &str = "keywright execute";

/// A statement that was prepared out of a text.
#[derive(Debug, Clone)]
pub(crate) struct TextStatement {
    name: Vec<u8>,
    /// The rule of its table when it was prepared.
    rule: usize,
    text: Vec<u8>,
    /// The text's memory, once it is to be kept.
    _held: Option<Arc<Held>>,
    /// Names without schema and the text itself were read in this state.
    database: Option<Vec<u8>>,
    modes: Modes,
    /// A later statement may have prepared another one of this name.
    is_doubtful: bool,
}

/// A text PREPARE with keys in it, and what comes of its EXECUTE.
#[derive(Debug)]
pub(crate) struct Reprepared {
    reply: Reply,
    returning: bool,
}

impl Context {
    /// A statement was executed that may have done anything.
    pub(crate) fn doubt_texts(&mut self) {
        for statement in self.texts.values_mut() {
            statement.is_doubtful = true;
        }
    }

    /// The same, of this name, if it is one that servers take for no other.
    pub(crate) fn doubt_text(&mut self, name: &[u8]) {
        if !is_plain_name(name) {
            self.doubt_texts();
        }
        if let Some(statement) = self.texts.get_mut(name) {
            statement.is_doubtful = true;
        }
    }

    /// Nothing has this name any more.
    pub(crate) fn forget_text(&mut self, name: &[u8]) {
        self.texts.remove(name);
        if !is_plain_name(name) {
            self.doubt_texts();
        }
    }

    /// Whether EXECUTE of a name may be of a statement on a rule's table, or of the proxy's own.
    pub(crate) fn may_execute(&self, name: &[u8]) -> bool {
        self.may_be_own(name) || self.text_named(name).is_some()
    }

    /// Whether the server may take a name, in lower case, for that of the proxy's own statement.
    fn may_be_own(&self, name: &[u8]) -> bool {
        is_own_name(name) || (self.has_own_text && !is_plain_name(name))
    }

    /// A statement that has this name, or any of those where the server may take it for one of theirs.
    fn text_named(&self, name: &[u8]) -> Option<&TextStatement> {
        let any = || {
            let mut texts = self.texts.values();
            texts.next().filter(|_| !is_plain_name(name))
        };
        self.texts.get(name).or_else(any)
    }
}

/// Whether a name, in lower case, is that of the proxy's own statement.
fn is_own_name(name: &[u8]) -> bool {
    name == OWN_NAME.as_bytes()
}

/// Whether servers compare a name as bytes, but for upper and lower case: others may be the same without accents or blanks.
fn is_plain_name(name: &[u8]) -> bool {
    name.is_ascii() && !name.ends_with(b" ")
}

impl Connection {
    /// What a PREPARE out of a text means for the rules. `Err`: the server's modes must be known first.
    pub(crate) fn read_source(&self, source: PrepareSource) -> Result<Reading, ()> {
        if !self.context.known {
            return Err(());
        }
        let (name, text) = match source {
            PrepareSource::Text { name, text } => (
                name.to_ascii_lowercase(),
                without_terminator(&text).to_vec(),
            ),
            PrepareSource::Computed { name } => {
                return Ok(Reading::Pass(after_preparing(name.to_ascii_lowercase())));
            }
            PrepareSource::Unreadable => return Ok(Reading::Pass(After::ANYTHING)),
        };
        let modes = self.context.modes;
        let table = match InsertHead::read(&text, &modes) {
            Ok(head) => head.table,
            Err(Unread::Unsupported(what)) => return Ok(Reading::Hidden(what)),
            Err(Unread::Refused) => {
                if let Some((table, what)) = self.load_to_prepare(&text) {
                    return Ok(Reading::Unsupported(table, what, after_preparing(name)));
                }
                return Ok(match self.hidden_behind_set(&text) {
                    Some((_, what)) => Reading::Hidden(what),
                    None => Reading::Pass(after_preparing(name)),
                });
            }
        };
        let Some(rule) = self.rule_behind(&table) else {
            return Ok(Reading::Pass(after_preparing(name)));
        };
        // EXECUTE IMMEDIATE has no name.
        let can_be_told = !name.is_empty() && is_plain_name(&name) && !is_own_name(&name);
        Ok(
            if can_be_told && modes.charset != CharsetClass::TrailByteMayBeBackslash {
                Reading::Prepare(Box::new(TextStatement {
                    name,
                    rule,
                    text,
                    _held: None,
                    database: self.context.database.clone(),
                    modes,
                    is_doubtful: false,
                }))
            } else {
                Reading::Unsupported(table, Unsupported::TextPrepare, after_preparing(name))
            },
        )
    }

    /// The client's own PREPARE is passed on, so that the server says what is wrong with it.
    pub(crate) fn prepare_text(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        statement: TextStatement,
    ) -> Next {
        if self.context.texts.len() >= self.facts.limits.statements_max {
            let message = "keywright: too many prepared statements on tables with rules";
            return self.refuse(header, Cause::MemoryFull, message).into();
        }
        let Some(held) = self.hold(statement.text.len()) else {
            return self.refuse_texts(header).into();
        };
        let statement = TextStatement {
            _held: Some(Arc::new(held)),
            ..statement
        };
        let after = After::TextPrepared(Box::new(statement));
        self.pass_query(header, bytes, text, after)
    }

    /// The server has prepared it, or has not.
    pub(crate) fn text_prepared(&mut self, statement: TextStatement, succeeded: bool) {
        if succeeded {
            self.context.texts.insert(statement.name.clone(), statement);
        } else {
            self.context.doubt_text(&statement.name);
        }
    }

    /// EXECUTE of a statement that was prepared out of a text.
    pub(crate) fn execute_text(
        &mut self,
        header: Header,
        bytes: &[u8],
        text: &[u8],
        name: &[u8],
    ) -> Next {
        let named = self.context.text_named(name).cloned();
        let Some(statement) = named.filter(|_| !self.context.may_be_own(name)) else {
            return self
                .refuse_unsupported(header, None, Unsupported::TextPrepare)
                .into();
        };
        if !self.context.known {
            return self.ask_context().into();
        }
        let own = execute_by(OWN_NAME, text, &self.context.modes);
        if let (Some(reprepared), Some(own)) = (self.stage.reprepared.take(), &own) {
            return self.execute_own(header, bytes, own, reprepared);
        }
        if let Some(keys) = self.stage.keys.take() {
            return self.reprepare(header, &statement, keys);
        }
        let is_same = statement.database == self.context.database
            && statement.modes == self.context.modes
            && !statement.is_doubtful
            && is_plain_name(name);
        if let Some(step) = self.enter(header, Some(statement.rule)) {
            return step.into();
        }
        if is_same && self.context.insert_id_set {
            // insert_id is for this INSERT; unused it would wait for the next one into any table.
            self.pass_query(header, bytes, text, After::Nothing)
        } else if is_same && own.is_some() {
            self.decide(header, bytes, text, &statement.text)
        } else if self.rewrites(statement.rule) {
            let rule = Some(statement.rule);
            self.refuse_unsupported(header, rule, Unsupported::TextPrepare)
                .into()
        } else {
            self.watch_fence(statement.rule);
            self.pass_query(header, bytes, text, After::ANYTHING)
        }
    }

    /// The client's EXECUTE, of the statement that has the keys.
    fn execute_own(
        &mut self,
        header: Header,
        bytes: &[u8],
        own: &[u8],
        reprepared: Reprepared,
    ) -> Next {
        let attributes = match self.attributes(bytes) {
            Ok(attributes) => attributes,
            Err(what) => return self.refuse_unsupported(header, None, what).into(),
        };
        write_command(COM_QUERY, &[attributes, own].concat(), &mut self.up);
        self.answer.expect(Shape::Results);
        self.forget_command();
        let job = Job::of_reply(reprepared.reply, reprepared.returning);
        job.with(Step::Consumed(header.total()))
    }

    /// Prepares the text with its keys.
    fn reprepare(
        &mut self,
        header: Header,
        statement: &TextStatement,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Next {
        let Some((index, plan)) = self.stage.plan.take() else {
            return self.malformed().into();
        };
        let Some(rule) = self.rules.rules().get(index).cloned() else {
            return self.malformed().into();
        };
        let keys = match keys.and_then(|keys| self.spread(&rule, keys, plan.keys())) {
            Ok(keys) => keys,
            Err(failure) => return self.refuse(header, failure.cause, &failure.message).into(),
        };
        let mut spliced = Vec::with_capacity(statement.text.len() + 64);
        // A bound key is known to the server alone.
        if !plan.key_parameters().is_empty()
            || plan.splice(&statement.text, &keys, &mut spliced).is_err()
        {
            return self
                .refuse_unsupported(header, Some(index), Unsupported::TextPrepare)
                .into();
        }
        let mut text = format!("PREPARE `{OWN_NAME}` FROM ").into_bytes();
        quote_string(&spliced, !statement.modes.no_backslash_escapes, &mut text);
        self.note(Some(index), StatementOutcome::Rewritten);
        // Whatever the answer will be.
        self.context.has_own_text = true;
        let reprepared = Reprepared {
            reply: self.reply(&plan, plan.last_insert_id(), &keys),
            returning: plan.returning(),
        };
        self.send_own(&text);
        Job::Gathering(Gather::Reprepare(reprepared)).with(Step::Consumed(0))
    }

    /// The server's answer to it.
    pub(crate) fn answer_reprepare(
        &mut self,
        reprepared: Reprepared,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        if matches!(end, Some(End::Ok(_))) {
            self.stage.reprepared = Some(reprepared);
            Job::Idle
        } else {
            self.fail_own(answer)
        }
    }
}

/// What comes of a PREPARE of something else, whose name is in lower case; without one it is EXECUTE IMMEDIATE, which may be a
/// CALL.
fn after_preparing(name: Vec<u8>) -> After {
    match name.is_empty() {
        true => After::ANYTHING,
        false => After::Texts {
            texts: Texts::Gone(name),
            unknown: true,
        },
    }
}
