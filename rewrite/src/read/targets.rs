//! What USE, LOAD DATA, and statements that define tables name.

use crate::lex::cursor::Cursor;
use crate::lex::name::TableName;
use crate::lex::token::Kind as TokenKind;
use crate::modes::Modes;
use crate::read::statement_kind::Kind;
use crate::refusal::{Unread, Unsupported};

/// The database of `USE`.
pub fn use_target(text: &[u8], modes: &Modes) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(text, modes);
    let named = cursor.accept("USE").ok()?;
    cursor.name_part().ok().filter(|_| named)
}

/// The table of `LOAD DATA` or `LOAD XML`.
pub fn load_target(text: &[u8], modes: &Modes) -> Option<TableName> {
    Cursor::new(text, modes).load_target().ok()
}

/// What keeps the table of `LOAD DATA` or `LOAD XML` from being read.
pub fn unread_load_target(text: &[u8], modes: &Modes) -> Option<Unsupported> {
    match Cursor::new(text, modes).load_target() {
        Err(Unread::Unsupported(what)) => Some(what),
        Ok(_) | Err(Unread::Refused) => None,
    }
}

/// The tables that a CREATE, ALTER, DROP, RENAME or TRUNCATE names. `None`: that cannot be told, or it may touch any.
pub fn tables_touched(text: &[u8], modes: &Modes) -> Option<Vec<TableName>> {
    let mut cursor = Cursor::new(text, modes);
    cursor.tables_touched().ok().flatten()
}

impl Cursor<'_> {
    fn load_target(&mut self) -> Result<TableName, Unread> {
        loop {
            let token = self.token()?;
            if token.kind == TokenKind::End {
                return Err(Unread::Refused);
            }
            if token.is(self.text, "INTO") && self.accept("TABLE")? {
                return self.table_name();
            }
        }
    }

    fn tables_touched(&mut self) -> Result<Option<Vec<TableName>>, Unread> {
        let mut look = *self;
        match look.kind()? {
            Kind::CreateTemporary | Kind::DropTable | Kind::Ddl => {}
            _ => return Ok(None),
        }
        let verb = self.token()?;
        let is = |word| verb.is(self.text, word);
        if is("TRUNCATE") {
            self.accept("TABLE")?;
            return Ok(Some(vec![self.table_name()?]));
        }
        let (drop, rename, alter) = (is("DROP"), is("RENAME"), is("ALTER"));
        if !self.skip_to_table()? {
            return Ok(None);
        }
        if self.accept("IF")? {
            self.accept("NOT")?;
            self.accept("EXISTS")?;
        }
        let mut tables = vec![self.table_name()?];
        if drop {
            while self.accept_mark(b',')? {
                tables.push(self.table_name()?);
            }
        }
        if rename {
            self.rename_targets(&mut tables)?;
        }
        if alter && self.names_another()? {
            return Ok(None);
        }
        Ok(Some(tables))
    }

    /// Past TABLE; false when the statement is not about a table.
    fn skip_to_table(&mut self) -> Result<bool, Unread> {
        loop {
            let token = self.token()?;
            let is = |word| token.is(self.text, word);
            if is("TABLE") || is("TABLES") {
                return Ok(true);
            }
            if !["OR", "REPLACE", "TEMPORARY", "ONLINE", "IGNORE"]
                .into_iter()
                .any(is)
            {
                return Ok(false);
            }
        }
    }

    /// Past `TO b, c TO d` of RENAME TABLE.
    fn rename_targets(&mut self, tables: &mut Vec<TableName>) -> Result<(), Unread> {
        loop {
            let token = self.token()?;
            match token.kind {
                TokenKind::End | TokenKind::Mark(b';') => return Ok(()),
                TokenKind::Mark(b',') => tables.push(self.table_name()?),
                _ if token.is(self.text, "TO") => tables.push(self.table_name()?),
                _ => {}
            }
        }
    }

    /// Whether an ALTER TABLE renames, or exchanges a partition.
    fn names_another(&mut self) -> Result<bool, Unread> {
        loop {
            let token = self.token()?;
            match token.kind {
                TokenKind::End => return Ok(false),
                _ if token.is(self.text, "RENAME") || token.is(self.text, "EXCHANGE") => {
                    return Ok(true);
                }
                _ => {}
            }
        }
    }
}
