//! PREPARE, EXECUTE, EXECUTE IMMEDIATE and DEALLOCATE as texts: the statement's name, and where its text comes from.

use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind, Token};
use crate::modes::Modes;
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
            kind: Kind::Text, ..
        } = self.peek()?
        {
            text.extend(self.unescaped(token.of(self.text)));
            self.at = token.end;
        }
        let next = self.token()?;
        let ended =
            matches!(next.kind, Kind::End | Kind::Mark(b';')) || next.is(self.text, "USING");
        if first.kind == Kind::Text && ended {
            Ok(PrepareSource::Text { name, text })
        } else {
            Ok(PrepareSource::Computed { name })
        }
    }
}
