//! The server's state as far as it decides how a statement is read, and how the session finds it out.

use std::collections::BTreeMap;
use std::sync::Arc;

use keywright_rewrite::{CharsetClass, Flavour, Modes, Server};
use keywright_wire::bytes::Reader;
use keywright_wire::protocol::{NO_BACKSLASH_ESCAPES, NULL};

use crate::budget::Held;
use crate::rules::Rules;
use crate::server::results_charset::ResultsCharset;
use crate::server::text_modes::TextModes;
use crate::step::SessionFacts;

/// How many tables are remembered as not hidden by a temporary one; the server is asked again about others.
const SEEN_MAX: usize = 32;

/// Asks for everything that the session must know. One row of text, in no character set of the client's choice. Its columns have short
/// names, since every connection asks, and the server repeats them.
pub(crate) fn probe(server: Server) -> &'static [u8] {
    match server.flavour {
        Flavour::MySql => concat!(
            "SELECT CAST(@@session.sql_mode AS BINARY) m, \
             CAST(CONCAT_WS(' ', @@session.character_set_client, @@session.character_set_connection) AS BINARY) c, \
             CAST(DATABASE() AS BINARY) d, \
             CAST(@@session.auto_increment_increment AS BINARY) n, CAST(@@session.insert_id AS BINARY) i, ",
            "CAST(CONCAT('uuid=', @@global.server_uuid) AS BINARY) s LIMIT 1"
        ),
        Flavour::MariaDb => concat!(
            "SELECT CAST(@@session.sql_mode AS BINARY) m, \
             CAST(CONCAT_WS(' ', @@session.character_set_client, @@session.character_set_connection) AS BINARY) c, \
             CAST(DATABASE() AS BINARY) d, \
             CAST(@@session.auto_increment_increment AS BINARY) n, CAST(@@session.insert_id AS BINARY) i, ",
            "CAST(LEFT(CONCAT('id=', @@global.server_id, ' port=', @@global.port, ' host=', @@global.hostname, \
             ' data=', @@global.datadir), 255) AS BINARY) s LIMIT 1"
        ),
    }
    .as_bytes()
}
/// Its columns.
pub(crate) const PROBE_COLUMNS: usize = 6;

/// How many tables of which the server was asked are remembered as having the column of their rule.
const WITH_KEY_MAX: usize = 32;

/// Schema and table.
pub(crate) type Named = (Vec<u8>, Vec<u8>);

/// A temporary table that was made, or may have been.
#[derive(Debug, Clone)]
pub(crate) struct Temporary {
    pub(crate) name: Named,
    /// It may not exist. The session's state counts as not known while there is such a table.
    pub(crate) is_doubtful: bool,
}

/// What is known of temporary tables that are made where the proxy does not see it: by procedures, EXECUTE and RENAME. Stored
/// functions and triggers could make them too; the proxy does not follow those, since any statement may call them.
#[derive(Debug, Clone, Default)]
pub(crate) enum Unseen {
    /// None was made.
    #[default]
    None,
    /// Any may have been, but for those that hide these.
    Except(Vec<Named>),
}

/// A statement that was prepared out of a text.
#[derive(Debug, Clone)]
pub(crate) struct TextStatement {
    pub(crate) name: Vec<u8>,
    /// The rule of its table when it was prepared.
    pub(crate) rule: usize,
    pub(crate) text: Vec<u8>,
    /// The text's memory, once it is to be kept.
    pub(crate) _held: Option<Arc<Held>>,
    /// Names without schema and the text itself were read in this state.
    pub(crate) database: Option<Vec<u8>>,
    pub(crate) modes: Modes,
    pub(crate) read_in: TextModes,
    /// A later statement may have prepared another one of this name.
    pub(crate) is_doubtful: bool,
}

