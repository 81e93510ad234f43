//! The head of an INSERT or REPLACE: everything up to the table's name.

use crate::lex::cursor::Cursor;
use crate::lex::name::TableName;
use crate::lex::scan::Stop;
use crate::lex::swe7::is_letter;
use crate::lex::token::{Kind, Token};
use crate::modes::{CharsetClass, Flavour, Modes};
use crate::refusal::{Unread, Unsupported};

/// Which statement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// INSERT.
    Insert,
    /// REPLACE.
    Replace,
}

/// The beginning of an INSERT or REPLACE, read to find out whether a rule is for its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertHead {
    /// INSERT or REPLACE.
    pub verb: Verb,
    /// The table's name as written.
    pub table: TableName,
    /// MariaDB's `ANALYZE INSERT`: carried out, and answered with a result set.
    pub analyze: bool,
    /// Nothing follows the name: if the text is only the beginning of a statement, the name may go on.
    pub ends_text: bool,
    pub(crate) ignore: bool,
    pub(crate) delayed: bool,
    /// `SET STATEMENT … FOR` stands before it.
    pub(crate) prefixed: bool,
    /// Where the rest starts.
    pub(crate) end: usize,
    pub(crate) inside: bool,
    pub(crate) set_var: bool,
    /// A prefix that forbids rewriting.
    pub(crate) forbidden: Option<Unsupported>,
}

impl InsertHead {
    /// Whether the table's name would go on in swe7, by what stands directly behind it.
    pub fn goes_on_in_swe7(&self, text: &[u8]) -> bool {
        let behind = text.get(self.end..).unwrap_or_default();
        is_letter(behind.get(..1).unwrap_or_default())
    }

    /// Reads a statement up to its table's name.
    ///
    /// # Errors
    /// [`Unread::Refused`] when it ends before, or is no INSERT or REPLACE; [`Unread::Unsupported`] when it cannot be known
    /// which table is meant.
    pub fn read(text: &[u8], modes: &Modes) -> Result<Self, Unread> {
        let mut cursor = Cursor::new(text, modes);
        let mut prefix = None;
        let mut analyze = false;
        let mut verb = cursor.verb()?;
        if verb.is_none() {
            prefix = cursor.set_statement()?;
            analyze = cursor.accept("ANALYZE")?;
            if analyze && cursor.accept("FORMAT")? {
                cursor.accept_mark(b'=')?;
                cursor.token()?;
            }
            verb = cursor.verb()?;
        }
        let verb = verb.ok_or(Unread::Refused)?;
        let Modifiers { delayed, ignore } = cursor.modifiers()?;
        if ignore && verb == Verb::Replace {
            return Err(Unread::Refused);
        }
        let prefixed = prefix.is_some();
        let mut forbidden = prefix.flatten();
        let table = cursor.table_name()?;
        let mut behind = cursor;
        let ends_text = behind.skip_blanks().is_err() || behind.ended();
        if modes.charset == CharsetClass::TrailByteMayBeBackslash && !text.is_ascii() {
            forbidden = Some(Unsupported::Charset);
        }
        Ok(Self {
            verb,
            table,
            analyze,
            ends_text,
            ignore,
            delayed,
            prefixed,
            end: cursor.at,
            inside: cursor.inside,
            set_var: cursor.set_var,
            forbidden,
        })
    }
}

/// What stands between the verb and the table.
pub(crate) struct Modifiers {
    delayed: bool,
    ignore: bool,
}

/// Variables that change how an INSERT is carried out.
const DECISIVE: [&str; 9] = [
    "sql_mode",
    "insert_id",
    "last_insert_id",
    "identity",
    "auto_increment_increment",
    "auto_increment_offset",
    "character_set_client",
    "collation_connection",
    "character_set_connection",
];

impl Cursor<'_> {
    /// Past INSERT or REPLACE, if that stands here.
    fn verb(&mut self) -> Result<Option<Verb>, Unread> {
        let mut ahead = *self;
        let token = ahead.token()?;
        let verb = if token.is(self.text, "INSERT") {
            Verb::Insert
        } else if token.is(self.text, "REPLACE") {
            Verb::Replace
        } else {
            return Ok(None);
        };
        *self = ahead;
        Ok(Some(verb))
    }

    /// Past a priority, IGNORE and INTO, in this order.
    pub(crate) fn modifiers(&mut self) -> Result<Modifiers, Unread> {
        let mut modifiers = Modifiers {
            delayed: false,
            ignore: false,
        };
        let mut ahead = *self;
        let mut token = ahead.token()?;
        let text = self.text;
        let is = |token: Token, word| token.is(text, word);
        let next = |cursor: &mut Self, ahead: &mut Self| {
            *cursor = *ahead;
            ahead.token()
        };
        modifiers.delayed = is(token, "DELAYED");
        if modifiers.delayed || is(token, "LOW_PRIORITY") || is(token, "HIGH_PRIORITY") {
            token = next(self, &mut ahead)?;
        }
        modifiers.ignore = is(token, "IGNORE");
        if modifiers.ignore {
            token = next(self, &mut ahead)?;
        }
        if is(token, "INTO") {
            *self = ahead;
        }
        Ok(modifiers)
    }

    /// Past MariaDB's `SET STATEMENT name = value, … FOR` if it stands here; then what of it forbids rewriting, if anything.
    pub(crate) fn set_statement(&mut self) -> Result<Option<Option<Unsupported>>, Unread> {
        let mut ahead = *self;
        let mut forbidden = None;
        if self.modes.server.flavour != Flavour::MariaDb
            || !ahead.accept("SET")?
            || !ahead.accept("STATEMENT")?
        {
            return Ok(None);
        }
        loop {
            let name = ahead.path()?.last;
            forbidden = forbidden.or(DECISIVE
                .iter()
                .find(|known| known.as_bytes().eq_ignore_ascii_case(&name))
                .map(|known| Unsupported::SetStatement(known)));
            if !matches!(ahead.token()?.kind, Kind::Mark(b'=') | Kind::Assign) {
                return Err(Unread::Refused);
            }
            let (stop, parameter) = ahead.skip_to_for()?;
            if parameter {
                forbidden = forbidden.or(Some(Unsupported::SetStatementParameter));
            }
            if stop == Stop::Clause {
                break;
            }
        }
        *self = ahead;
        Ok(Some(forbidden))
    }

    /// Past the value of a variable and the `,` or `FOR` behind it; whether a parameter was in it.
    fn skip_to_for(&mut self) -> Result<(Stop, bool), Unread> {
        let mut depth = 0_u32;
        let mut parameter = false;
        loop {
            let token = self.token()?;
            match token.kind {
                Kind::End | Kind::Mark(b';') => return Err(Unread::Refused),
                Kind::Mark(b'(') => depth = depth.saturating_add(1),
                Kind::Mark(b')') => depth = depth.saturating_sub(1),
                Kind::Mark(b',') if depth == 0 => return Ok((Stop::Comma, parameter)),
                Kind::Word if depth == 0 && token.is(self.text, "FOR") => {
                    return Ok((Stop::Clause, parameter));
                }
                Kind::Parameter => parameter = true,
                _ => {}
            }
        }
    }
}
