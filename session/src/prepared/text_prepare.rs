//! `PREPARE name FROM 'INSERT …'` on a rule's table. The name keeps the client's text. Before each EXECUTE the proxy prepares a
//! statement of its own, out of the same text with keys in it, and executes that. So a procedure that executes the client's
//! statement, unseen by the proxy, never inserts keys that are used up.

use std::sync::Arc;

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{
    CharsetClass, InsertHead, Kind, Modes, Plan, PrepareSource, Unread, Unsupported, execute_by,
    quote_string, without_empty_end, without_terminator,
};
use keywright_wire::answer::{End, Shape};
use keywright_wire::bytes::Header;
use keywright_wire::packets::write_command;
use keywright_wire::protocol::COM_QUERY;

use crate::answer::after::{After, Texts};
use crate::answer::reply::Reply;
use crate::client::decode::Undecoded;
use crate::client::query::{Query, Whole};
use crate::client::reading::Reading;
use crate::connection::Connection;
use crate::insert::values::Decided;
use crate::job::{Job, Next, Turn, Work};
use crate::server::context::{Context, TextStatement};
use crate::server::text_modes::TextModes;
use crate::step::{KeyFailure, StatementOutcome, Step};

/// The name of the proxy's own statement. Its keys are used up, so nobody else may execute it.
const OWN_NAME: &str = "keywright execute";

/// EXECUTE of one under way, until it goes out.
#[derive(Debug)]
pub(crate) struct TextExecution {
    statement: TextStatement,
    rule: usize,
    plan: Plan,
    /// The client's text, with the name of the proxy's own statement.
    own: Vec<u8>,
    /// Bytes of attributes before it.
    front: usize,
    phase: Phase,
}

/// What is next, or under way.
#[derive(Debug)]
enum Phase {
    /// The driver looks for keys.
    Keys,
    /// It has them, or knows why there are none.
    Ready(Result<KeyBatch, KeyFailure>),
    /// The proxy's own statement is prepared with them. That follows from its EXECUTE.
    Preparing(Reply),
    /// It can be executed.
    Prepared(Reply),
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

    /// Whether there is a statement on a rule's table that EXECUTE may be of.
    pub(crate) fn has_texts(&self) -> bool {
        self.has_own_text || !self.texts.is_empty()
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
                without_terminator(without_empty_end(&text)).to_vec(),
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
        if name.is_empty() {
            let what = Unsupported::ExecuteImmediate;
            return Ok(Reading::Unsupported(table, what, after_preparing(name)));
        }
        let text_modes = &self.context.text_modes;
        Ok(
            match forbids_preparing(&name, &text, (&modes, text_modes)) {
                Some(what) => Reading::Unsupported(table, what, after_preparing(name)),
                None => Reading::Prepare(Box::new(TextStatement {
                    name,
                    rule,
                    text,
                    _held: None,
                    database: self.context.database.clone(),
                    modes,
                    read_in: text_modes.clone(),
                    is_doubtful: false,
                })),
            },
        )
    }

    /// The client's own PREPARE is passed on, so that the server says what is wrong with it.
    pub(crate) fn prepare_text(&mut self, query: Query<'_>, statement: TextStatement) -> Next {
        if self.context.texts.len() >= self.facts.limits.statements_max {
            let message = "keywright: too many prepared statements on tables with rules";
            return self.refuse(query.header, Cause::MemoryFull, message).into();
        }
        let Some(held) = self.hold(statement.text.len()) else {
            return self.refuse_texts(query.header).into();
        };
        let statement = TextStatement {
            _held: Some(Arc::new(held)),
            ..statement
        };
        let after = After::TextPrepared(Box::new(statement));
        self.pass_query(query, after)
    }

    /// The statement that EXECUTE of a name is of. Where the server may take the name for any, it is one whose rule gives keys, if there is
    /// one: that is refused.
    fn text_meant(&self, name: &[u8]) -> Option<&TextStatement> {
        let named = self.context.text_named(name)?;
        if is_plain_name(name) {
            return Some(named);
        }
        let mut texts = self.context.texts.values();
        texts.find(|text| self.rewrites(text.rule)).or(Some(named))
    }

    /// EXECUTE of a statement that was prepared out of a text.
    pub(crate) fn execute_text(&mut self, query: Query<'_>, name: &[u8]) -> Next {
        let named = self.text_meant(name).cloned();
        let Some(statement) = named.filter(|_| !self.context.may_be_own(name)) else {
            return self
                .refuse_unsupported(query.header, None, Unsupported::TextPrepare)
                .into();
        };
        if !self.context.known {
            return self.ask_context().into();
        }
        let own = execute_by(OWN_NAME, query.text, &self.context.modes);
        // What is not ASCII is looked at with the character set itself.
        let charset = self.context.modes.charset;
        let modes = Modes {
            charset,
            ..statement.modes
        };
        let is_same = statement.database == self.context.database
            && modes == self.context.modes
            && statement.modes.charset.reads_ascii_as(charset)
            && !self.reads_otherwise(&statement.read_in, &statement.text)
            && !statement.is_doubtful
            && is_plain_name(name);
        if let Some(step) = self.enter(query.header, Some(statement.rule)) {
            return step.into();
        }
        if is_same && self.context.insert_id_set {
            // insert_id is for this INSERT; unused it would wait for the next one into any table.
            self.pass_query(query, After::Nothing)
        } else if is_same && let Some(own) = own {
            self.table_report.is_prepared = true;
            match self.decide(query, &statement.text) {
                Decided::Keys(rule, plan) => {
                    let step = self.keys_step(rule, plan.keys());
                    let execution = TextExecution {
                        statement,
                        rule,
                        plan,
                        own,
                        front: query.front,
                        phase: Phase::Keys,
                    };
                    Job::Work(Box::new(execution)).with(step)
                }
                Decided::Query(rule, _) => self.unsupported(query, Some(rule), Unsupported::Select),
                Decided::Pass => self.pass_kind(Kind::Execute, query, After::Nothing),
                // A NULL among them would be numbered by the server.
                Decided::Bound(rule) => self
                    .refuse_unsupported(query.header, Some(rule), Unsupported::TextPrepare)
                    .into(),
                Decided::Unread(rule, what) => self.unsupported(query, rule, what),
                Decided::Not(next) => next,
            }
        } else if self.rewrites(statement.rule) {
            let rule = Some(statement.rule);
            self.refuse_unsupported(query.header, rule, Unsupported::TextPrepare)
                .into()
        } else {
            let next = self.pass_query(query, After::ANYTHING);
            self.watch_fence(next, statement.rule)
        }
    }
}

