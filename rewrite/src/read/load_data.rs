//! Reads a LOAD DATA: its table, its columns, what SET assigns, and what ends a line.

use crate::lex::builtins::has_effects;
use crate::lex::cursor::Cursor;
use crate::lex::name::{NameSpan, TableName};
use crate::lex::scan::{Scanned, Stop};
use crate::lex::token::Kind;
use crate::modes::{CharsetClass, Modes};
use crate::refusal::{LoadConstruct, Unread, Unsupported};

/// A LOAD DATA that was read.
#[derive(Debug, Clone)]
pub struct Load {
    pub(crate) table: TableName,
    pub(crate) local: bool,
    pub(crate) may_skip: bool,
    pub(crate) line_end: Option<u8>,
    /// The columns that fields of a line go to; `None`: all of the table's.
    pub(crate) listed: Option<Vec<NameSpan>>,
    /// The columns that SET assigns to; `None`: there is no SET.
    pub(crate) assigned: Option<Vec<NameSpan>>,
    /// Behind the last token.
    pub(crate) end: usize,
    pub(crate) effects: bool,
    pub(crate) seen: Scanned,
}

/// A construct that is left alone.
pub(crate) fn with<T>(what: LoadConstruct) -> Result<T, Unread> {
    Err(Unsupported::LoadWith(what).into())
}

/// Clauses of MySQL's bulk load, which may stand behind everything else.
const BULK: [&str; 3] = ["PARALLEL", "MEMORY", "ALGORITHM"];

impl Load {
    /// Reads a whole statement.
    ///
    /// # Errors
    /// [`Unread::Unsupported`] for what cannot be done exactly; [`Unread::Refused`] for what the server refuses by itself.
    pub fn read(text: &[u8], modes: &Modes) -> Result<Self, Unread> {
        if modes.charset == CharsetClass::TrailByteMayBeBackslash && !text.is_ascii() {
            return Err(Unsupported::Charset.into());
        }
        let mut cursor = Cursor::new(text, modes);
        if !cursor.accept("LOAD")? || !cursor.accept("DATA")? {
            return Err(Unsupported::LoadXml.into());
        }
        let _priority = cursor.accept("LOW_PRIORITY")? || cursor.accept("CONCURRENT")?;
        let local = cursor.accept("LOCAL")?;
        if !cursor.accept("INFILE")? {
            return with(LoadConstruct::NoFile);
        }
        if cursor.token()?.kind != Kind::Text {
            return Err(Unread::Refused);
        }
        let replace = cursor.accept("REPLACE")?;
        let ignore = !replace && cursor.accept("IGNORE")?;
        if !cursor.accept("INTO")? || !cursor.accept("TABLE")? {
            return with(LoadConstruct::Head);
        }
        let table = cursor.table_name()?;
        let line_end = cursor.load_format()?;
        let listed = cursor.load_columns()?;
        let columns_end = cursor.at;
        let mut seen = Scanned::default();
        let assigned = match cursor.accept("SET")? {
            true => Some(cursor.load_assignments(&mut seen)?),
            false => None,
        };
        if !matches!(cursor.peek()?.kind, Kind::End | Kind::Mark(b';')) {
            return with(LoadConstruct::BehindColumns);
        }
        let (end, effects) = Cursor::new(text, modes).load_end(columns_end)?;
        if seen.parameters > 0 {
            return Err(Unread::Refused);
        }
        Ok(Self {
            table,
            local,
            may_skip: ignore || (local && !replace),
            line_end,
            listed,
            assigned,
            end,
            effects,
            seen,
        })
    }

    /// The table's name as written.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// Whether the client sends the file.
    pub fn is_local(&self) -> bool {
        self.local
    }
}

