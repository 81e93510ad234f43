//! The bytes in values that matter, and the many between them that do not.

use memchr::memchr2;

use crate::lex::cursor::Cursor;

/// What a byte may be the beginning or the end of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    Quote,
    Open,
    Close,
    Comma,
    Semicolon,
    Word,
    /// May start or end a comment.
    Comment,
    At,
    Question,
}

#[expect(clippy::indexing_slicing, reason = "there is a class for every byte")]
fn class_of(byte: u8) -> Class {
    CLASSES[usize::from(byte)]
}

static CLASSES: [Class; 256] = classes();

#[expect(clippy::indexing_slicing, reason = "the index is below the length")]
const fn classes() -> [Class; 256] {
    let mut classes = [Class::Plain; 256];
    let mut index = 0;
    let mut byte = 0_u8;
    while index < classes.len() {
        classes[index] = match byte {
            b'\'' | b'"' | b'`' => Class::Quote,
            b'(' => Class::Open,
            b')' => Class::Close,
            b',' => Class::Comma,
            b';' => Class::Semicolon,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => Class::Word,
            b'#' | b'-' | b'/' | b'*' => Class::Comment,
            b'@' => Class::At,
            b'?' => Class::Question,
            _ => Class::Plain,
        };
        index += 1;
        byte = byte.wrapping_add(1);
    }
    classes
}

/// Where the next byte that matters is at or behind `at`, and what it is; the text's end if there is none. Up to `free` commas do
/// not matter, nor do NULLs, minus signs and strings without backslashes; how many commas were passed.
#[inline]
fn mark_behind(text: &[u8], mut at: usize, free: usize) -> (usize, Option<(u8, Class)>, usize) {
    let mut passed = 0;
    while let Some(byte) = text.get(at).copied() {
        let class = class_of(byte);
        // They come in runs.
        if class == Class::Plain {
            at += 1;
            continue;
        }
        if byte == b'\'' {
            match string_end(text, at) {
                Some(end) => at = end,
                None => return (at, Some((byte, Class::Quote)), passed),
            }
            continue;
        }
        match class {
            Class::Comma if passed < free => {
                passed += 1;
                at += 1;
            }
            Class::Word if is_null(text, at) => at += NULL.len(),
            Class::Comment if is_sign(text, at) => at += 1,
            class => return (at, Some((byte, class)), passed),
        }
    }
    (at, None, passed)
}

const NULL: &[u8] = b"NULL";

/// Whether NULL stands here as a value of its own: elsewhere it may be a column's name.
#[inline(never)]
fn is_null(text: &[u8], at: usize) -> bool {
    let ahead = text.get(at..at + NULL.len() + 1);
    if !matches!(ahead, Some([word @ .., b',' | b')']) if word.eq_ignore_ascii_case(NULL)) {
        return false;
    }
    let before = text.get(..at).unwrap_or_default().trim_ascii_end();
    matches!(before.last(), Some(b',' | b'('))
}

/// Whether a minus stands before a number here. Another may start a comment.
fn is_sign(text: &[u8], at: usize) -> bool {
    matches!(text.get(at..at + 2), Some([b'-', b'0'..=b'9']))
}

/// The end of a string without backslashes, or of its part up to a doubled quote, behind which the rest reads as another;
/// `start` is its opening quote. `None`: it is another one.
#[inline]
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let inside = text.get(start + 1..)?;
    let length = memchr2(b'\'', b'\\', inside)?;
    (inside.get(length) == Some(&b'\'')).then_some(start + length + 2)
}

/// Whether a text has but words, numbers, operators and strings without backslashes in it: nothing is called, and no variable is named. Most
/// queries of one row are such. Of others this says nothing.
pub(crate) fn is_plain(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        at = match class_of(byte) {
            Class::Plain | Class::Comma | Class::Question => at + 1,
            Class::Word if byte.is_ascii() => at + 1,
            Class::Comment if byte == b'*' || is_sign(text, at) => at + 1,
            Class::Quote if byte == b'\'' => match string_end(text, at) {
                Some(end) => end,
                None => return false,
            },
            Class::Word
            | Class::Comment
            | Class::Quote
            | Class::Open
            | Class::Close
            | Class::Semicolon
            | Class::At => return false,
        };
    }
    true
}

impl Cursor<'_> {
    /// To the next byte that matters, as `mark_behind` has it.
    #[inline]
    pub(crate) fn next_mark(&mut self, free: usize) -> Option<(u8, Class, usize)> {
        let (at, mark, passed) = mark_behind(self.text, self.at, free);
        self.at = at;
        mark.map(|(byte, class)| (byte, class, passed))
    }
}