impl Work for TextExecution {
    fn turn(&self) -> Turn {
        match self.phase {
            Phase::Keys => Turn::Keys,
            Phase::Ready(_) | Phase::Prepared(_) => Turn::Command,
            Phase::Preparing(_) => Turn::Upstream,
        }
    }

    fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.phase = Phase::Ready(keys);
    }

    /// The command is still at the front.
    fn on_client(
        mut self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        let whole = connection.whole_command(bytes)?;
        Ok(match std::mem::replace(&mut self.phase, Phase::Keys) {
            Phase::Ready(keys) => self.prepare(connection, whole.header, keys),
            Phase::Prepared(reply) => self.execute(connection, &whole, reply),
            phase @ (Phase::Keys | Phase::Preparing(_)) => {
                self.phase = phase;
                Job::Work(self).with(Step::Blocked)
            }
        })
    }

    /// The server's answer to that.
    fn on_reply(
        mut self: Box<Self>,
        connection: &mut Connection,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        match (std::mem::replace(&mut self.phase, Phase::Keys), end) {
            (Phase::Preparing(reply), Some(End::Ok(_))) => {
                self.phase = Phase::Prepared(reply);
                Job::Work(self)
            }
            (_, _) => connection.fail_own(answer),
        }
    }

    fn is_half_way(&self) -> bool {
        true
    }
}

impl TextExecution {
    /// Prepares the text with its keys.
    fn prepare(
        mut self: Box<Self>,
        connection: &mut Connection,
        header: Header,
        keys: Result<KeyBatch, KeyFailure>,
    ) -> Next {
        let (statement, plan) = (&self.statement, &self.plan);
        let keys = match connection.rules.rules().get(self.rule) {
            Some(rule) => keys.and_then(|keys| connection.spread(rule, keys, plan.keys())),
            None => keys,
        };
        let keys = match keys {
            Ok(keys) => keys,
            Err(failure) => {
                return connection.refuse_without_keys(header, &failure).into();
            }
        };
        let mut spliced = Vec::with_capacity(statement.text.len() + 64);
        // A bound key is known to the server alone.
        if !plan.key_parameters().is_empty()
            || plan.splice(&statement.text, &keys, &mut spliced).is_err()
        {
            return connection
                .refuse_unsupported(header, Some(self.rule), Unsupported::TextPrepare)
                .into();
        }
        let mut text = format!("PREPARE `{OWN_NAME}` FROM ").into_bytes();
        quote_string(&spliced, !statement.modes.no_backslash_escapes, &mut text);
        connection.note(Some(self.rule), StatementOutcome::Rewritten);
        // Whatever the answer will be.
        connection.context.has_own_text = true;
        self.phase =
            Phase::Preparing(connection.reply(self.rule, plan, plan.last_insert_id(), &keys));
        connection.send_own(&text);
        Job::Work(self).with(Step::Blocked)
    }

    /// The client's EXECUTE, of the statement that has the keys.
    fn execute(&self, connection: &mut Connection, whole: &Whole<'_>, reply: Reply) -> Next {
        let query = connection.query_of(whole, self.front);
        let attributes = match query.attributes() {
            Ok(attributes) => attributes,
            Err(what) => {
                return connection
                    .refuse_unsupported(query.header, None, what)
                    .into();
            }
        };
        let text = [attributes, &self.own].concat();
        write_command(COM_QUERY, &text, &mut connection.up);
        connection.answer.expect(Shape::Results);
        connection.forget_command();
        Job::of_reply(reply, self.plan.returning()).with(Step::Consumed(query.header.total()))
    }
}

/// What forbids that an INSERT is prepared out of a text by this name, if anything does.
fn forbids_preparing(
    name: &[u8],
    text: &[u8],
    (modes, text_modes): (&Modes, &TextModes),
) -> Option<Unsupported> {
    let is_told = is_plain_name(name) && !is_own_name(name);
    // ASCII comes of a literal in ASCII alone, which is the same in all of these character sets, but for a backslash in one of them.
    let is_read = (modes.charset != CharsetClass::TrailByteMayBeBackslash || text.is_ascii())
        && !text_modes.loses_backslashes(text);
    match (is_told, is_read) {
        (false, _) => Some(Unsupported::TextPrepare),
        (true, false) => Some(Unsupported::Charset),
        (true, true) => None,
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
