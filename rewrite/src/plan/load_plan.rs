//! The plan of a LOAD DATA, and how it is written with its keys.

use keywright_core::KeyBatch;

use crate::lex::name::write_name;
use crate::plan::select_plan::{ER_DATA_OUT_OF_RANGE, OUT_OF_RANGE};
use crate::splice::insert::SpliceError;

/// What to do with one LOAD DATA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadPlan {
    pub(crate) key_name: Vec<u8>,
    /// The assignment goes here.
    pub(crate) at: usize,
    pub(crate) has_set: bool,
    pub(crate) given: bool,
    pub(crate) local: bool,
    pub(crate) may_skip: bool,
    pub(crate) effects: bool,
    pub(crate) reads: bool,
    pub(crate) line_end: u8,
}

/// Ranges that keys of one statement may lie in: each costs comparisons in every row.
const RANGES_MAX: usize = 1_000;

/// As `OUT_OF_RANGE`, for a row that brings its own key.
const GIVEN: &str = "6364136223846793005";

/// Whether an error says that a row brought its own key although none may.
pub fn is_given_key(number: u16, message: &[u8]) -> bool {
    number == ER_DATA_OUT_OF_RANGE
        && message
            .windows(GIVEN.len())
            .any(|part| part == GIVEN.as_bytes())
}

/// Keys at equal distances.
struct Range {
    first: u64,
    last: u64,
    spacing: u64,
}

impl LoadPlan {
    /// Whether the client sends the file.
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// Whether rows may bring their own keys. If not, every row gets one.
    pub fn may_be_given(&self) -> bool {
        self.given
    }

    /// Whether rows may not go in: IGNORE, and LOCAL without REPLACE.
    pub fn may_skip(&self) -> bool {
        self.may_skip
    }

    /// Whether carrying the statement out twice may leave more behind than once, even if the first time fails.
    pub fn has_effects(&self) -> bool {
        self.effects
    }

    /// Whether it reads from tables, or views, beside its file.
    pub fn reads(&self) -> bool {
        self.reads
    }

    /// The byte that every line but the last ends with: a file with n of them has n + 1 rows at most.
    pub fn line_end(&self) -> u8 {
        self.line_end
    }

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
        write_name(&self.key_name, out);
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
        write_name(&self.key_name, out);
        out.extend_from_slice(b"<>0 THEN ");
        if may_give {
            write_name(&self.key_name, out);
            return;
        }
        out.extend_from_slice(b"CAST(");
        write_name(&self.key_name, out);
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

#[cfg(test)]
mod tests {
    use super::is_given_key;

    const OURS: &[u8] =
        b"BIGINT value is out of range in 'cast(`d`.`t`.`id` as signed) * 6364136223846793005'";

    #[test]
    fn only_an_error_of_ours_says_that_a_row_brings_its_own_key() {
        assert!(is_given_key(1690, OURS));
        assert!(is_given_key(1690, b"6364136223846793005"));
        for (number, message) in [
            (1690, &b"BIGINT value is out of range in 'cast(`d`.`t`.`a` as signed) * 2'"[..]),
            (1690, b"BIGINT UNSIGNED value is out of range in 'last_insert_id() * 7046029254386353131'"),
            (1690, b""),
            (1062, b"Duplicate entry '6364136223846793005' for key 'PRIMARY'"),
            (1264, OURS),
        ] {
            assert!(!is_given_key(number, message), "{number}");
        }
    }
}
