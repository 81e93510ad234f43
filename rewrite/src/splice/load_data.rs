//! Writes a LOAD DATA with its keys.

use keywright_core::KeyBatch;

use crate::lex::quote::quote_name;
use crate::plan::load_data::LoadPlan;
use crate::splice::error::SpliceError;
use crate::splice::out_of_range::{GIVEN, OUT_OF_RANGE};

/// Ranges that keys of one statement may lie in: each costs comparisons in every row.
const RANGES_MAX: usize = 1_000;

/// Keys at equal distances.
struct Range {
    first: u64,
    last: u64,
    spacing: u64,
}

impl LoadPlan {
    /// Appends the statement's new text to `out`. LAST_INSERT_ID() must be 0 when it is carried out. With more rows that need
    /// keys than there are keys it fails, and where none may be given, also with a row that brings its own.
    ///
    /// # Errors
    /// [`SpliceError`] when the keys are none, or in too many ranges, or `text` is another one than was planned.
    pub fn splice(
        &self,
        text: &[u8],
        keys: &KeyBatch,
        may_give: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SpliceError> {
        let (front, rest) = text.split_at_checked(self.at).ok_or(SpliceError::Text)?;
        let ranges = ranges(keys).ok_or(SpliceError::Keys {
            wanted: 1,
            given: keys.len(),
        })?;
        out.extend_from_slice(front);
        out.extend_from_slice(if self.has_set { b"," } else { b" SET " });
        quote_name(&self.key_name, out);
        out.extend_from_slice(b"=CASE");
        if self.given {
            self.write_given(may_give, out);
        }
        write_next(&ranges, out);
        out.extend_from_slice(b" END");
        out.extend_from_slice(rest);
        Ok(())
    }

    /// What becomes of a key that was stored.
    fn write_given(&self, may_give: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b" WHEN ");
        quote_name(&self.key_name, out);
        out.extend_from_slice(b"<>0 THEN ");
        if may_give {
            quote_name(&self.key_name, out);
            return;
        }
        out.extend_from_slice(b"CAST(");
        quote_name(&self.key_name, out);
        out.extend_from_slice(format!(" AS SIGNED)*{GIVEN}*{GIVEN}").as_bytes());
    }
}

/// The key behind the one that LAST_INSERT_ID() is. It goes on from a key of ours only, whatever may have changed it.
fn write_next(ranges: &[Range], out: &mut Vec<u8>) {
    let mut before = 0;
    for Range {
        first,
        last,
        spacing,
    } in ranges
    {
        let mut text = format!(" WHEN LAST_INSERT_ID()={before} THEN LAST_INSERT_ID({first})");
        if first < last {
            text.push_str(&format!(
                " WHEN LAST_INSERT_ID()>={first} AND LAST_INSERT_ID()<{last} THEN LAST_INSERT_ID(LAST_INSERT_ID()+{spacing})"
            ));
        }
        out.extend_from_slice(text.as_bytes());
        before = *last;
    }
    let end = format!(" ELSE LAST_INSERT_ID()*{OUT_OF_RANGE}*{OUT_OF_RANGE}");
    out.extend_from_slice(end.as_bytes());
}

/// The ranges that keys lie in; none if there are no keys, they are no ascending numbers from 1 on, or lie in too many ranges.
fn ranges(keys: &KeyBatch) -> Option<Vec<Range>> {
    let ranges = match keys {
        KeyBatch::Numbers {
            first,
            spacing,
            count,
        } => {
            let last = count.checked_sub(1)?.checked_mul(*spacing)?;
            vec![Range {
                first: *first,
                last: first.checked_add(last)?,
                spacing: *spacing,
            }]
        }
        KeyBatch::Listed(numbers) => listed(numbers)?,
        KeyBatch::Texts(_) | KeyBatch::Bytes(_) => return None,
    };
    let first = ranges.first()?.first;
    (first > 0).then_some(ranges)
}

fn listed(numbers: &[u64]) -> Option<Vec<Range>> {
    let mut ranges: Vec<Range> = Vec::new();
    for number in numbers {
        let last = ranges.last_mut();
        // Of a range with one number the distance is still open.
        let distance = match &last {
            Some(range) => Some(number.checked_sub(range.last).filter(|gap| *gap > 0)?),
            None => None,
        };
        match last {
            Some(range) if range.first == range.last || distance == Some(range.spacing) => {
                (range.last, range.spacing) = (*number, distance?);
            }
            Some(_) | None => ranges.push(Range {
                first: *number,
                last: *number,
                spacing: 1,
            }),
        }
        if ranges.len() > RANGES_MAX {
            return None;
        }
    }
    Some(ranges)
}
