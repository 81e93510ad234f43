//! A place in a statement's text, and how to get past blanks, comments and quoted text.
//!
//! Follows the servers' lexers (`sql_lex.cc` of both, tried against MariaDB 10.11 and MySQL 9.7).

use memchr::{memchr, memchr2, memmem};

use crate::modes::{Flavour, Modes, Server};
use crate::refusal::{Unread, Unsupported};

/// Where reading stands. Copies are places to come back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) at: usize,
    pub(crate) modes: Modes,
    /// Inside the body of an executable comment that counts: `*/` ends it.
    pub(crate) inside: bool,
    /// A hint with SET_VAR was passed.
    pub(crate) set_var: bool,
}

/// What the bytes behind `/*` make of a comment.
enum Comment {
    /// Nothing is executed: up to the first `*/`.
    Plain,
    /// Its body counts; so many bytes of marks are in front.
    Counts(usize),
    /// Its body does not count, and may hold comments of its own.
    Skipped(usize),
}

impl<'t> Cursor<'t> {
    /// At the start of a text.
    pub(crate) fn new(text: &'t [u8], modes: &Modes) -> Self {
        Self {
            text,
            at: 0,
            modes: *modes,
            inside: false,
            set_var: false,
        }
    }

    /// The byte `ahead` of the place; 0 behind the end, as in the servers' lexers.
    #[inline]
    pub(crate) fn byte(&self, ahead: usize) -> u8 {
        let at = self.at.saturating_add(ahead);
        self.text.get(at).copied().unwrap_or(0)
    }

    /// Whether nothing is left.
    pub(crate) fn ended(&self) -> bool {
        self.at >= self.text.len()
    }

    /// What is left.
    pub(crate) fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The text from `start` to here.
    pub(crate) fn since(&self, start: usize) -> &'t [u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Past blanks and comments.
    #[inline(always)]
    pub(crate) fn skip_blanks(&mut self) -> Result<(), Unread> {
        // Mostly there is one blank, or none.
        if self.byte(0) == b' ' {
            self.at += 1;
        }
        match self.byte(0) {
            b'\t'..=b'\r' | b' ' | b'#' | b'-' | b'/' | b'*' => self.skip_some_blanks(),
            _ => Ok(()),
        }
    }

