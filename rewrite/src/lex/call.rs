//! Which words and names before a parenthesis call what may be a stored function.
//!
//! Tried on MariaDB 10.11 and MySQL 9.7 with a stored function of every name in the tables of `builtins` and `keywords`: a built-in function of that
//! name is called, with a blank before the parenthesis too, unless the lexer knows it only without, or the server does not bring it along.

use crate::lex::builtins::{is_built_in, is_built_in_at_once, is_called_at_once, may_be_stored};
use crate::lex::cursor::{Cursor, is_word};
use crate::lex::keywords::{is_no_call, is_reserved};
use crate::lex::token::Kind;
use crate::refusal::Unread;

/// What a word stands behind, with nothing but blanks between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Behind {
    /// `)` or a string.
    Operand,
    /// AS.
    As,
    /// Something else.
    #[default]
    Other,
}

impl Cursor<'_> {
    /// Whether the word from `start` to here may be the name of a stored function that is called: `(` follows.
    pub(crate) fn may_call(&self, start: usize) -> Result<bool, Unread> {
        let (word, server) = (self.since(start), self.modes.server);
        match self.byte(0) {
            b')' | b',' => Ok(false),
            b'(' => Ok(!self.is_known(start, is_built_in_at_once(word, server))),
            _ if self.opens_behind()? => {
                let may_be_stored = is_called_at_once(word) || may_be_stored(word, server);
                let is_builtin = is_built_in(word, server) && !may_be_stored;
                Ok(!self.is_known(start, is_builtin))
            }
            _ => Ok(false),
        }
    }

    /// Whether the word from `start` to here calls no stored function although a parenthesis follows. `is_builtin`: as a word it would not.
    fn is_known(&self, start: usize, is_builtin: bool) -> bool {
        let word = self.since(start);
        let is_keyword = match is_reserved(word) {
            true => !self.is_behind_point(start),
            false => is_no_call(word, self.modes.server) && !self.may_be_qualified(start),
        };
        is_keyword || (is_builtin && !self.continues(start))
    }

    /// Whether what starts at `start` is no name of a function because of what stands before it: between `)` or a string and a parenthesis are
    /// keywords, and the names of tables with their columns; between AS and a parenthesis these names, and types. `behind` was passed
    /// last and ended at `from`; strings between there and the start were passed with blanks and marks.
    pub(crate) fn is_no_function(&self, (behind, from): (Behind, usize), start: usize) -> bool {
        let between = self.text.get(from..start).unwrap_or_default();
        match between.trim_ascii_end() {
            [] => behind != Behind::Other,
            [.., last] => *last == b'\'',
        }
    }

    /// Whether the word that starts at `start` is the last part of a name, whatever keyword it looks like: `t.on`. A number may have a point
    /// at its end.
    pub(crate) fn is_behind_point(&self, start: usize) -> bool {
        let Some((b'.', before)) = self.text.get(..start).and_then(<[u8]>::split_last) else {
            return false;
        };
        let name = before.iter().rev().take_while(|byte| is_word(**byte));
        let (mut has_any, mut is_number) = (false, true);
        for byte in name {
            has_any = true;
            is_number &= byte.is_ascii_digit();
        }
        !(has_any && is_number)
    }

    /// Whether the parenthesis behind a word that starts at `start` has columns in it: of a table of WITH, which AS and another parenthesis
    /// follow, or of JSON_TABLE, where the word is COLUMNS behind a string. Neither can stand behind the name of a function.
    pub(crate) fn at_columns(&self, start: usize) -> Result<bool, Unread> {
        let before = self.text.get(..start).unwrap_or_default();
        let is_behind_string = matches!(before.trim_ascii_end().last(), Some(b'\'' | b'"'));
        if is_behind_string && self.since(start).eq_ignore_ascii_case(b"columns") {
            return Ok(true);
        }
        let mut ahead = *self;
        if !ahead.accept_mark(b'(')? {
            return Ok(false);
        }
        loop {
            if !matches!(ahead.token()?.kind, Kind::Word | Kind::Name) {
                return Ok(false);
            }
            if !ahead.accept_mark(b',')? {
                break;
            }
        }
        Ok(ahead.accept_mark(b')')? && ahead.accept("AS")? && ahead.accept_mark(b'(')?)
    }

    /// Whether the next token is `(`.
    pub(crate) fn opens_behind(&self) -> Result<bool, Unread> {
        let mut ahead = *self;
        ahead.skip_blanks()?;
        Ok(ahead.byte(0) == b'(')
    }

    /// Whether a word that starts at `start` is the second part of a name, or the end of one that starts with a digit.
    fn continues(&self, start: usize) -> bool {
        let before = self.text.get(..start).unwrap_or_default();
        self.may_be_qualified(start) || before.trim_ascii_end().last() == Some(&b'`')
    }

    /// Whether a point may stand before a word that starts at `start`, or a digit does that is a part of it.
    fn may_be_qualified(&self, start: usize) -> bool {
        let before = self.text.get(..start).unwrap_or_default();
        let last = before.iter().rfind(|byte| !byte.is_ascii_whitespace());
        matches!(last, Some(b'.' | b'/')) || matches!(before.last(), Some(b'0'..=b'9'))
    }
}
