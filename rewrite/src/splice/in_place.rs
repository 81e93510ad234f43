//! Writes the new text where the old one lies: the rows move back by what the keys before them take. What a long statement
//! is rewritten to then needs no memory of its own, and is written where the processor's cache has it.

use keywright_core::KeyBatch;

use crate::plan::insert_plan::Plan;
use crate::plan::site::SiteKind;
use crate::splice::decimal::Descending;
use crate::splice::error::SpliceError;
use crate::splice::insert::Given;
use crate::splice::writer::Writer;

/// Rows that are written with the text before them: so many that the rows behind them move by more than [`Descending`]
/// writes at once.
const FRONT_ROWS: usize = 16;

/// Bytes that the text before the other rows mostly becomes longer by.
const FRONT_BYTES_MORE: usize = 512;

/// How a text of many rows is rewritten where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InPlace {
    /// The text before the rows that move, rewritten.
    front: Vec<u8>,
    /// The last key, and how far apart they are.
    last: u64,
    spacing: u64,
    /// Bytes of a key and the comma behind it: of each the same.
    key_bytes: usize,
    old_bytes: usize,
    new_bytes: usize,
}

impl InPlace {
    /// How long the new text is, bytes. Longer than the old one.
    pub fn new_bytes(&self) -> usize {
        self.new_bytes
    }

    /// What rewriting takes of memory beyond the old text, bytes.
    pub fn more_bytes(&self) -> usize {
        let longer = self.new_bytes.saturating_sub(self.old_bytes);
        longer.saturating_add(self.front.len())
    }
}

impl Plan {
    /// How to rewrite a text where it lies; `None` if that is not for such a text: [`Plan::splice`] is for all. It is for rows
    /// that get their key put first, where the keys are as long as each other and as far apart.
    pub fn in_place(&self, text: &[u8], keys: &KeyBatch) -> Option<InPlace> {
        let (front_sites, sites) = self.sites.split_at_checked(FRONT_ROWS)?;
        let at = usize::try_from(sites.first()?.start).ok()?;
        let is_edited = self.edits.last().is_some_and(|(place, _)| *place > at);
        if is_edited || sites.iter().any(|site| site.kind != SiteKind::First) {
            return None;
        }
        let mut front = Vec::with_capacity(at.saturating_add(FRONT_BYTES_MORE));
        let mut writer = Writer::new(self, text, &mut front);
        let mut given = Given::new(self.last_insert_id, keys);
        given.write(front_sites, &mut writer).ok()?;
        writer.copy_to(at).ok()?;
        let next = given.rest()?;
        let rows = u64::try_from(sites.len()).ok()?;
        let more = next.spacing.checked_mul(rows.checked_sub(1)?)?;
        let last = next.next.checked_add(more)?;
        let digits = last.checked_ilog10().unwrap_or(0);
        if keys.len() != self.keys() || next.next.checked_ilog10().unwrap_or(0) != digits {
            return None;
        }
        let key_bytes = usize::try_from(digits).ok()? + 2;
        let rows_bytes = text.len().checked_sub(at)? + sites.len() * key_bytes;
        let new_bytes = front.len() + rows_bytes;
        (new_bytes > text.len()).then_some(InPlace {
            front,
            last,
            spacing: next.spacing,
            key_bytes,
            old_bytes: text.len(),
            new_bytes,
        })
    }