/// State of the server's session.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// How the server reads text.
    pub(crate) modes: Modes,
    /// By what it prepares text, beyond what that says.
    pub(crate) text_modes: TextModes,
    /// The character set of the client's results, once a name was met for which that matters.
    pub(crate) results: Option<ResultsCharset>,
    /// Whether all of this is up to date; if not, the server is asked before the next statement on a rule's table.
    pub(crate) known: bool,
    pub(crate) database: Option<Vec<u8>>,
    pub(crate) increment: u64,
    /// The client has set insert_id for its next INSERT, which is passed on untouched. Valid only while `known`.
    pub(crate) insert_id_set: bool,
    /// Temporary tables that were made, or may have been, whose names are those of tables with rules.
    pub(crate) temporary: Vec<Temporary>,
    /// Temporary tables that were made where the session does not see it.
    pub(crate) unseen: Unseen,
    /// Statements on rules' tables that were prepared out of a text, by name.
    pub(crate) texts: BTreeMap<Vec<u8>, TextStatement>,
    /// Tables of which the server was asked and that have the column of their rule, and whether that is NOT NULL.
    with_key: Vec<(Named, bool)>,
    /// Tables may have changed since the last schema refresh.
    pub(crate) doubts_tables: bool,
    /// [`crate::SchemaChanges::defined`] as far as that was taken in.
    pub(crate) defined: u64,
    /// How often this connection alone had reason to doubt its tables.
    pub(crate) doubts: u64,
    /// Which server it is, in the words of the store; `None`: it was not asked yet.
    pub(crate) identity: Option<Arc<[u8]>>,
    /// Whether the server may still have a statement of the proxy's own, with keys that are used up.
    pub(crate) has_own_text: bool,
}

impl Context {
    pub(crate) fn new(facts: &SessionFacts) -> Self {
        Self {
            modes: Modes {
                no_backslash_escapes: facts.status & NO_BACKSLASH_ESCAPES != 0,
                charset: CharsetClass::of_collation_id(facts.collation),
                ..Modes::plain(facts.server)
            },
            text_modes: TextModes::default(),
            results: None,
            known: false,
            database: facts.database.clone(),
            increment: 1,
            insert_id_set: false,
            temporary: Vec::new(),
            unseen: Unseen::None,
            texts: BTreeMap::new(),
            with_key: Vec::new(),
            doubts_tables: false,
            defined: 0,
            doubts: 0,
            identity: None,
            has_own_text: false,
        }
    }

    /// As behind a login, but for what is known of tables.
    pub(crate) fn reset(&mut self, facts: &SessionFacts) {
        *self = Self {
            doubts_tables: self.doubts_tables,
            defined: self.defined,
            doubts: self.doubts,
            identity: self.identity.take(),
            ..Self::new(facts)
        };
    }

    /// Anything may have changed.
    pub(crate) fn doubt(&mut self) {
        self.known = false;
        self.forget_keys();
        self.doubt_temporary();
    }

    /// Tables may have become others.
    pub(crate) fn forget_keys(&mut self) {
        self.with_key.clear();
    }

    /// Tables may have become others.
    pub(crate) fn doubt_tables(&mut self) {
        self.doubts_tables = true;
        self.doubts = self.doubts.wrapping_add(1);
        self.forget_keys();
    }

    /// Any of them may have been dropped, or have another name.
    pub(crate) fn doubt_temporary(&mut self) {
        for table in &mut self.temporary {
            table.is_doubtful = true;
        }
    }

    /// Rows go into a table with keys. `fires`: it may have a trigger, which may drop a temporary one.
    pub(crate) fn note_rows(&mut self, fires: bool) {
        if (fires || self.doubts_tables) && !self.temporary.is_empty() {
            self.doubt();
        }
    }

    /// Any may have been made.
    pub(crate) fn doubt_unseen(&mut self) {
        self.unseen = Unseen::Except(Vec::new());
    }

    /// None hides this table.
    pub(super) fn note_seen(&mut self, table: &Named) {
        if let Unseen::Except(seen) = &mut self.unseen {
            if seen.len() >= SEEN_MAX {
                seen.clear();
            }
            seen.push(table.clone());
        }
    }

    /// A name stands for another table, on this connection only: statements prepared for the earlier one are checked again.
    pub(crate) fn note_renamed(&mut self) {
        self.doubts = self.doubts.wrapping_add(1);
    }

    /// Takes in how often tables were changed.
    pub(crate) fn note_defined(&mut self, defined: u64) {
        if self.defined != defined {
            self.defined = defined;
            self.doubts_tables = true;
            self.forget_keys();
        }
    }

    /// Whether a table is known to have the column of its rule.
    pub(crate) fn has_key(&self, schema: &[u8], table: &[u8]) -> bool {
        self.is_not_null(schema, table).is_some()
    }

    /// Whether that is NOT NULL, of a table that is known to have it.
    pub(crate) fn is_not_null(&self, schema: &[u8], table: &[u8]) -> Option<bool> {
        let mut tables = self.with_key.iter();
        let noted = tables.find(|((of, name), _)| of == schema && name == table);
        noted.map(|(_, is_not_null)| *is_not_null)
    }