    fn skip_some_blanks(&mut self) -> Result<(), Unread> {
        loop {
            match self.byte(0) {
                b' ' | b'\t'..=b'\r' => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if self.at_dashes() => self.skip_line(),
                b'/' if self.byte(1) == b'*' => self.enter_comment()?,
                b'*' if self.inside && self.byte(1) == b'/' => {
                    self.at += 2;
                    self.inside = false;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Whether `--` starts a comment here: it does before blanks, control characters and the end.
    pub(crate) fn at_dashes(&self) -> bool {
        self.byte(0) == b'-' && self.byte(1) == b'-' && matches!(self.byte(2), 0..=b' ' | 0x7f)
    }

    fn skip_line(&mut self) {
        self.at = match memchr(b'\n', self.rest()) {
            Some(length) => self.at + length + 1,
            None => self.text.len(),
        };
    }

    /// Past a comment, or into it when its body counts. The place is its `/*`.
    fn enter_comment(&mut self) -> Result<(), Unread> {
        let start = self.at;
        self.at += 2;
        match self.comment()? {
            Comment::Plain => {
                let hint = self.byte(0) == b'+';
                self.find_end()?;
                let body = self.since(start);
                self.set_var |= hint && mentions(body, b"set_var");
            }
            Comment::Counts(marks) => {
                self.at += marks;
                self.inside = true;
            }
            Comment::Skipped(marks) => {
                self.at += marks;
                self.skip_nested()?;
            }
        }
        Ok(())
    }

    /// Past the next `*/`.
    fn find_end(&mut self) -> Result<(), Unread> {
        let length = memmem::find(self.rest(), b"*/").ok_or(Unread::Refused)?;
        self.at += length + 2;
        Ok(())
    }

    /// Past the `*/` of a body that does not count, where comments nest once.
    fn skip_nested(&mut self) -> Result<(), Unread> {
        loop {
            let length = memchr2(b'*', b'/', self.rest()).ok_or(Unread::Refused)?;
            self.at += length;
            match (self.byte(0), self.byte(1)) {
                (b'*', b'/') => {
                    self.at += 2;
                    return Ok(());
                }
                (b'/', b'*') => {
                    self.at += 2;
                    self.find_end()?;
                }
                _ => self.at += 1,
            }
        }
    }

    /// What kind of comment starts; the place is behind its `/*`.
    fn comment(&self) -> Result<Comment, Unread> {
        let Server { flavour, version } = self.modes.server;
        let (marks, own) = match (flavour, self.byte(0), self.byte(1)) {
            (_, b'!', _) => (1, false),
            (Flavour::MariaDb, b'M', b'!') => (2, true),
            _ => return Ok(Comment::Plain),
        };
        let digits = (0..6)
            .take_while(|ahead| self.byte(marks + ahead).is_ascii_digit())
            .count();
        let digits = match (flavour, digits) {
            (_, 5) | (Flavour::MariaDb, 6) => digits,
            // MySQL takes the sixth digit when a blank follows; older versions always did.
            (Flavour::MySql, 6) if self.byte(marks + 6).is_ascii_whitespace() => 6,
            // Six digits ask for a later version than five of them.
            (Flavour::MySql, 6) if self.number_ahead(marks, 5) > version => 5,
            (Flavour::MySql, 6) => return Err(Unsupported::VersionComment.into()),
            _ => return Ok(Comment::Counts(marks)),
        };
        let wanted = self.number_ahead(marks, digits);
        let of_mysql = flavour == Flavour::MariaDb && !own && (50700..=99999).contains(&wanted);
        Ok(if wanted <= version && !of_mysql {
            Comment::Counts(marks + digits)
        } else {
            Comment::Skipped(marks + digits)
        })
    }

    /// The number of so many digits, `ahead` of the place.
    fn number_ahead(&self, ahead: usize, digits: usize) -> u32 {
        (ahead..ahead + digits).fold(0_u32, |sum, at| {
            sum * 10 + u32::from(self.byte(at).wrapping_sub(b'0'))
        })
    }

    /// Past a string; the place is behind its opening quote.
    pub(crate) fn skip_string(&mut self, quote: u8) -> Result<(), Unread> {
        if self.modes.no_backslash_escapes {
            return self.skip_quoted(quote);
        }
        loop {
            let length = memchr2(quote, b'\\', self.rest()).ok_or(Unread::Refused)?;
            self.at += length;
            let escapes = self.byte(0) == b'\\';
            if escapes || self.byte(1) == quote {
                self.at += 2;
            } else {
                self.at += 1;
                return Ok(());
            }
        }
    }

    /// Past a quoted name, or a string without escapes; the place is behind its opening quote.
    pub(crate) fn skip_quoted(&mut self, quote: u8) -> Result<(), Unread> {
        loop {
            let length = memchr(quote, self.rest()).ok_or(Unread::Refused)?;
            self.at += length;
            if self.byte(1) == quote {
                self.at += 2;
            } else {
                self.at += 1;
                return Ok(());
            }
        }
    }

    /// Past the bytes that names are made of.
    pub(crate) fn skip_word(&mut self) {
        let rest = self.rest();
        let length = rest.iter().position(|byte| !is_word(*byte));
        self.at += length.unwrap_or(rest.len());
    }

    /// Whether a name starts here whose qualifier and point stand right before it: `t.x`, `t.1st`.
    pub(crate) fn at_qualified_name(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        matches!(before, [.., last, b'.'] if is_word(*last) || matches!(last, b'`' | b'"'))
    }

    /// Whether a name in quotes starts here.
    pub(crate) fn at_quoted_name(&self) -> bool {
        match self.byte(0) {
            b'`' => true,
            b'"' => self.modes.ansi_quotes,
            _ => false,
        }
    }
}

/// Whether a byte may be part of an unquoted name.
#[expect(clippy::indexing_slicing, reason = "there is an entry for every byte")]
pub(crate) fn is_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

#[expect(clippy::indexing_slicing, reason = "there is an entry for every byte")]
static WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0_u8;
    loop {
        word[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        if byte == u8::MAX {
            break word;
        }
        byte += 1;
    }
};

/// Whether `text` has `word` (lower case) in it, in any case.
fn mentions(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|part| part.eq_ignore_ascii_case(word))
}
