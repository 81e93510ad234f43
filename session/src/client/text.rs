//! A statement sent as text: what it is, and whether it can be passed on untouched.

use std::borrow::Cow;

use keywright_rewrite::{
    Kind, NextValue, RowsFrom, StateChange, TableName, Unsupported, kind, load_target,
    named_statement, next_value, prepare_source, tables_touched, use_target, without_terminator,
};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{HEADER_BYTES, Header, Joined, joined};
use keywright_wire::values::BadValue;

use crate::answer::after::{After, Texts};
use crate::answer::reply::names_row_count;
use crate::client::attributes::{UNKNOWN_TYPE, attributes_of};
use crate::client::decode::Undecoded;
use crate::connection::Connection;
use crate::insert::leaves_out::Native;
use crate::job::Next;
use crate::server::context::{Named, TextStatement, is_harmless_set};

/// A command that has come whole.
pub(crate) struct Whole<'a> {
    /// Of all its packets.
    pub(crate) header: Header,
    /// The client's bytes, at whose front it is.
    bytes: &'a [u8],
    /// What follows the command's own byte.
    pub(crate) payload: Cow<'a, [u8]>,
}

impl<'a> Whole<'a> {
    pub(crate) fn new(header: Header, bytes: &'a [u8], payload: Cow<'a, [u8]>) -> Self {
        Self {
            header,
            bytes,
            payload,
        }
    }

    /// Its text, if that is to be prepared.
    pub(crate) fn to_prepare(&self) -> Query<'_> {
        Query {
            text: without_terminator(&self.payload),
            ..self.unread()
        }
    }

    /// Its text of so many bytes, behind so many of attributes, as it was read before.
    pub(crate) fn query(&self, front: usize, text_bytes: usize) -> Query<'_> {
        let text = self.payload.get(front..).unwrap_or_default();
        Query {
            front,
            text: text.get(..text_bytes).unwrap_or_default(),
            ..self.unread()
        }
    }

    /// One whose text is not found.
    fn unread(&self) -> Query<'_> {
        Query {
            header: self.header,
            bytes: self.bytes,
            payload: &self.payload,
            front: 0,
            text: &[],
        }
    }
}

/// A statement sent as text, to be carried out or prepared, at the front of the client's bytes.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    pub(crate) header: Header,
    pub(crate) bytes: &'a [u8],
    payload: &'a [u8],
    /// Bytes of attributes before the text.
    pub(crate) front: usize,
    pub(crate) text: &'a [u8],
}

impl<'a> Query<'a> {
    /// What stands before the text, to be sent with what it is rewritten to.
    pub(crate) fn attributes(&self) -> Result<&'a [u8], Unsupported> {
        attributes_of(self.payload, self.front)
    }

    /// The same with another text in place of the client's.
    pub(crate) fn with_text<'b>(self, text: &'b [u8]) -> Query<'b>
    where
        'a: 'b,
    {
        Query { text, ..self }
    }

    /// Where the text begins in the client's bytes.
    pub(crate) fn text_at(&self) -> usize {
        self.front.saturating_add(HEADER_BYTES + 1)
    }
}

/// What is known of one statement before it is carried out.
pub(crate) enum Reading {
    /// Pass it on.
    Pass(After),
    /// It is an INSERT or REPLACE on a table with a rule, or may be.
    Insert,
    /// It is a LOAD DATA or LOAD XML into this table.
    Load(TableName),
    /// It would be one, in a shape that cannot be rewritten; what it changes where it is passed on.
    Unsupported(TableName, Unsupported, After),
    /// It may be one, and it cannot be told into which table.
    Hidden(Unsupported),
    /// It asks for keys of a table with a rule, or may.
    NextValue(NextValue),
    /// PREPARE of one out of a text.
    Prepare(Box<TextStatement>),
    /// EXECUTE of one that was prepared so.
    Execute(Vec<u8>),
}

