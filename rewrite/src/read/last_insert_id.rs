//! Whether a statement can see LAST_INSERT_ID().

use memchr::{memchr, memchr_iter, memchr2_iter};

use crate::lex::byte_class::is_plain;
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
            if !shows_it(name) {
                continue;
            }
            // Quotes around the name make no difference.
            let is_call = token.kind != Token::Variable && self.accept_mark(b'(')?;
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

    /// Whether a SET names the variable without `@@`.
    fn sets_it(mut self) -> Result<bool, Unread> {
        loop {
            let token = self.token()?;
            match token.kind {
                Token::End => return Ok(false),
                Token::Word | Token::Name if shows_it(token.of(self.text)) => return Ok(true),
                _ => {}
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

    /// Whether an event is made here, or changed.
    fn schedules(mut self) -> Result<bool, Unread> {
        const EVENT: &[u8] = b"event";
        self.kind()?;
        let start = self.at.saturating_sub(EVENT.len());
        Ok(self.since(start).eq_ignore_ascii_case(EVENT))
    }

    fn last_insert_id_use(&mut self, kind: Kind) -> Result<LastInsertIdUse, Unread> {
        let facts = kind.facts();
        let uses_tables = match facts.sees {
            // When an event is due is computed now.
            SeesLastInsertId::Nothing if self.schedules()? => false,
            SeesLastInsertId::Nothing => return Ok(LastInsertIdUse::Nothing),
            SeesLastInsertId::Always => return Ok(LastInsertIdUse::Sees),
            SeesLastInsertId::ByText => false,
            SeesLastInsertId::ByTables => true,
        };
        // Elsewhere the word is a column's name.
        if kind == Kind::Set && self.sets_it()? {
            return Ok(LastInsertIdUse::Sees);
        }
        // What is seen of most, without a look at each of their words.
        if facts.rows != RowsFrom::Written
            && is_plain(self.text)
            && !may_name_it(self.text)
            && (uses_tables || reads_table(self.text))
        {
            return Ok(LastInsertIdUse::Perhaps);
        }
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

/// Whether a name, with or without quotes, is that of LAST_INSERT_ID() or of a variable that shows it.
fn shows_it(name: &[u8]) -> bool {
    let name = match name {
        [b'`', inner @ .., b'`'] | [b'"', inner @ .., b'"'] => inner,
        name => name,
    };
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    is(b"last_insert_id") || is(b"identity")
}

/// Whether a word, or a part of one, stands here.
fn is_at(text: &[u8], at: usize, word: &[u8]) -> bool {
    let there = text.get(at..at.saturating_add(word.len()));
    there.is_some_and(|there| there.eq_ignore_ascii_case(word))
}

/// Whether a text without variables and quoted names may name LAST_INSERT_ID(), or what shows it.
fn may_name_it(text: &[u8]) -> bool {
    let mut ids = memchr_iter(b'_', text).filter_map(|at| at.checked_sub(b"insert".len()));
    ids.any(|at| is_at(text, at, b"insert_id"))
        || memchr2_iter(b'v', b'V', text).any(|at| is_at(text, at, b"variables"))
}

/// Whether FROM stands between blanks, before any string. Elsewhere it is looked for word by word.
fn reads_table(text: &[u8]) -> bool {
    let strings = memchr(b'\'', text).unwrap_or(text.len());
    let text = text.get(..strings).unwrap_or_default();
    let mut blanks = memchr2_iter(b'f', b'F', text).filter_map(|at| at.checked_sub(1));
    blanks.any(|at| is_at(text, at, b" from "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::{LastInsertIdUse, last_insert_id_use, may_name_it, reads_table};
    use crate::lex::byte_class::is_plain;
    use crate::lex::cursor::Cursor;
    use crate::lex::scan::Scanned;
    use crate::modes::{Flavour, Modes, Server};

    const MODES: Modes = Modes::plain(Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    });

    const PIECES: [&str; 36] = [
        " ",
        " ",
        " ",
        "SELECT",
        "a",
        " from ",
        "FROM",
        "t",
        "WHERE",
        "id",
        "=",
        "5",
        "-1",
        "- 1",
        "--1",
        "'x'",
        "'x from y'",
        "'x",
        "'\\'",
        ",",
        "*",
        "*/",
        "/*",
        "f",
        "(",
        ")",
        "@",
        "last_insert_id",
        "INSERT_ID",
        "Variables",
        "v",
        "_id",
        "`q`",
        "é",
        "?",
        ";",
    ];

    proptest! {
        /// What is known of a text at a glance is what a walk over its words comes to.
        #[test]
        fn a_plain_text_sees_no_more_than_its_tables(
            pieces in prop::collection::vec(select(&PIECES[..]), 0..8)
        ) {
            let text = pieces.concat();
            let text = text.as_bytes();
            if is_plain(text) && !may_name_it(text) {
                let mut seen = Scanned::default();
                prop_assert!(Cursor::new(text, &MODES).skip_statement(&mut seen).is_ok());
                prop_assert!(!seen.calls && !seen.last_insert_id);
                prop_assert!(seen.from || !reads_table(text));
            }
        }
    }

    #[test]
    fn a_select_is_told_by_its_text() {
        for (text, sees) in [
            ("SELECT a FROM t WHERE id = 5", LastInsertIdUse::Perhaps),
            ("SELECT a FROM t WHERE id = 'x'", LastInsertIdUse::Perhaps),
            ("SELECT a\nFROM\tt", LastInsertIdUse::Perhaps),
            ("SELECT 1, 'x FROM y'", LastInsertIdUse::Nothing),
            ("SELECT last_insert_id FROM t", LastInsertIdUse::Sees),
            ("SELECT a FROM session_variables", LastInsertIdUse::Perhaps),
            ("SELECT a FROM VARIABLES", LastInsertIdUse::Sees),
            ("SELECT LAST_INSERT_ID()", LastInsertIdUse::Sees),
            ("SELECT @@identity", LastInsertIdUse::Sees),
            ("SELECT a FROM t WHERE b = 'x", LastInsertIdUse::Sees),
        ] {
            assert_eq!(last_insert_id_use(text.as_bytes(), &MODES), sees, "{text}");
        }
    }
}