impl Cursor<'_> {
    /// Past what stands between the table and the columns; the last byte of what ends a line, if that is plain text.
    fn load_format(&mut self) -> Result<Option<u8>, Unread> {
        if self.accept("PARTITION")? {
            self.load_partitions()?;
        }
        let is_charset = if self.accept("CHARACTER")? || self.accept("CHAR")? {
            self.accept("SET")?
        } else {
            self.accept("CHARSET")?
        };
        if is_charset {
            self.token()?;
        }
        if self.accept("FIELDS")? || self.accept("COLUMNS")? {
            loop {
                if self.accept("OPTIONALLY")? && !self.peek()?.is(self.text, "ENCLOSED") {
                    return Err(Unread::Refused);
                }
                let one = ["TERMINATED", "ENCLOSED", "ESCAPED"];
                if !self.accept_one(&one)? {
                    break;
                }
                self.load_mark()?;
            }
        }
        let mut line_end = Some(b'\n');
        if self.accept("LINES")? {
            loop {
                if self.accept("TERMINATED")? {
                    line_end = self.load_mark()?;
                } else if self.accept("STARTING")? {
                    self.load_mark()?;
                } else {
                    break;
                }
            }
        }
        if self.accept("IGNORE")? {
            let is_number = self.token()?.kind == Kind::Decimal;
            if !is_number || !self.accept_one(&["LINES", "ROWS"])? {
                return Err(Unread::Refused);
            }
        }
        Ok(line_end)
    }

    fn accept_one(&mut self, words: &[&str]) -> Result<bool, Unread> {
        for word in words {
            if self.accept(word)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn load_partitions(&mut self) -> Result<(), Unread> {
        if !self.accept_mark(b'(')? {
            return Err(Unread::Refused);
        }
        loop {
            self.name_part()?;
            if self.accept_mark(b')')? {
                return Ok(());
            }
            if !self.accept_mark(b',')? {
                return Err(Unread::Refused);
            }
        }
    }

    /// Past `BY 'text'`; the last byte of the text, if all of it is ASCII and it is not empty.
    fn load_mark(&mut self) -> Result<Option<u8>, Unread> {
        if !self.accept("BY")? {
            return Err(Unread::Refused);
        }
        let token = self.token()?;
        match token.kind {
            Kind::Text => {
                let mark = self.unescaped(token.of(self.text));
                Ok(mark.last().copied().filter(|_| mark.is_ascii()))
            }
            Kind::Hex | Kind::Bits => Ok(None),
            _ => Err(Unread::Refused),
        }
    }

    /// Past the list of columns and variables, if there is one; its columns.
    fn load_columns(&mut self) -> Result<Option<Vec<NameSpan>>, Unread> {
        if !self.accept_mark(b'(')? {
            return Ok(None);
        }
        let mut columns = Vec::new();
        if self.accept_mark(b')')? {
            // As if there were no list.
            return Ok(None);
        }
        loop {
            if self.peek()?.kind == Kind::Variable {
                self.token()?;
            } else {
                columns.push(self.column()?);
            }
            if self.accept_mark(b')')? {
                return Ok(Some(columns));
            }
            if !self.accept_mark(b',')? {
                return Err(Unread::Refused);
            }
        }
    }

    /// Past the assignments of SET; the columns assigned to.
    fn load_assignments(&mut self, seen: &mut Scanned) -> Result<Vec<NameSpan>, Unread> {
        let mut columns = Vec::new();
        loop {
            columns.push(self.column()?);
            if !matches!(self.token()?.kind, Kind::Mark(b'=') | Kind::Assign) {
                return Err(Unread::Refused);
            }
            match self.skip_assigned(b"", seen)? {
                Stop::Comma => self.at += 1,
                Stop::End => return Ok(columns),
                Stop::Clause | Stop::Close => return Err(Unread::Refused),
            }
        }
    }

    /// Reads the whole text: the place behind its last token, and whether there is something behind the columns that must
    /// not be carried out twice.
    fn load_end(mut self, columns_end: usize) -> Result<(usize, bool), Unread> {
        let mut end = 0;
        let mut effects = false;
        let mut before = Kind::End;
        loop {
            let token = self.token()?;
            match token.kind {
                Kind::End => return Ok((end, effects)),
                Kind::Mark(b';') => {
                    if self.token()?.kind != Kind::End {
                        return Err(Unsupported::Several.into());
                    }
                    return Ok((end, effects));
                }
                Kind::Assign => effects = true,
                Kind::Word if token.start >= columns_end => {
                    // Behind a value it starts a clause; elsewhere it is a name.
                    let is_behind_value =
                        !matches!(before, Kind::Mark(_) | Kind::Assign | Kind::End)
                            || before == Kind::Mark(b')');
                    if is_behind_value && BULK.iter().any(|word| token.is(self.text, word)) {
                        return with(LoadConstruct::Parallel);
                    }
                    effects |= has_effects(token.of(self.text));
                }
                _ => {}
            }
            before = if token.is(self.text, "SET") {
                Kind::End
            } else {
                token.kind
            };
            if self.inside {
                return with(LoadConstruct::Comment);
            }
            end = token.end;
        }
    }
}