impl Connection {
    pub(crate) fn query(&mut self, header: Header, bytes: &[u8]) -> Result<Next, Undecoded> {
        let (header, payload) = match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => (header, payload),
            Joined::More(_) if self.is_for_no_rule(header, bytes) => {
                return Ok(self.pass_unread(header, bytes, After::Nothing));
            }
            Joined::More(at_least) => return Err(Undecoded::More { at_least }),
            Joined::TooLong => return Ok(self.long_query(header, bytes)),
        };
        let whole = Whole::new(header, bytes, payload);
        match self.front_of(&whole.payload) {
            Ok(front) => Ok(self.whole_query(self.query_of(&whole, front))),
            Err(BadValue::Malformed) => Err(Undecoded::OutOfOrder),
            // Its text is not found.
            Err(BadValue::Type) => Ok(self.unsupported(whole.unread(), None, UNKNOWN_TYPE)),
        }
    }

    /// One that has come whole.
    fn whole_query(&mut self, query: Query<'_>) -> Next {
        match self.is_beyond_reading(query.text) {
            Ok(false) => {}
            Ok(true) => return self.unsupported(query, None, Unsupported::Blank),
            Err(step) => return step.into(),
        }
        match self.is_several(query.text) {
            true => self.several(query),
            false => self.one(query),
        }
    }

    /// The text of a command, behind so many bytes of attributes.
    pub(crate) fn query_of<'a>(&self, whole: &'a Whole<'_>, front: usize) -> Query<'a> {
        Query {
            front,
            text: self.ended(whole.payload.get(front..).unwrap_or_default()),
            ..whole.unread()
        }
    }

    /// A text up to its end as the server has it.
    fn ended<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let ended = without_terminator(text);
        // What is behind a `;` is a statement of its own where there may be several, and an empty one is an error.
        let is_statement = self.allows_several() && ended.trim_ascii_end().ends_with(b";");
        if is_statement { text } else { ended }
    }

    /// The command at the front, which has come whole; `None` where there is no memory for it any more.
    pub(crate) fn whole_command<'a>(&self, bytes: &'a [u8]) -> Option<Whole<'a>> {
        match joined(Header::read(bytes)?, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => Some(Whole::new(header, bytes, payload)),
            Joined::More(_) | Joined::TooLong => None,
        }
    }

    /// One statement.
    pub(crate) fn one(&mut self, query: Query<'_>) -> Next {
        let kind = kind(query.text, &self.context.modes);
        match self.read_kind(kind, query.text) {
            Err(()) => self.ask_context().into(),
            // The context is known here: otherwise the statement would not be read as an INSERT.
            Ok(Reading::Insert) if self.context.insert_id_set => {
                self.pass_query(query, After::Nothing)
            }
            Ok(Reading::Insert) => self.insert(query, kind),
            Ok(Reading::Load(table)) => self.load(query, &table),
            Ok(Reading::NextValue(next)) => self.next_value(query, next),
            Ok(Reading::Pass(after)) => match self.enter_named(query.header, query.text) {
                Some(step) => step.into(),
                None => self.pass_kind(kind, query, after),
            },
            Ok(Reading::Unsupported(table, what, after)) => {
                let rule = match after.names_text() {
                    true => self.rule_behind(&table),
                    false => match self.rule_now(&table) {
                        Ok(rule) => rule,
                        Err(question) => return self.ask(&question).into(),
                    },
                };
                match rule {
                    Some(_) => self.unsupported_then(query, rule, what, after),
                    None => self.pass_query(query, after),
                }
            }
            Ok(Reading::Hidden(what)) => self.unsupported_then(query, None, what, After::ANYTHING),
            Ok(Reading::Prepare(statement)) => self.prepare_text(query, *statement),
            Ok(Reading::Execute(name)) => self.execute_text(query, &name),
        }
    }

    /// Passes a statement on, after LAST_INSERT_ID() was brought up to date if it could see it.
    pub(crate) fn pass_query(&mut self, query: Query<'_>, after: After) -> Next {
        self.pass_kind(kind(query.text, &self.context.modes), query, after)
    }

    /// The same, where its kind is known.
    pub(crate) fn pass_kind(&mut self, kind: Kind, query: Query<'_>, after: After) -> Next {
        let effect = self.effect_of(kind, query.text);
        if let Some(step) = self.restore_row_count(|| names_row_count(query.text)) {
            return step.into();
        }
        if self.pending_last_insert_id.is_some() && effect.sees {
            return self.update_last_insert_id(effect.counts).into();
        }
        let after = self.note_effect(effect, after);
        self.pass(query.header, query.bytes, Shape::Results, after)
    }

    /// The same of an INSERT for whose rule the server makes the keys, unless it returns its rows.
    pub(crate) fn pass_native_query(&mut self, query: Query<'_>, native: Native) -> Next {
        let effect = self.effect(query.text);
        if self.pending_last_insert_id.is_some() && effect.sees {
            return self.update_last_insert_id(effect.counts).into();
        }
        let after = self.note_effect(effect, After::Nothing);
        self.pass_native(query.header, query.bytes, (Shape::Results, after), native)
    }

    /// Reads one statement. It may never be executed, so nothing is noted yet. `Err`: the server's modes must be known first.
    pub(crate) fn read_statement(&self, text: &[u8]) -> Result<Reading, ()> {
        self.read_kind(kind(text, &self.context.modes), text)
    }

    fn read_kind(&self, kind: Kind, text: &[u8]) -> Result<Reading, ()> {
        let modes = self.context.modes;
        if kind == Kind::NextValue
            && let Some(next) = self.read_next_value(text)?
        {
            return Ok(Reading::NextValue(next));
        }
        let facts = kind.facts();
        Ok(match facts.rows {
            // Where the server's modes are known its table is read once, when it is planned.
            RowsFrom::Written if self.context.known => Reading::Insert,
            RowsFrom::Written if self.may_be_ruled(text) => return Err(()),
            RowsFrom::File | RowsFrom::BehindSet if !self.context.known => return Err(()),
            RowsFrom::File => match load_target(text, &modes) {
                Some(table) => Reading::Load(table),
                None => Reading::Pass(After::Nothing),
            },
            RowsFrom::BehindSet => self.behind_set(text),
            RowsFrom::OfText => self.read_source(prepare_source(text, &modes))?,
            RowsFrom::Prepared => self.read_execute(text),
            RowsFrom::Written
            | RowsFrom::Never
            | RowsFrom::Block
            | RowsFrom::Unseen
            | RowsFrom::Blank => Reading::Pass(self.after_text(text, facts.changes)),
        })
    }

    /// The keys that a statement of this kind asks for, if its table may have a rule. `Err`: the server's modes must be known first.
    pub(crate) fn read_next_value(&self, text: &[u8]) -> Result<Option<NextValue>, ()> {
        if !self.context.known {
            return Err(());
        }
        let next = next_value(text, &self.context.modes);
        Ok(next.filter(|next| self.rule_behind(&next.table).is_some()))
    }

    /// What a statement sent as text changes.
    fn after_text(&self, text: &[u8], changes: StateChange) -> After {
        let modes = &self.context.modes;
        match changes {
            StateChange::Nothing => After::Nothing,
            StateChange::Database => {
                use_target(text, modes).map_or(After::Unknown, After::Database)
            }
            StateChange::Variables if is_harmless_set(text) => After::Nothing,
            StateChange::Variables => After::Unknown,
            StateChange::TemporaryMade => match self.tables_named(text) {
                Some(made) => After::Tables {
                    dropped: Vec::new(),
                    made,
                },
                None => After::ANYTHING,
            },
            StateChange::TablesDropped => match self.tables_named(text) {
                Some(dropped) => After::Tables {
                    dropped,
                    made: Vec::new(),
                },
                None => After::Unknown,
            },
            StateChange::Definitions => After::Defined,
            StateChange::Texts => {
                let name = named_statement(text, modes).map(|name| name.to_ascii_lowercase());
                After::Texts {
                    texts: name.map_or(Texts::Doubtful, Texts::Gone),
                    unknown: false,
                }
            }
            StateChange::Anything => After::ANYTHING,
        }
    }

    /// The tables that a statement makes, changes or drops; `None`: it does not say.
    pub(crate) fn tables_named(&self, text: &[u8]) -> Option<Vec<Named>> {
        let database = self.context.database.as_deref().unwrap_or_default();
        let full = |name: TableName| {
            let schema = name.schema.unwrap_or_else(|| database.to_vec());
            (schema, name.table)
        };
        let tables = tables_touched(text, &self.context.modes)?;
        Some(tables.into_iter().map(full).collect())
    }

    fn read_execute(&self, text: &[u8]) -> Reading {
        let name = named_statement(text, &self.context.modes).map(|name| name.to_ascii_lowercase());
        match name.filter(|name| self.context.may_execute(name)) {
            Some(name) => Reading::Execute(name),
            // It may be a CALL.
            None => Reading::Pass(After::ANYTHING),
        }
    }
}