    /// Notes that it has.
    pub(crate) fn note_key(&mut self, table: Named, is_not_null: bool) {
        if self.with_key.len() >= WITH_KEY_MAX {
            self.with_key.clear();
        }
        self.with_key.push((table, is_not_null));
    }

    /// Takes in the row that [`probe`] asked for. False if that is not what it is. The server's identity is the one in `rules` if
    /// they have it, so that connections have no copies of their own.
    pub(crate) fn learn(&mut self, row: &[u8], rules: &Rules) -> bool {
        let mut reader = Reader(row);
        let (Some(mode), Some(charsets)) = (reader.text(), reader.text()) else {
            return false;
        };
        let database = match reader.0.first().copied() {
            Some(NULL) => {
                reader.u8();
                None
            }
            Some(_) | None => match reader.text() {
                Some(name) => Some(name.to_vec()),
                None => return false,
            },
        };
        let mut number = || -> Option<u64> {
            let text = reader.text()?;
            std::str::from_utf8(text).ok()?.parse().ok()
        };
        // As many keys as rows are asked for by it: 0 is none.
        let increment = number().filter(|increment| *increment > 0);
        let (Some(increment), Some(insert_id)) = (increment, number()) else {
            return false;
        };
        let Some(identity) = reader.text() else {
            return false;
        };
        let named = rules.server(identity);
        self.identity = Some(named.unwrap_or_else(|| Arc::from(identity)));
        let modes = SqlModes::of(mode);
        self.modes.ansi_quotes = modes.ansi_quotes;
        self.modes.no_backslash_escapes = modes.no_backslash_escapes;
        self.modes.no_auto_value_on_zero = Some(modes.no_auto_value_on_zero);
        self.modes.strict = Some(modes.strict);
        self.modes.empty_is_null = modes.empty_is_null;
        let charset = charsets.split(|byte| *byte == b' ').next();
        self.modes.charset = CharsetClass::of_name(charset.unwrap_or_default());
        self.text_modes.learn(mode, charsets);
        self.results = None;
        self.database = database;
        self.increment = increment;
        self.insert_id_set = insert_id != 0;
        self.known = true;
        true
    }
}

/// What of sql_mode the session must know.
#[derive(Default)]
struct SqlModes {
    ansi_quotes: bool,
    no_backslash_escapes: bool,
    no_auto_value_on_zero: bool,
    strict: bool,
    empty_is_null: bool,
}

impl SqlModes {
    /// Of the variable's value, which is read once: every connection asks for it.
    fn of(value: &[u8]) -> Self {
        let mut modes = Self::default();
        for name in value.split(|byte| *byte == b',') {
            match name {
                b"ANSI_QUOTES" => modes.ansi_quotes = true,
                b"NO_BACKSLASH_ESCAPES" => modes.no_backslash_escapes = true,
                b"NO_AUTO_VALUE_ON_ZERO" => modes.no_auto_value_on_zero = true,
                b"EMPTY_STRING_IS_NULL" => modes.empty_is_null = true,
                b"STRICT_TRANS_TABLES" | b"STRICT_ALL_TABLES" => modes.strict = true,
                _ => {}
            }
        }
        modes
    }
}

/// Whether a SET changes nothing that the session must know: a transaction's properties, or user variables with plain values.
/// Drivers send such statements all the time.
pub(crate) fn is_harmless_set(text: &[u8]) -> bool {
    let text: Vec<u8> = text
        .iter()
        .take(SET_BYTES_MAX)
        .map(u8::to_ascii_lowercase)
        .collect();
    if text.len() == SET_BYTES_MAX || text.contains(&b',') || text.contains(&b'(') {
        return false;
    }
    let mut words = text
        .split(|byte| byte.is_ascii_whitespace() || *byte == b'=')
        .filter(|word| !word.is_empty());
    if words.next() != Some(b"set") {
        return false;
    }
    match words.next() {
        Some(b"autocommit") => true,
        Some(b"session") => words.next() == Some(b"transaction"),
        Some(b"transaction") => true,
        Some(word) => word.first() == Some(&b'@') && word.get(1) != Some(&b'@') && is_name(word),
        None => false,
    }
}

/// Longest SET that is read, bytes.
const SET_BYTES_MAX: usize = 256;

fn is_name(variable: &[u8]) -> bool {
    variable
        .iter()
        .skip(1)
        .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
