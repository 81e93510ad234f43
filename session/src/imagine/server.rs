//! The imagined server: it answers questions about its state, and answers everything else with OK.

use keywright_core::KeyBatch;
use keywright_rewrite::{KeyForm, Load, RowsFrom, StateChange, kind, use_target};
use keywright_wire::bytes::write_packet;
use keywright_wire::packets::packets;
use keywright_wire::protocol::{
    AUTOCOMMIT, COM_QUERY, COM_STMT_CLOSE, COM_STMT_PREPARE, LOCAL_INFILE,
};
use keywright_wire::rows::{TextResult, write_column, write_integer_column, write_ok};

use crate::answer::last_insert_id::ASK_LAST_INSERT_ID;
use crate::connection::Connection;
use crate::insert::loading::START;
use crate::server::column_names::ASK_RESULTS_CHARSET;
use crate::server::context::{Named, probe};
use crate::server::probe::Probe;
use crate::server::temporary::SHOW_CREATE;
use crate::step::KeyRequest;

/// utf8mb4_general_ci.
pub(super) const COLLATION: u16 = 45;

/// What the imagined server answers when it is asked for the state of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The database in use.
    pub database: Option<Vec<u8>>,
    /// `@@sql_mode`.
    pub sql_mode: Vec<u8>,
    /// `@@character_set_client`.
    pub charset: Vec<u8>,
    /// `@@auto_increment_increment`.
    pub increment: u64,
}

/// A table's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// The visible ones, in their order.
    Known(Vec<Vec<u8>>),
    /// There is no such table.
    NoTable,
    /// They are not known.
    NotKnown,
}

/// What the imagined server and source of keys are asked for.
pub trait Imagine {
    /// Example keys.
    fn keys(&mut self, request: KeyRequest) -> KeyBatch;
    /// The columns of a table.
    fn columns(&mut self, schema: &[u8], table: &[u8]) -> Columns;
}

/// What nobody knows of a table.
#[derive(Debug)]
pub(super) enum Unknown {
    /// Its columns.
    Columns(Named),
    /// Whether its key column is NOT NULL.
    Null(Named),
}

/// The server, as far as statements and the session's questions show its state.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) state: State,
    /// The texts that it was sent, apart from the session's own questions.
    pub(super) sent: Vec<Vec<u8>>,
    /// What it was asked and nobody knows.
    pub(super) unknown: Option<Unknown>,
    /// It was asked for a value that the statement has it compute.
    pub(super) computes: bool,
    /// A statement set sql_mode to something that its text does not show.
    pub(super) lost_sql_mode: bool,
    /// The client has set insert_id for its next INSERT.
    has_insert_id: bool,
    /// Temporary tables that were made.
    temporary: Vec<Named>,
}

impl Server {
    /// Behind a login.
    pub(super) fn new(state: State) -> Self {
        Self {
            state,
            sent: Vec::new(),
            unknown: None,
            computes: false,
            lost_sql_mode: false,
            has_insert_id: false,
            temporary: Vec::new(),
        }
    }

    /// Answers commands as a server would.
    pub(super) fn serve(
        &mut self,
        of: &Connection,
        commands: &[u8],
        answers: &mut Vec<u8>,
        imagine: &mut dyn Imagine,
    ) {
        for (_, payload) in packets(commands).unwrap_or_default() {
            match payload.split_first() {
                Some((&COM_QUERY, text)) if text == probe(of.context.modes.server) => {
                    self.tell_state(answers)
                }
                Some((&COM_QUERY, ASK_LAST_INSERT_ID)) => {
                    write_row(&[b"1"], vec![Some(b"0")], answers);
                }
                // As behind SET NAMES.
                Some((&COM_QUERY, ASK_RESULTS_CHARSET)) => {
                    write_row(&[b"1"], vec![Some(self.state.charset.as_slice())], answers);
                }
                Some((&COM_QUERY, START)) => write_ok(1, AUTOCOMMIT, answers),
                Some((&COM_QUERY, text)) if text.starts_with(b"DO LAST_INSERT_ID(") => {
                    write_ok(1, AUTOCOMMIT, answers);
                }
                Some((&COM_QUERY, text)) if text.starts_with(SHOW_CREATE) => {
                    self.tell_temporary(text, answers);
                }
                Some((&COM_QUERY, _)) if matches!(of.probe, Some(Probe::Computed { .. })) => {
                    self.computes = true;
                    write_packet(NOT_COMPUTED, 1, answers);
                }
                Some((&COM_QUERY, text)) => {
                    self.follow(of, text);
                    self.sent.push(text.to_vec());
                    if wants_file(of, text) {
                        write_packet(&[LOCAL_INFILE, b'f'], 1, answers);
                    } else {
                        write_ok(1, AUTOCOMMIT, answers);
                    }
                }
                // Whether it is there nobody knows here: an error of another kind does not say.
                Some((&COM_STMT_PREPARE, _)) if matches!(of.probe, Some(Probe::Missing)) => {
                    write_packet(NOT_COMPUTED, 1, answers);
                }
                // Nor what an account may.
                Some((&COM_STMT_PREPARE, _)) if matches!(of.probe, Some(Probe::Insert)) => {
                    write_packet(NOT_COMPUTED, 1, answers);
                }
                // What is in tables nobody knows here.
                Some((&COM_STMT_PREPARE, _)) if matches!(of.probe, Some(Probe::Result)) => {
                    write_packet(NO_TABLE, 1, answers);
                }
                Some((&COM_STMT_PREPARE, _)) if matches!(of.probe, Some(Probe::KeyType)) => {
                    self.computes = true;
                    write_packet(NO_TABLE, 1, answers);
                }
                Some((&COM_STMT_PREPARE, text)) => {
                    self.tell_columns(holds_integers(of), text, answers, imagine);
                }
                Some((&COM_STMT_CLOSE, _)) => {}
                // None: the end of a file.
                Some(_) | None => write_ok(1, AUTOCOMMIT, answers),
            }
        }
    }

