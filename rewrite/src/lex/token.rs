//! Tokens, for the parts of a statement that are read closely: its head and the key of each row.

use crate::lex::cursor::{Cursor, is_word};
use crate::refusal::Unread;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An unquoted name or keyword.
    Word,
    /// A quoted name.
    Name,
    /// A string between quotes, `'…'` or `"…"`.
    Text,
    /// `N'…'`.
    National,
    /// `12`, `1.5`, `.5`.
    Decimal,
    /// `1e5`.
    Float,
    /// `x'…'`, `0x…`.
    Hex,
    /// `b'…'`, `0b…`.
    Bits,
    /// `\N`.
    Null,
    /// `?`.
    Parameter,
    /// `@…` or `@@…`.
    Variable,
    /// `:=`.
    Assign,
    /// Any other byte.
    Mark(u8),
    /// No more text.
    End,
}

/// A token and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    /// Its bytes.
    pub(crate) fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether it is the unquoted word `word` (upper case), in any case.
    pub(crate) fn is(&self, text: &[u8], word: &str) -> bool {
        self.kind == Kind::Word && self.of(text).eq_ignore_ascii_case(word.as_bytes())
    }
}

/// Whether a byte before or behind a value that is put in cannot become part of it, or it a part of that.
pub(crate) fn is_apart(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b'=')
}

impl<'t> Cursor<'t> {
    /// The next token, past it.
    pub(crate) fn token(&mut self) -> Result<Token, Unread> {
        self.skip_blanks()?;
        let start = self.at;
        let kind = self.token_kind()?;
        Ok(Token {
            kind,
            start,
            end: self.at,
        })
    }

    /// The next token, before it.
    pub(crate) fn peek(&self) -> Result<Token, Unread> {
        let mut ahead = *self;
        ahead.token()
    }

    /// Past the next token if it is the unquoted word `word` (upper case).
    pub(crate) fn accept(&mut self, word: &str) -> Result<bool, Unread> {
        let mut ahead = *self;
        ahead.skip_blanks()?;
        let begins_so = word.as_bytes().first() == Some(&ahead.byte(0).to_ascii_uppercase());
        let found = begins_so && ahead.token()?.is(self.text, word);
        if found {
            *self = ahead;
        }
        Ok(found)
    }

    /// Past the next token if it is the byte `mark`, which is no blank.
    #[inline]
    pub(crate) fn accept_mark(&mut self, mark: u8) -> Result<bool, Unread> {
        if self.byte(0) != mark {
            self.skip_blanks()?;
        }
        let found = self.byte(0) == mark;
        if found {
            self.at += 1;
        }
        Ok(found)
    }

    /// Whether the next token begins with the byte `mark`, which is no blank.
    pub(crate) fn is_before_mark(mut self, mark: u8) -> Result<bool, Unread> {
        self.skip_blanks()?;
        Ok(self.byte(0) == mark)
    }

    fn token_kind(&mut self) -> Result<Kind, Unread> {
        if self.ended() {
            return if self.inside {
                Err(Unread::Refused)
            } else {
                Ok(Kind::End)
            };
        }
        let byte = self.byte(0);
        Ok(match byte {
            b'\'' | b'"' if !self.at_quoted_name() => {
                self.at += 1;
                self.skip_string(byte)?;
                Kind::Text
            }
            b'"' | b'`' => {
                self.at += 1;
                self.skip_quoted(byte)?;
                Kind::Name
            }
            // A name behind its qualifier; a string that follows is an alias.
            _ if is_word(byte) && self.at_qualified_name() => {
                self.skip_word();
                Kind::Word
            }
            b'n' | b'N' if self.byte(1) == b'\'' => {
                self.at += 2;
                self.skip_string(b'\'')?;
                Kind::National
            }
            b'x' | b'X' if self.byte(1) == b'\'' => self.quoted_digits(Kind::Hex)?,
            b'b' | b'B' if self.byte(1) == b'\'' => self.quoted_digits(Kind::Bits)?,
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() => {
                self.at += 1;
                self.fraction()
            }
            b'@' => self.variable()?,
            // The servers' lexers take it for no parameter then.
            b'?' if is_word(self.byte(1)) => return Err(Unread::Refused),
            b'?' => self.marks(1, Kind::Parameter),
            b':' if self.byte(1) == b'=' => self.marks(2, Kind::Assign),
            b'\\' if self.byte(1) == b'N' => self.marks(2, Kind::Null),
            _ if is_word(byte) => {
                self.skip_word();
                Kind::Word
            }
            _ => self.marks(1, Kind::Mark(byte)),
        })
    }

