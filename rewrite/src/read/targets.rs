//! What statements other than INSERT name: tables, a database, the text of a prepared statement.

use crate::lex::cursor::Cursor;
use crate::lex::name::TableName;
use crate::lex::token::{Kind as TokenKind, Token};
use crate::modes::Modes;
use crate::read::statement_kind::Kind;
use crate::refusal::Unread;

/// Where a text `PREPARE` or `EXECUTE IMMEDIATE` takes its statement from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrepareSource {
    /// A string.
    Text {
        /// The name that EXECUTE uses; empty for EXECUTE IMMEDIATE.
        name: Vec<u8>,
        /// The string's content.
        text: Vec<u8>,
    },
    /// A variable or an expression.
    Computed {
        /// The name that EXECUTE uses; empty for EXECUTE IMMEDIATE.
        name: Vec<u8>,
    },
    /// It could not be read.
    Unreadable,
}

/// The database of `USE`.
pub fn use_target(text: &[u8], modes: &Modes) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(text, modes);
    let named = cursor.accept("USE").ok()?;
    cursor.name_part().ok().filter(|_| named)
}

/// The table of `LOAD DATA` or `LOAD XML`.
pub fn load_target(text: &[u8], modes: &Modes) -> Option<TableName> {
    let mut cursor = Cursor::new(text, modes);
    loop {
        let token = cursor.token().ok()?;
        if token.kind == TokenKind::End {
            return None;
        }
        if token.is(text, "INTO") && cursor.accept("TABLE").ok()? {
            return cursor.table_name().ok();
        }
    }
}

/// The name and the source of a text `PREPARE`, or the source of `EXECUTE IMMEDIATE`.
pub fn prepare_source(text: &[u8], modes: &Modes) -> PrepareSource {
    let mut cursor = Cursor::new(text, modes);
    cursor.prepare_source().unwrap_or(PrepareSource::Unreadable)
}

/// The name in `EXECUTE name …`, `DEALLOCATE PREPARE name` and `DROP PREPARE name`.
pub fn named_statement(text: &[u8], modes: &Modes) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(text, modes);
    let verb = cursor.token().ok()?;
    let drops = verb.is(text, "DEALLOCATE") || verb.is(text, "DROP");
    let is_one = verb.is(text, "EXECUTE") || (drops && cursor.accept("PREPARE").ok()?);
    is_one.then(|| cursor.name_part().ok()).flatten()
}

/// `EXECUTE name …` with another name, one without backquotes. `None`: it is no EXECUTE, or a comment stands before its name.
pub fn execute_by(name: &str, text: &[u8], modes: &Modes) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(text, modes);
    let verb = cursor
        .token()
        .ok()
        .filter(|verb| verb.is(text, "EXECUTE"))?;
    let own = cursor.peek().ok()?;
    cursor.name_part().ok()?;
    let between = text.get(verb.end..own.start)?;
    let (before, behind) = (text.get(..verb.end)?, text.get(cursor.at..)?);
    let parts = [before, b" `", name.as_bytes(), b"`", behind];
    between.trim_ascii().is_empty().then(|| parts.concat())
}

/// The tables that a CREATE, ALTER, DROP, RENAME or TRUNCATE names. `None`: that cannot be told, or it may touch any.
pub fn tables_touched(text: &[u8], modes: &Modes) -> Option<Vec<TableName>> {
    let mut cursor = Cursor::new(text, modes);
    cursor.tables_touched().ok().flatten()
}

impl Cursor<'_> {
    fn prepare_source(&mut self) -> Result<PrepareSource, Unread> {
        let mut name = Vec::new();
        if self.accept("PREPARE")? {
            name = self.name_part()?;
            if !self.accept("FROM")? {
                return Err(Unread::Refused);
            }
        } else if !self.accept("EXECUTE")? || !self.accept("IMMEDIATE")? {
            return Err(Unread::Refused);
        }
        let mut text = Vec::new();
        let first = self.peek()?;
        while let token @ Token {
            kind: TokenKind::Text,
            ..
        } = self.peek()?
        {
            text.extend(self.unescaped(token.of(self.text)));
            self.at = token.end;
        }
        let next = self.token()?;
        let ended = matches!(next.kind, TokenKind::End | TokenKind::Mark(b';'))
            || next.is(self.text, "USING");
        if first.kind == TokenKind::Text && ended {
            Ok(PrepareSource::Text { name, text })
        } else {
            Ok(PrepareSource::Computed { name })
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
