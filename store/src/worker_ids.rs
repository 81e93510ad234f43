//! Which worker ids programs lease, which databases lease that are fed, which are assigned to databases for good; whatever is in none of the
//! ranges is set by hand. They share no number, so that one which was never assigned was never used, either.

use std::fmt;

use thiserror::Error;

use crate::dialect::TableName;
use crate::lease::space::Space;

/// Some numbers that follow each other: `512-1023`, or a single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdRange {
    /// The smallest.
    pub first: u32,
    /// The largest.
    pub last: u32,
}

/// A text that is no such range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{text}\" is no range of worker ids, such as 512-1023")]
pub struct IdRangeError {
    text: String,
}

/// What may be leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leasable {
    /// One of these.
    pub within: IdRange,
    /// But none of these.
    pub without: Option<IdRange>,
}

impl Leasable {
    /// Where nothing is said.
    pub const ANY: Self = Self {
        within: IdRange::ALL,
        without: None,
    };

    /// Whether a number may be leased.
    pub fn has(&self, worker_id: u32) -> bool {
        self.within.has(worker_id) && !self.without.is_some_and(|range| range.has(worker_id))
    }
}

impl IdRange {
    const ALL: Self = Self {
        first: 0,
        last: u32::MAX,
    };

    /// Reads one.
    ///
    /// # Errors
    /// It is none, or ends before it begins.
    pub fn parse(text: &str) -> Result<Self, IdRangeError> {
        let error = || IdRangeError {
            text: text.to_owned(),
        };
        let number = |text: &str| -> Option<u32> {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = number(first.trim())
            .zip(number(last.trim()))
            .ok_or_else(error)?;
        match first <= last {
            true => Ok(Self { first, last }),
            false => Err(error()),
        }
    }

    /// Whether a number is among them.
    pub fn has(&self, worker_id: u32) -> bool {
        (self.first..=self.last).contains(&worker_id)
    }

    /// Whether a number is in both.
    pub fn meets(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl fmt::Display for IdRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(formatter, "{}", self.first),
            false => write!(formatter, "{}-{}", self.first, self.last),
        }
    }
}

/// A table of UidGenerator's: it gives each program that starts a number that nobody had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberTable(TableName);

/// A text that names no such table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{text}\" is no name of a table (letters, digits, _ and $, with or without a schema)")]
pub struct NumberTableError {
    text: String,
}

impl NumberTable {
    /// Reads a name, `WORKER_NODE` or `schema.WORKER_NODE`.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Self, NumberTableError> {
        // It is MySQL's.
        let table = TableName::parse(text, '`');
        table.map(Self).ok_or_else(|| NumberTableError {
            text: text.to_owned(),
        })
    }

    /// As statements name it.
    pub(crate) fn quoted(&self) -> &TableName {
        &self.0
    }
}

/// As settings name it.
impl fmt::Display for NumberTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.plain())
    }
}

/// What a configuration says, or the store has recorded. Nothing said: any is leased, none assigned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerIds {
    /// What programs lease.
    pub leased: Option<IdRange>,
    /// Where each program that starts gets a number of its own instead.
    pub table: Option<NumberTable>,
    /// What databases lease that are fed.
    pub fed: Option<IdRange>,
    /// What databases are assigned.
    pub assigned: Option<IdRange>,
}

impl WorkerIds {
    /// What a program may lease: worker ids, or buckets of readable ids. A database with an assigned number below 256 has that bucket, too;
    /// other buckets are not told apart from those set by hand.
    pub(crate) fn leasable(&self, space: Space) -> Leasable {
        let none = self.assigned.or(self.fed).map(|_| IdRange::ALL);
        match (space, self.leased) {
            (Space::Readable, _) => Leasable {
                within: IdRange::ALL,
                without: self.assigned,
            },
            (Space::Snowflake, Some(within)) => Leasable {
                within,
                without: None,
            },
            (Space::Snowflake, None) => Leasable {
                within: IdRange::ALL,
                without: none,
            },
        }
    }

    /// Whether anything is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// For a sentence: what programs and databases get.
impl fmt::Display for WorkerIds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |range: Option<IdRange>| range.map_or("none".to_owned(), |its| its.to_string());
        if let Some(table) = &self.table {
            return write!(formatter, "from table {table}");
        }
        write!(
            formatter,
            "leased {}, assigned {}",
            name(self.leased),
            name(self.assigned)
        )?;
        match self.fed {
            Some(fed) => write!(formatter, ", of fed databases {fed}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> IdRange {
        IdRange::parse(text).unwrap()
    }

    #[test]
    fn ranges_are_read_and_written() {
        for (text, written) in [
            ("512-1023", "512-1023"),
            ("7", "7"),
            ("7 - 7", "7"),
            ("0-0", "0"),
        ] {
            assert_eq!(range(text).to_string(), written);
        }
        for text in [
            "",
            "-",
            "1-",
            "-1",
            "9-8",
            "a",
            "1-2-3",
            "+1-2",
            "4294967296",
        ] {
            assert!(IdRange::parse(text).is_err(), "{text}");
        }
        assert!(range("1-5").meets(&range("5-9")) && range("5-9").meets(&range("1-5")));
        assert!(range("1-9").meets(&range("3")) && !range("1-4").meets(&range("5-9")));
    }

    #[test]
    fn what_is_assigned_is_never_leased() {
        let ids = |leased: &str, assigned: &str| WorkerIds {
            leased: IdRange::parse(leased).ok(),
            assigned: IdRange::parse(assigned).ok(),
            ..WorkerIds::default()
        };
        assert!(ids("", "").leasable(Space::Snowflake).has(1023));
        assert!(ids("0-9", "").leasable(Space::Snowflake).has(9));
        assert!(!ids("0-9", "").leasable(Space::Snowflake).has(10));
        assert!(!ids("", "5-9").leasable(Space::Snowflake).has(1));
        assert!(ids("0-4", "5-9").leasable(Space::Snowflake).has(4));
        assert!(!ids("0-4", "5-9").leasable(Space::Snowflake).has(5));
        assert!(!ids("0-4", "5-9").leasable(Space::Readable).has(5));
        assert!(ids("0-4", "5-9").leasable(Space::Readable).has(200));
        let fed = WorkerIds {
            fed: IdRange::parse("8-9").ok(),
            ..WorkerIds::default()
        };
        assert!(!fed.leasable(Space::Snowflake).has(1));
    }
}
