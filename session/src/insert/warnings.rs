//! The list of a statement's warnings, which may be longer than what is gathered of an answer: it is asked for in parts then.

use keywright_wire::answer::End;
use keywright_wire::bytes::Reader;
use keywright_wire::packets::packets;

/// Rows that are asked for at once. A text has 512 characters at most, of four bytes at most in the character set of the client's results.
const ROWS_AT_ONCE_MAX: u16 = 4096;

/// A part of the list, which is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Warnings {
    /// How many warnings there are. The list may have fewer (`max_error_count`).
    count: u16,
    /// How many rows stand before.
    before: u16,
}

/// What a part of the list says.
#[derive(Debug)]
pub(crate) enum Listed {
    /// It has a warning with this number.
    Has,
    /// The list has none.
    HasNot,
    /// What follows may have one.
    Next(Warnings),
    /// It is no list.
    NoList,
}

impl Warnings {
    /// The beginning of the list.
    pub(crate) fn of(end: Option<End>) -> Self {
        let count = match end {
            Some(End::Ok(done)) => done.warnings,
            Some(End::Error | End::Prepared { .. }) | None => 0,
        };
        Self { count, before: 0 }
    }

    /// Asks for it, which does not clear it.
    pub(crate) fn question(self) -> String {
        let Self { count, before } = self;
        match count > ROWS_AT_ONCE_MAX {
            true => format!("SHOW WARNINGS LIMIT {before},{ROWS_AT_ONCE_MAX}"),
            false => "SHOW WARNINGS".to_owned(),
        }
    }

    /// Whether the list has a warning with this number, as far as the answer says.
    pub(crate) fn listed(self, answer: &[u8], number: &[u8]) -> Listed {
        let Some(packets) = packets(answer) else {
            return Listed::NoList;
        };
        // Level, number, text.
        let is_list = packets.first().is_some_and(|(_, first)| *first == [3]);
        let Some(rows) = packets.get(4..).filter(|_| is_list) else {
            return Listed::NoList;
        };
        let mut numbers = rows.iter().filter_map(|(_, row)| {
            let mut row = Reader(row);
            row.text()?;
            row.text()
        });
        if numbers.any(|its| its == number) {
            return Listed::Has;
        }
        let is_full = rows.len() > usize::from(ROWS_AT_ONCE_MAX);
        let before = self.before.saturating_add(ROWS_AT_ONCE_MAX);
        match is_full && before < self.count {
            true => Listed::Next(Self { before, ..self }),
            false => Listed::HasNot,
        }
    }
}
