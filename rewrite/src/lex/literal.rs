//! What literals hold: strings without their quotes and escapes, the digits of hexadecimal and binary ones.

use crate::lex::cursor::Cursor;
use crate::lex::name::undouble;

impl Cursor<'_> {
    /// The content of a string as written.
    pub(crate) fn unescaped(&self, quoted: &[u8]) -> Vec<u8> {
        let quote = quoted.first().copied().unwrap_or(b'\'');
        let inner = quoted
            .get(1..quoted.len().saturating_sub(1))
            .unwrap_or_default();
        if self.modes.no_backslash_escapes {
            return undouble(inner, quote);
        }
        let mut content = Vec::with_capacity(inner.len());
        let mut rest = inner.iter().copied();
        while let Some(byte) = rest.next() {
            match byte {
                b'\\' => match rest.next() {
                    Some(b'0') => content.push(0),
                    Some(b'b') => content.push(8),
                    Some(b'n') => content.push(b'\n'),
                    Some(b'r') => content.push(b'\r'),
                    Some(b't') => content.push(b'\t'),
                    Some(b'Z') => content.push(0x1a),
                    Some(other @ (b'%' | b'_')) => content.extend([b'\\', other]),
                    Some(other) => content.push(other),
                    None => {}
                },
                other => {
                    content.push(other);
                    if other == quote {
                        rest.next();
                    }
                }
            }
        }
        content
    }
}

/// The bytes that hexadecimal digits stand for.
pub(crate) fn hex_text(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let byte = |[high, low]: &[u8; 2]| u8::try_from(value(*high)? * 16 + value(*low)?).ok();
    pairs.iter().map(byte).collect()
}

/// The digits of `x'…'`, `0x…`, `b'…'` or `0b…`.
pub(crate) fn digits(literal: &[u8]) -> &[u8] {
    match literal {
        [_, b'\'', digits @ .., b'\''] => digits,
        [b'0', _, digits @ ..] => digits,
        other => other,
    }
}
