//! Whether a statement can see LAST_INSERT_ID().

use crate::lex::cursor::Cursor;
use crate::lex::scan::Scanned;
use crate::lex::token::Kind as Token;
use crate::modes::Modes;
use crate::read::insert::Insert;
use crate::read::insert_head::InsertHead;
use crate::read::kind_facts::{RowsFrom, SeesLastInsertId};
use crate::read::statement_kind::{Kind, kind};
use crate::refusal::Unread;

/// What a statement may see of LAST_INSERT_ID().
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LastInsertIdUse {
    /// Nothing.
    Nothing,
    /// It uses tables: a view or a trigger that the text does not show could see it.
    Perhaps,
    /// It names it, or calls what may.
    Sees,
}

/// What one statement may see of LAST_INSERT_ID(). Reads the whole text, at memory speed.
pub fn last_insert_id_use(text: &[u8], modes: &Modes) -> LastInsertIdUse {
    last_insert_id_use_of(kind(text, modes), text, modes)
}

/// As [`last_insert_id_use`], of a statement whose kind is known.
pub fn last_insert_id_use_of(kind: Kind, text: &[u8], modes: &Modes) -> LastInsertIdUse {
    let mut cursor = Cursor::new(text, modes);
    cursor
        .last_insert_id_use(kind)
        .unwrap_or(LastInsertIdUse::Sees)
}

/// What one statement makes of LAST_INSERT_ID() by its own text: an INSERT that generates a key, and what a procedure does,
/// are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LastInsertIdChange {
    /// Nothing.
    Keeps,
    /// This.
    To(u64),
    /// Nobody knows.
    Unknown,
}

/// Whether a statement's text sets LAST_INSERT_ID(): calls it with an argument, or assigns to its variable.
pub fn last_insert_id_change(text: &[u8], modes: &Modes) -> LastInsertIdChange {
    let mut cursor = Cursor::new(text, modes);
    cursor
        .set_to_constant()
        .or_else(|| {
            Some(LastInsertIdChange::Keeps).filter(|_| Cursor::new(text, modes).keeps() == Ok(true))
        })
        .unwrap_or(LastInsertIdChange::Unknown)
}

impl Cursor<'_> {
    /// `SELECT LAST_INSERT_ID(5)` or `DO LAST_INSERT_ID(5)`, and nothing else.
    fn set_to_constant(&mut self) -> Option<LastInsertIdChange> {
        let text = self.text;
        let verb = self.token().ok()?;
        let is_set = (verb.is(text, "SELECT") || verb.is(text, "DO"))
            && self.accept("LAST_INSERT_ID").ok()?
            && self.accept_mark(b'(').ok()?;
        let number = self.token().ok().filter(|_| is_set)?;
        let value = std::str::from_utf8(number.of(text)).ok()?.parse().ok()?;
        let closed = self.accept_mark(b')').ok()?;
        self.accept_mark(b';').ok()?;
        let ended = self.token().ok()?.kind == Token::End;
        (closed && ended).then_some(LastInsertIdChange::To(value))
    }

    /// Whether LAST_INSERT_ID() is only read, if at all.
    fn keeps(&mut self) -> Result<bool, Unread> {
        let text = self.text;
        let assigns = { *self }.kind()? == Kind::Set;
        loop {
            let token = self.token()?;
            let of = token.of(text);
            let variable = match token.kind {
                Token::End => return Ok(true),
                Token::Word | Token::Name => of,
                Token::Variable => of.trim_ascii_start(),
                _ => continue,
            };
            let name = variable.rsplit(|byte| matches!(byte, b'@' | b'.')).next();
            let name = name.unwrap_or_default();
            let name = name
                .strip_prefix(b"`")
                .and_then(|name| name.strip_suffix(b"`"))
                .unwrap_or(name);
            let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
            if !is(b"last_insert_id") && !is(b"identity") {
                continue;
            }
            let is_call = token.kind == Token::Word && self.accept_mark(b'(')?;
            let keeps = if is_call {
                self.accept_mark(b')')?
            } else {
                !assigns
            };
            if !keeps {
                return Ok(false);
            }
        }
    }

    /// Past an INSERT's head, where `t (a)` is no call; stays where no such head is.
    fn skip_insert_head(&mut self) {
        let modes = self.modes;
        let insert = InsertHead::read(self.text, &modes)
            .and_then(|head| Insert::read(head, self.text, &modes));
        if let Ok(insert) = insert
            && !insert.head.prefixed
        {
            (self.at, self.inside) = (insert.rows, insert.inside);
        }
    }

    fn last_insert_id_use(&mut self, kind: Kind) -> Result<LastInsertIdUse, Unread> {
        let facts = kind.facts();
        let uses_tables = match facts.sees {
            SeesLastInsertId::Nothing => return Ok(LastInsertIdUse::Nothing),
            SeesLastInsertId::Always => return Ok(LastInsertIdUse::Sees),
            SeesLastInsertId::ByText => false,
            SeesLastInsertId::ByTables => true,
        };
        let mut seen = Scanned::default();
        if facts.rows == RowsFrom::Written {
            self.skip_insert_head();
        }
        self.skip_statement(&mut seen)?;
        Ok(if seen.last_insert_id || seen.calls {
            LastInsertIdUse::Sees
        } else if uses_tables || seen.from {
            LastInsertIdUse::Perhaps
        } else {
            LastInsertIdUse::Nothing
        })
    }
}
