//! Rows of numbers, strings and NULLs: what most INSERTs of many rows are made of, read in one loop.

use wide::u8x32;

use crate::cursor::Cursor;
use crate::plan::{Site, SiteKind};
use crate::refusal::Unread;
use crate::rows::{Walked, offset};

const NULL: &[u8] = b"NULL";

/// Bytes of a string that are looked at in one step.
const STEP: usize = 32;

impl Cursor<'_> {
    /// Past rows without the key's column in which there is nothing but constants, and the commas behind them: mostly all but
    /// the last.
    #[inline(never)]
    pub(crate) fn walk_plain_rows(
        &mut self,
        values: usize,
        walked: &mut Walked,
    ) -> Result<(), Unread> {
        let parameters = walked.seen.parameters;
        let (text, mut at) = (self.text, self.at);
        let mut row = walked.row()?;
        let before = walked.sites.len();
        while let Some((start, end)) = plain_row(text, at, values) {
            walked.sites.push(Site {
                start: offset(start)?,
                end: offset(end)?,
                row,
                parameters,
                kind: SiteKind::First,
            });
            // There are fewer than bytes, and those were counted.
            row = row.wrapping_add(1);
            at = end + 2;
        }
        walked.add_rows(walked.sites.len() - before);
        self.at = at;
        Ok(())
    }
}

/// A row of so many values here, if there is nothing but numbers, strings without backslashes and NULLs in it, and a comma
/// behind it: where its values lie between the parentheses.
#[inline(always)]
fn plain_row(text: &[u8], mut at: usize, values: usize) -> Option<(usize, usize)> {
    let mut byte = *text.get(at)?;
    if byte == b' ' || byte == b'\n' {
        at += 1;
        byte = *text.get(at)?;
    }
    if byte != b'(' {
        return None;
    }
    let start = at + 1;
    let mut left = values;
    at = start;
    loop {
        byte = *text.get(at)?;
        at = if byte == b'\'' {
            strings_end(text, at)?
        } else if byte.is_ascii_digit() {
            number_end(text, at)
        } else if byte == b' ' && at > start {
            at += 1;
            continue;
        } else {
            other_end(text, at)?
        };
        left = left.wrapping_sub(1);
        byte = *text.get(at)?;
        at += 1;
        if byte != b',' {
            break;
        }
    }
    (byte == b')' && left == 0 && text.get(at) == Some(&b',')).then_some((start, at - 1))
}

/// Behind a negative number or NULL that starts here; `None`: it may be something else.
#[inline(never)]
fn other_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at..)? {
        [b'-', b'0'..=b'9', ..] => Some(number_end(text, at + 1)),
        rest if rest.get(..NULL.len())?.eq_ignore_ascii_case(NULL) => Some(at + NULL.len()),
        _ => None,
    }
}

/// Behind the digits, and the points among them, that start here.
#[inline(always)]
fn number_end(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    if text.get(at) == Some(&b'.') {
        return decimal_end(text, at);
    }
    at
}

#[inline(never)]
fn decimal_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let is_in = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.');
    at + rest.iter().take_while(is_in).count()
}

/// Behind a string, and those that follow it without anything between: a doubled quote is the end of one and the start of
/// another.
#[inline(always)]
fn strings_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = string_end(text, at)?;
        if text.get(at) != Some(&b'\'') {
            return Some(at);
        }
    }
}

/// Behind the quote that ends the string which starts here; `None` if there is a backslash before it, or no quote.
#[inline(always)]
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let (quote, backslash) = (u8x32::splat(b'\''), u8x32::splat(b'\\'));
    let inside = text.get(start + 1..)?;
    let (blocks, _) = inside.as_chunks::<STEP>();
    let mut at = 0;
    for block in blocks {
        let block = u8x32::new(*block);
        let found = (block.simd_eq(quote) | block.simd_eq(backslash)).to_bitmask();
        if found != 0 {
            at += found.trailing_zeros() as usize;
            return (inside.get(at) == Some(&b'\'')).then_some(start + at + 2);
        }
        at += STEP;
    }
    let rest = inside.get(at..)?;
    at += rest.iter().position(|byte| matches!(byte, b'\'' | b'\\'))?;
    (inside.get(at) == Some(&b'\'')).then_some(start + at + 2)
}

#[cfg(test)]
mod tests {
    use super::{plain_row, string_end};

    #[test]
    fn a_string_ends_at_its_quote_wherever_that_lies() {
        for length in 0..100 {
            for behind in 0..70 {
                for (end, found) in [("'", true), (r"\''", false), (r"\", false), ("", false)] {
                    let text = format!("'{}{end}{}", "s".repeat(length), "t".repeat(behind));
                    let wanted = found.then_some(length + 2);
                    assert_eq!(string_end(text.as_bytes(), 0), wanted, "{text}");
                }
            }
        }
    }

    #[test]
    fn rows_of_constants_are_plain_and_others_are_not() {
        let row = |text: &str, values| plain_row(text.as_bytes(), 0, values).is_some();
        for plain in [
            "(1,'a'),",
            " (12.5, NULL),",
            "\n(-1,  null),",
            "('it''s',''),",
            "('',0),",
        ] {
            assert!(row(plain, 2), "{plain}");
            assert!(!row(plain, 1) && !row(plain, 3), "{plain}");
        }
        for other in [
            "",
            "(",
            "(1",
            "(1,",
            "(1,2",
            "(1,2)",
            "(1,2);",
            "(1,2) ,",
            "( 1,2),",
            "(1 ,2),",
            "(1,2 ),",
            "(1,),",
            "(,1),",
            "(1,--2),",
            "(1,1e5),",
            "(1,'a' 'b'),",
            "(1,'\\''),",
            "(1,NULLs),",
            "(1,nul),",
            "(1,(2)),",
            "(1,?),",
            "(1,now()),",
            "  (1,2),",
            "1,2),",
        ] {
            assert!(!row(other, 2), "{other}");
        }
    }
}
