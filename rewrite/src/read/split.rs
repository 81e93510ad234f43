//! Cuts a text of several statements as the server does.

use std::ops::Range;

use crate::lex::cursor::Cursor;
use crate::lex::scan::Scanned;
use crate::modes::Modes;
use crate::read::statement_kind::Kind;
use crate::refusal::Unread;

/// One statement of a text, with the `;` behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it lies.
    pub range: Range<usize>,
    /// It could not be told where it ends: all the rest of the text is in it. That is so for routines and compound
    /// statements, whose bodies hold `;`, and for text that the server will not be able to read.
    pub indivisible: bool,
}

/// Cuts a text at each `;` that ends a statement. The pieces put together are the text.
pub fn split(text: &[u8], modes: &Modes) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let piece = split_first(text, start, modes);
        start = piece.range.end;
        pieces.push(piece);
    }
    pieces
}

/// The statement that begins at `start`. A server reads a statement when the one before it was carried out, so its modes may
/// be others than those of the text's beginning.
pub fn split_first(text: &[u8], start: usize, modes: &Modes) -> Piece {
    let mut cursor = Cursor::new(text, modes);
    cursor.at = start;
    let end = cursor.end_of_statement().ok().flatten();
    Piece {
        range: start..end.unwrap_or(text.len()),
        indivisible: end.is_none(),
    }
}

/// The text up to a NUL at its end, as clients written in C may count one in: servers take one, before blanks and `;`, for the
/// text's end.
pub fn without_terminator(text: &[u8]) -> &[u8] {
    let is_behind = |byte: &u8| !matches!(byte, b'\t'..=b'\r' | b' ' | b';');
    let length = text.iter().rposition(is_behind).unwrap_or(0);
    match text.split_at_checked(length) {
        Some((before, [0, ..])) => before,
        Some(_) | None => text,
    }
}

/// The text up to its first `;` behind which there is nothing but others and blanks: servers cut all of these off the end of a text, so that no
/// empty statement follows. One is left where there is one.
pub fn without_empty_end(text: &[u8]) -> &[u8] {
    let is_more = |byte: &u8| !matches!(byte, b'\t'..=b'\r' | b' ' | b';');
    let length = text.iter().rposition(is_more).map_or(0, |last| last + 1);
    let end = text.get(length..).unwrap_or_default();
    match (memchr::memchr(b';', end), memchr::memrchr(b';', end)) {
        (Some(first), Some(last)) if first < last => {
            text.get(..=length + first).unwrap_or_default()
        }
        (Some(_) | None, _) => text,
    }
}

impl Cursor<'_> {
    /// Behind the `;` of the statement that starts here, or the end of the text; `None` when it cannot be told.
    fn end_of_statement(&mut self) -> Result<Option<usize>, Unread> {
        if self.has_body()? {
            return Ok(None);
        }
        let mut seen = Scanned::default();
        self.skip_statement(&mut seen)?;
        if !self.ended() {
            self.at += 1;
        }
        Ok(Some(self.at))
    }

    /// Whether a routine or a compound statement starts here, perhaps behind `SET STATEMENT … FOR`.
    fn has_body(mut self) -> Result<bool, Unread> {
        let mut behind = self;
        while behind.set_statement()?.is_some() {
            self = behind;
        }
        Ok(matches!(self.kind()?, Kind::CreateRoutine | Kind::Compound))
    }
}

#[cfg(test)]
mod tests {
    use super::{without_empty_end, without_terminator};

    #[test]
    fn of_several_semicolons_at_the_end_one_is_left() {
        for (text, expected) in [
            ("a;;", "a;"),
            ("a ; \n;\t; ", "a ;"),
            ("a; b ;;", "a; b ;"),
            (";;", ";"),
            ("a;", "a;"),
            ("a ; \n", "a ; \n"),
            ("a", "a"),
            ("", ""),
            // Nothing is cut off before a comment.
            ("a;; -- b", "a;; -- b"),
            ("a;/**/;", "a;/**/;"),
            ("a;;\0", "a;;\0"),
            ("a;; b", "a;; b"),
        ] {
            let left = without_empty_end(text.as_bytes());
            assert_eq!(left, expected.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn one_nul_at_the_end_ends_the_text() {
        for (text, expected) in [
            (&b"a\0"[..], &b"a"[..]),
            (b"a \0 ;\x0b\n", b"a "),
            (b"a;\0", b"a;"),
            (b"\0", b""),
            (b"a\0\0", b"a\0"),
            (b"a\0b", b"a\0b"),
            (b"a\0\x1f", b"a\0\x1f"),
            (b"a ; ", b"a ; "),
            (b" ;", b" ;"),
            (b"", b""),
        ] {
            assert_eq!(without_terminator(text), expected, "{text:?}");
        }
    }
}