    fn tell_state(&self, answers: &mut Vec<u8>) {
        let increment = self.state.increment.to_string();
        let row = vec![
            Some(self.state.sql_mode.as_slice()),
            Some(&self.state.charset),
            self.state.database.as_deref(),
            Some(increment.as_bytes()),
            Some(if self.has_insert_id { b"1" } else { b"0" }),
            Some(b""),
        ];
        write_row(&[b"1", b"2", b"3", b"4", b"5", b"6"], row, answers);
    }

    /// The answer to ``SHOW CREATE TABLE `d`.`t` ``, of which the session asks whether it is a temporary one.
    fn tell_temporary(&self, text: &[u8], answers: &mut Vec<u8>) {
        let parts = quoted_parts(text);
        let is_asked = |(schema, name): &Named| parts == [schema.as_slice(), name];
        if self.temporary.iter().any(is_asked) {
            let row = vec![Some(b"t".as_slice()), Some(b"CREATE TEMPORARY TABLE `t` (")];
            write_row(&[b"1", b"2"], row, answers);
        } else {
            write_packet(NO_TABLE, 1, answers);
        }
    }

    /// The answer to a `SELECT * FROM t` or ``SELECT `id` FROM t`` that is prepared.
    fn tell_columns(
        &mut self,
        holds_integers: bool,
        text: &[u8],
        answers: &mut Vec<u8>,
        imagine: &mut dyn Imagine,
    ) {
        let mut parts = quoted_parts(text);
        let asked = (!text.starts_with(b"SELECT *") && !parts.is_empty()).then(|| parts.remove(0));
        let table = parts.pop().unwrap_or_default();
        let schema = parts.pop().or_else(|| self.state.database.clone());
        let schema = schema.unwrap_or_default();
        let names = match (imagine.columns(&schema, &table), asked) {
            (Columns::Known(names), None) => names,
            (Columns::Known(mut names), Some(asked)) => {
                names.retain(|name| name.eq_ignore_ascii_case(&asked));
                if names.is_empty() {
                    write_packet(NO_COLUMN, 1, answers);
                    return;
                }
                names
            }
            (other @ (Columns::NoTable | Columns::NotKnown), asked) => {
                if other == Columns::NotKnown {
                    let named = (schema, table);
                    self.unknown = Some(match asked.is_some() {
                        true => Unknown::Null(named),
                        false => Unknown::Columns(named),
                    });
                }
                write_packet(NO_TABLE, 1, answers);
                return;
            }
        };
        let count = u16::try_from(names.len()).unwrap_or(u16::MAX);
        let mut payload = vec![0, 1, 0, 0, 0];
        payload.extend(count.to_le_bytes());
        payload.extend([0; 5]);
        let mut sequence = write_packet(&payload, 1, answers);
        for name in names.iter().take(usize::from(count)) {
            sequence = match holds_integers {
                true => write_integer_column(name, sequence, answers),
                false => write_column(name, COLLATION, false, sequence, answers),
            };
        }
    }