    /// Rewrites the text at the beginning of `room`, which is as long as the new one.
    ///
    /// # Errors
    /// [`SpliceError`] when `room` is of another length or does not hold the text that was planned; it holds no statement then.
    pub fn write_in_place(&self, how: &InPlace, room: &mut [u8]) -> Result<(), SpliceError> {
        if room.len() != how.new_bytes {
            return Err(SpliceError::Text);
        }
        let mut number = Descending::new(how.last);
        // Up to here the old text is to be moved, and from here on the new one is there.
        let (mut end, mut done) = (how.old_bytes, room.len());
        for site in self.sites.iter().skip(FRONT_ROWS).rev() {
            let start = usize::try_from(site.start).map_err(|_| SpliceError::Text)?;
            let bytes = end.checked_sub(start).ok_or(SpliceError::Text)?;
            done = done
                .checked_sub(bytes)
                .filter(|done| *done >= start)
                .ok_or(SpliceError::Text)?;
            room.copy_within(start..end, done);
            end = start;
            let before = room.get_mut(end..done).ok_or(SpliceError::Text)?;
            number.write_at_end(before).ok_or(SpliceError::Text)?;
            number.go_down(how.spacing);
            done = done.saturating_sub(how.key_bytes);
        }
        let front = room.get_mut(..done).ok_or(SpliceError::Text)?;
        if front.len() != how.front.len() {
            return Err(SpliceError::Text);
        }
        front.copy_from_slice(&how.front);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use keywright_core::KeyBatch;

    use crate::modes::{Flavour, Modes, Server};
    use crate::plan::insert::tests::{planned, planned_in};
    use crate::plan::insert_plan::Plan;

    fn plan(text: &str) -> Plan {
        planned(text.as_bytes(), false).expect("it can be read")
    }

    fn rows(count: usize) -> String {
        let row = |index: usize| format!("({index}, '{}')", "é".repeat(index * 7 % 50));
        (0..count).map(row).collect::<Vec<_>>().join(", ")
    }

    /// The text as it is rewritten in place, if it is, which must be what it is rewritten to.
    fn in_place(text: &str, keys: &KeyBatch) -> Option<String> {
        let plan = plan(text);
        let mut spliced = Vec::new();
        let written = plan.splice(text.as_bytes(), keys, &mut spliced);
        let how = plan.in_place(text.as_bytes(), keys)?;
        written.expect("what is rewritten in place can be rewritten");
        let mut room = text.as_bytes().to_vec();
        room.resize(how.new_bytes(), b'?');
        plan.write_in_place(&how, &mut room).expect("it fits");
        let spliced = String::from_utf8(spliced).expect("text");
        assert_eq!(String::from_utf8_lossy(&room), spliced);
        Some(spliced)
    }

    fn numbers(first: u64, spacing: u64, count: u64) -> KeyBatch {
        KeyBatch::Numbers {
            first,
            spacing,
            count,
        }
    }

    #[test]
    fn rows_are_the_same_in_place() {
        for count in [17, 18, 100, 1000] {
            let rows = rows(count);
            let count = u64::try_from(count).unwrap_or(0);
            for text in [
                format!("INSERT INTO t (a, b) VALUES {rows}"),
                format!("REPLACE t(b,c) VALUE {rows} ; "),
                format!("INSERT INTO t (a, b) VALUES {rows} ON DUPLICATE KEY UPDATE a = 1 /* é */"),
            ] {
                for first in [10_000, 5_000_000_000, 7_200_000_000_000_000_000] {
                    for spacing in [1, 2, 60, 99, 100, 101, 1 << 20] {
                        let last = first + spacing * count;
                        if last.ilog10() == first.ilog10() {
                            let keys = numbers(first, spacing, count);
                            assert!(in_place(&text, &keys).is_some(), "{keys:?} in {text}");
                        }
                    }
                }
                assert!(in_place(&text, &numbers(3, 0, count)).is_some());
            }
        }
    }

    /// The alias of a column stands behind the rows, which is not written in place.
    #[test]
    fn names_behind_the_rows_are_not_left_out() {
        let modes = Modes {
            no_auto_value_on_zero: Some(false),
            ..Modes::plain(Server {
                flavour: Flavour::MySql,
                version: 90_704,
            })
        };
        let keys = numbers(1 << 40, 1, 20);
        for (alias, is_in_place) in [
            ("AS n(x,y) ON DUPLICATE KEY UPDATE a=x", false),
            ("AS n ON DUPLICATE KEY UPDATE a=n.a", true),
        ] {
            let text = format!("INSERT INTO t (a, b) VALUES {} {alias}", rows(20));
            let plan = planned_in(text.as_bytes(), &modes, false).expect("it can be read");
            let how = plan.in_place(text.as_bytes(), &keys);
            assert_eq!(how.is_some(), is_in_place, "{alias}");
        }
    }

    #[test]
    fn what_is_not_alike_is_not_rewritten_in_place() {
        let text = |rows: &str| format!("INSERT INTO t (a, b) VALUES {rows}");
        let many = numbers(1 << 40, 1, 20);
        assert_eq!(in_place(&text(&rows(16)), &numbers(1 << 40, 1, 16)), None);
        assert_eq!(in_place(&text(&rows(20)), &numbers(82, 1, 20)), None);
        assert_eq!(in_place(&text(&rows(20)), &numbers(u64::MAX, 1, 20)), None);
        assert_eq!(in_place(&text(&rows(20)), &numbers(1 << 40, 1, 19)), None);
        assert_eq!(in_place(&text(&rows(20)), &numbers(1 << 40, 1, 21)), None);
        let listed = KeyBatch::Listed((1..=20).collect());
        assert_eq!(in_place(&text(&rows(20)), &listed), None);
        let own = ["(1, 5)"; 20].join(", ");
        let own = format!("INSERT INTO t (a, id) VALUES {own}");
        assert_eq!(in_place(&own, &KeyBatch::Listed(Vec::new())), None);
        let nulls = ["(1, NULL)"; 20].join(", ");
        let nulls = format!("INSERT INTO t (a, id) VALUES {nulls}");
        assert_eq!(in_place(&nulls, &many), None);
    }

    #[test]
    fn another_text_is_not_written_over() {
        let text = format!("INSERT INTO t (a, b) VALUES {}", rows(20));
        let plan = plan(&text);
        let how = plan
            .in_place(text.as_bytes(), &numbers(1 << 40, 1, 20))
            .expect("rows alike");
        for bytes in [0, text.len(), how.new_bytes() - 1, how.new_bytes() + 1] {
            assert!(plan.write_in_place(&how, &mut vec![0; bytes]).is_err());
        }
    }
}
