//! Rows of numbers, strings and NULLs: what most INSERTs of many rows are made of, read in one loop.

use wide::u8x32;

use crate::lex::cursor::Cursor;
use crate::plan::row_sites::{Walked, offset};
use crate::plan::site::{Site, SiteKind};
use crate::refusal::Unread;

const NULL: &[u8] = b"NULL";

/// Bytes of a string that are read in one step.
const STEP: usize = 32;

/// Shortest text that is read from two places at once, bytes.
const TWO_PLACES_BYTES_MIN: usize = 16 << 10;
/// How far behind the middle of a text a row is looked for, bytes.
const LOOK_BYTES_MAX: usize = 4 << 10;

impl Cursor<'_> {
    /// Past rows without the key's column in which there is nothing but constants, and the commas behind them: mostly all but
    /// the last.
    ///
    /// Where a row begins is known when the one before has been read, and the processor waits for that: so long texts are read
    /// from the middle on as well, row by row with those before. Those count if the rows before end where they begin.
    #[inline(never)]
    pub(crate) fn walk_plain_rows(
        &mut self,
        values: usize,
        walked: &mut Walked,
    ) -> Result<(), Unread> {
        let before = walked.sites.len();
        let mut rows = PlainRows {
            text: self.text,
            at: self.at,
            values,
            parameters: walked.seen.parameters,
            row: walked.row()?,
            sites: std::mem::take(&mut walked.sites),
        };
        if let Some(middle) = likely_row(self.text, self.at) {
            let mut behind = PlainRows {
                at: middle,
                row: 0,
                sites: Vec::with_capacity(rows.sites.capacity() / 2),
                ..rows
            };
            // The row at which one of them stays is not tried again: it may be as long as the text.
            while rows.at < middle && rows.read_one()? && behind.read_one()? {}
            while rows.at < middle && rows.read_one()? {}
            if rows.at == middle {
                rows.go_on_as(behind);
            }
        }
        while rows.read_one()? {}
        self.at = rows.at;
        walked.sites = rows.sites;
        walked.add_rows(walked.sites.len() - before);
        Ok(())
    }
}

/// Rows one after the other, from some place on.
struct PlainRows<'a> {
    text: &'a [u8],
    at: usize,
    values: usize,
    parameters: u32,
    row: u32,
    sites: Vec<Site>,
}

impl PlainRows<'_> {
    /// Past one row; false if there is none.
    #[inline(always)]
    fn read_one(&mut self) -> Result<bool, Unread> {
        let Some((start, end)) = plain_row(self.text, self.at, self.values) else {
            return Ok(false);
        };
        self.sites.push(Site {
            start: offset(start)?,
            end: offset(end)?,
            row: self.row,
            parameters: self.parameters,
            kind: SiteKind::First,
        });
        // There are fewer than bytes, and those were counted.
        self.row = self.row.wrapping_add(1);
        self.at = end + 2;
        Ok(true)
    }

    /// Takes over what was read from here on.
    fn go_on_as(&mut self, mut behind: Self) {
        for site in &mut behind.sites {
            site.row = site.row.wrapping_add(self.row);
        }
        self.row = self.row.wrapping_add(behind.row);
        self.at = behind.at;
        self.sites.append(&mut behind.sites);
    }
}

/// Where a row may begin behind the middle of what follows, if that is long.
fn likely_row(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.len().checked_sub(at)?;
    if rest < TWO_PLACES_BYTES_MIN {
        return None;
    }
    let middle = at + rest / 2;
    let end = middle.saturating_add(LOOK_BYTES_MAX).min(text.len());
    let part = text.get(middle..end)?;
    let between = memchr::memmem::find_iter(part, b"),").find(|found| {
        matches!(
            part.get(found + 2..),
            Some([b'(', ..] | [b' ' | b'\n', b'(', ..])
        )
    });
    Some(middle + between? + 2)
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
    use std::time::{Duration, Instant};

    use keywright_core::KeyBatch;

    use super::{TWO_PLACES_BYTES_MIN, likely_row, plain_row, string_end};
    use crate::plan::insert::tests::planned;

    /// Nothing that reads a text once takes so long.
    const LONG: Duration = Duration::from_secs(2);

    /// Long texts are read from two places at once; what looks like a row in the middle may be the inside of a string.
    #[test]
    fn rows_of_long_texts_are_found_whatever_their_strings_look_like() {
        let like_rows = "),(1, ''), (2, ''x''),\n(3, ''";
        let strings = ["", "a", "), (1, ", "),(1,", like_rows];
        for (index, string) in strings.into_iter().enumerate() {
            for (between, other) in [(",", "(7,'')"), (", ", "(7, 7 + 7)"), (",\n", "(7,now())")] {
                for odd_one in [0, 900, 1_100, 1_700, 9_000] {
                    let row = |row: usize| match row == odd_one {
                        true => other.to_owned(),
                        false => format!("({row},'{}')", string.repeat((row + index) % 9)),
                    };
                    let rows: Vec<String> = (0..2_000).map(row).collect();
                    let text = format!("INSERT INTO t (a,b) VALUES {}", rows.join(between));
                    let keyed = |(row, text): (usize, &String)| {
                        format!("({},{}", row + 5_000, text.get(1..).unwrap_or_default())
                    };
                    let keyed: Vec<String> = rows.iter().enumerate().map(keyed).collect();
                    let wanted = format!("INSERT INTO t (`id`,a,b) VALUES {}", keyed.join(between));
                    let text = text.as_bytes();
                    let plan = planned(text, true).expect("it can be read");
                    let keys = KeyBatch::Numbers {
                        first: 5_000,
                        spacing: 1,
                        count: 2_000,
                    };
                    assert_eq!((plan.rows(), plan.keys()), (2_000, 2_000));
                    let numbered = (0..).zip(&plan.sites).all(|(row, site)| site.row == row);
                    assert!(numbered, "{string} {between} {other} {odd_one}");
                    let mut out = Vec::new();
                    plan.splice(text, &keys, &mut out).expect("2000 keys");
                    assert!(
                        out == wanted.as_bytes(),
                        "{string} {between} {other} {odd_one}"
                    );
                }
            }
        }
    }

    /// A second place that comes upon what is no plain row stays there: it was read again for each row of the first.
    #[test]
    fn a_long_row_behind_many_short_ones_is_not_read_for_each_of_them() {
        let (short, long) = ("(1),".repeat(500_000), "s".repeat(2_000_000));
        for end in ["')", "'),(1)", r"\n'),(1)"] {
            let text = format!("INSERT INTO t (a) VALUES {short}(1),(1),(1),('{long}{end}");
            let text = text.as_bytes();
            let started = Instant::now();
            let plan = planned(text, true);
            assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
            assert!(plan.is_ok_and(|plan| plan.rows() > 500_000), "{end}");
        }
    }

    #[test]
    fn a_likely_row_begins_behind_a_comma_near_the_middle() {
        let rows = "(1,2),".repeat(TWO_PLACES_BYTES_MIN);
        let found = likely_row(rows.as_bytes(), 0);
        assert!(found.is_some_and(|at| at % 6 == 0 && at.abs_diff(rows.len() / 2) < 12));
        assert_eq!(likely_row(rows.as_bytes(), rows.len() - 60), None);
        let string = format!("('{}'),(2)", "s".repeat(4 * TWO_PLACES_BYTES_MIN));
        assert_eq!(likely_row(string.as_bytes(), 0), None);
    }

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