    fn marks(&mut self, length: usize, kind: Kind) -> Kind {
        self.at += length;
        kind
    }

    /// Past `x'…'` or `b'…'`; other characters between the quotes are an error of the servers' lexers.
    fn quoted_digits(&mut self, kind: Kind) -> Result<Kind, Unread> {
        self.at += 2;
        let start = self.at;
        let digit: fn(&u8) -> bool = match kind {
            Kind::Hex => u8::is_ascii_hexdigit,
            _ => |byte| matches!(byte, b'0' | b'1'),
        };
        self.skip_quoted(b'\'')?;
        let digits = self.text.get(start..self.at - 1).unwrap_or_default();
        let whole = kind != Kind::Hex || digits.len() % 2 == 0;
        if whole && digits.iter().all(digit) {
            Ok(kind)
        } else {
            Err(Unread::Refused)
        }
    }

    /// Past something that starts with a digit: a number, or a name such as `1st`.
    fn number(&mut self) -> Kind {
        let start = self.at;
        self.skip_digits();
        match (self.byte(0), self.byte(1)) {
            (b'.', _) => {
                self.at += 1;
                return self.fraction();
            }
            (b'e' | b'E', b'0'..=b'9') => return self.exponent(1),
            (b'e' | b'E', b'+' | b'-') if self.byte(2).is_ascii_digit() => return self.exponent(2),
            (other, _) if !is_word(other) => return Kind::Decimal,
            _ => self.skip_word(),
        }
        match self.since(start) {
            [b'0', b'x', digits @ ..] if all(digits, u8::is_ascii_hexdigit) => Kind::Hex,
            [b'0', b'b', digits @ ..] if all(digits, |byte| matches!(byte, b'0' | b'1')) => {
                Kind::Bits
            }
            _ => Kind::Word,
        }
    }

    /// Past what follows a decimal point.
    fn fraction(&mut self) -> Kind {
        self.skip_digits();
        match (self.byte(0), self.byte(1)) {
            (b'e' | b'E', b'0'..=b'9') => self.exponent(1),
            (b'e' | b'E', b'+' | b'-') if self.byte(2).is_ascii_digit() => self.exponent(2),
            _ => Kind::Decimal,
        }
    }

    fn exponent(&mut self, marks: usize) -> Kind {
        self.at += marks;
        self.skip_digits();
        Kind::Float
    }

    fn skip_digits(&mut self) {
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    /// Past `@a`, `@'a b'`, `@@a`; qualifiers such as `session.` are left as tokens of their own.
    fn variable(&mut self) -> Result<Kind, Unread> {
        self.at += 1;
        if self.byte(0) == b'@' {
            self.at += 1;
        }
        match self.byte(0) {
            quote if self.at_quoted_name() => {
                self.at += 1;
                self.skip_quoted(quote)?;
            }
            quote @ (b'\'' | b'"') => {
                self.at += 1;
                self.skip_string(quote)?;
            }
            _ => loop {
                self.skip_word();
                if self.byte(0) != b'.' {
                    break;
                }
                self.at += 1;
            },
        }
        Ok(Kind::Variable)
    }
}

fn all(digits: &[u8], test: impl Fn(&u8) -> bool) -> bool {
    !digits.is_empty() && digits.iter().all(test)
}
