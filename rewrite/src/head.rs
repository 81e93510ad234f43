//! The head of an INSERT or REPLACE: everything up to the table's name.

use crate::cursor::Cursor;
use crate::modes::{CharsetClass, Flavour, Modes};
use crate::name::TableName;
use crate::refusal::{Unread, Unsupported};
use crate::scan::Stop;
use crate::token::Kind;

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
    /// Reads a statement up to its table's name.
    ///
    /// # Errors
    /// [`Unread::Refused`] when it ends before, or is no INSERT or REPLACE; [`Unread::Unsupported`] when it cannot be known
    /// which table is meant.
    pub fn read(text: &[u8], modes: &Modes) -> Result<Self, Unread> {
        let mut cursor = Cursor::new(text, modes);
        let prefix = cursor.set_statement()?;
        let prefixed = prefix.is_some();
        let mut forbidden = prefix.flatten();
        let analyze = cursor.accept("ANALYZE")?;
        if analyze && cursor.accept("FORMAT")? {
            cursor.accept_mark(b'=')?;
            cursor.token()?;
        }
        let verb = if cursor.accept("INSERT")? {
            Verb::Insert
        } else if cursor.accept("REPLACE")? {
            Verb::Replace
        } else {
            return Err(Unread::Refused);
        };
        let delayed = cursor.accept("DELAYED")?;
        if !delayed {
            let _ = cursor.accept("LOW_PRIORITY")? || cursor.accept("HIGH_PRIORITY")?;
        }
        let ignore = cursor.accept("IGNORE")?;
        cursor.accept("INTO")?;
        let table = cursor.table_name()?;
        if modes.charset == CharsetClass::TrailByteMayBeBackslash && !text.is_ascii() {
            forbidden = Some(Unsupported::Charset);
        }
        Ok(Self {
            verb,
            table,
            analyze,
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
                forbidden = forbidden.or(Some(Unsupported::SetStatement("a parameter")));
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
