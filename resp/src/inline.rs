//! Words of a line, as people type them: `incr orders`, `echo "a b"`.

use crate::fault::Fault;
use crate::span::Span;

/// Splits a line into its words. Those with quotes are written to `unquoted` as what they stand for.
pub(crate) fn split(
    line: &[u8],
    words_max: usize,
    spans: &mut Vec<Span>,
    unquoted: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut at = 0;
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let Some(blank) = rest.iter().position(|byte| !is_blank(*byte)) else {
            return Ok(());
        };
        at = at.saturating_add(blank);
        if spans.len() >= words_max {
            return Err(Fault::ArgumentCount);
        }
        let rest = line.get(at..).unwrap_or_default();
        let end = rest.iter().position(|byte| is_blank(*byte));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        if word.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
            let begin = unquoted.len();
            let taken = unquote(rest, unquoted)?;
            spans.push(Span::Unquoted(begin..unquoted.len()));
            at = at.saturating_add(taken);
        } else {
            let end = at.saturating_add(word.len());
            spans.push(Span::Sent(at..end));
            at = end;
        }
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0B)
}

/// Writes the word that bytes begin with, and returns how many of them it takes.
fn unquote(bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
    let mut rest = bytes;
    loop {
        match rest {
            [] => break,
            [byte, ..] if is_blank(*byte) => break,
            [quote @ (b'"' | b'\''), inside @ ..] => {
                rest = quoted(*quote, inside, out)?;
                // Quotes end a word.
                if rest.first().is_some_and(|byte| !is_blank(*byte)) {
                    return Err(Fault::Quotes);
                }
                break;
            }
            [byte, behind @ ..] => {
                out.push(*byte);
                rest = behind;
            }
        }
    }
    Ok(bytes.len().saturating_sub(rest.len()))
}

/// Writes what stands up to the closing quote, and returns what is behind it.
fn quoted<'a>(quote: u8, inside: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Fault> {
    let mut rest = inside;
    let has_escapes = quote == b'"';
    loop {
        rest = match rest {
            [] => return Err(Fault::Quotes),
            [byte, behind @ ..] if *byte == quote => return Ok(behind),
            [b'\\', b'x', high, low, behind @ ..]
                if has_escapes && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                out.push(hex(*high) << 4 | hex(*low));
                behind
            }
            [b'\\', byte, behind @ ..] if has_escapes => {
                out.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                behind
            }
            [b'\\', b'\'', behind @ ..] => {
                out.push(b'\'');
                behind
            }
            [byte, behind @ ..] => {
                out.push(*byte);
                behind
            }
        };
    }
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'a'..=b'f' => digit.wrapping_sub(b'a').wrapping_add(10),
        b'A'..=b'F' => digit.wrapping_sub(b'A').wrapping_add(10),
        other => other.wrapping_sub(b'0') & 0x0F,
    }
}