    /// What a statement changes of the state.
    fn follow(&mut self, of: &Connection, text: &[u8]) {
        let modes = of.context.modes;
        let facts = kind(text, &modes).facts();
        match facts.rows {
            RowsFrom::Written | RowsFrom::File => self.has_insert_id = false,
            RowsFrom::Never
            | RowsFrom::BehindSet
            | RowsFrom::OfText
            | RowsFrom::Prepared
            | RowsFrom::Block
            | RowsFrom::Unseen
            | RowsFrom::Blank => {}
        }
        match facts.changes {
            StateChange::Database => {
                if let Some(name) = use_target(text, &modes) {
                    self.state.database = Some(name);
                }
            }
            StateChange::Variables => self.follow_set(text),
            StateChange::TemporaryMade => {
                let made = of.tables_named(text);
                self.temporary.extend(made.unwrap_or_default());
            }
            StateChange::TablesDropped => {
                let dropped = of.tables_named(text).unwrap_or_default();
                self.temporary.retain(|there| !dropped.contains(there));
            }
            StateChange::Nothing
            | StateChange::Definitions
            | StateChange::Texts
            | StateChange::Anything => {}
        }
    }

    fn follow_set(&mut self, text: &[u8]) {
        let lower = text.to_ascii_lowercase();
        if let Some(at) = find(&lower, b"set names ") {
            let name = lower.get(at + b"set names ".len()..).unwrap_or_default();
            let quotes = |byte: &u8| matches!(byte, b'\'' | b'"' | b' ');
            let name: Vec<u8> = name
                .iter()
                .copied()
                .skip_while(quotes)
                .take_while(u8::is_ascii_alphanumeric)
                .collect();
            self.state.charset = name;
        }
        self.has_insert_id |= assigned(&lower, b"insert_id") != Assigned::No;
        match assigned(&lower, b"sql_mode") {
            Assigned::No => {}
            Assigned::To(mode) => self.state.sql_mode = mode,
            Assigned::Unseen => self.lost_sql_mode = true,
        }
    }
}

/// Whether the column that is asked about has room for its rule's numbers: those of a table that is only imagined do.
fn holds_integers(of: &Connection) -> bool {
    let rule = match of.probe {
        Some(Probe::Key(_, index)) => of.rules.rules().get(index),
        Some(_) | None => None,
    };
    rule.is_some_and(|rule| rule.form == KeyForm::Integer)
}

/// Whether it is a LOAD DATA LOCAL.
fn wants_file(of: &Connection, text: &[u8]) -> bool {
    let modes = of.context.modes;
    kind(text, &modes).facts().rows == RowsFrom::File
        && Load::read(text, &modes).is_ok_and(|load| load.is_local())
}

/// A result of one row.
fn write_row(columns: &[&[u8]], row: Vec<Option<&[u8]>>, out: &mut Vec<u8>) {
    let made = TextResult {
        sequence: 1,
        deprecate_eof: true,
        extended: false,
        status: AUTOCOMMIT,
        collation: COLLATION,
        columns,
    };
    made.write(std::iter::once(row), out);
}

/// No such table, as a server writes it.
const NO_TABLE: &[u8] = b"\xFF\x7A\x04#42S02no such table";
/// Nothing is computed here.
const NOT_COMPUTED: &[u8] = b"\xFF\x51\x04#HY000unknown";
/// No such column.
const NO_COLUMN: &[u8] = b"\xFF\x1E\x04#42S22no such column";

/// The names between backquotes, at the end of a question of the session's.
fn quoted_parts(text: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut bytes = text.iter().copied().peekable();
    while bytes.by_ref().any(|byte| byte == b'`') {
        let mut part = Vec::new();
        while let Some(byte) = bytes.next() {
            if byte == b'`' && bytes.next_if_eq(&b'`').is_none() {
                break;
            }
            part.push(byte);
        }
        parts.push(part);
    }
    parts
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, word)
}

/// What a SET makes of a variable.
#[derive(Debug, PartialEq, Eq)]
enum Assigned {
    No,
    To(Vec<u8>),
    /// To something that is not in the text.
    Unseen,
}

/// Reads the last assignment of a variable of the session's in a SET in lower case.
fn assigned(lower: &[u8], name: &[u8]) -> Assigned {
    let mut assigned = Assigned::No;
    for at in memchr::memmem::find_iter(lower, name) {
        let (before, after) = lower.split_at(at);
        let after = after.get(name.len()..).unwrap_or_default();
        let is_own = before
            .last()
            .is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let is_user_variable = before.ends_with(b"@") && !before.ends_with(b"@@");
        let is_global =
            before.trim_ascii_end().ends_with(b"global") || before.ends_with(b"global.");
        let value = after.strip_prefix(b"`").unwrap_or(after).trim_ascii_start();
        let value = value.strip_prefix(b":").unwrap_or(value);
        let Some(value) = value.strip_prefix(b"=") else {
            continue;
        };
        if !is_own || is_user_variable || is_global {
            continue;
        }
        assigned = match value.trim_ascii_start().split_first() {
            Some((quote @ (b'\'' | b'"'), rest)) => Assigned::To(
                rest.iter()
                    .take_while(|byte| *byte != quote)
                    .map(u8::to_ascii_uppercase)
                    .collect(),
            ),
            Some(_) | None => Assigned::Unseen,
        };
    }
    assigned
}
