//! Which worker id a database is assigned, and whether one that asks again is still the one that has it: pure rules.
//!
//! A row says by which mark its database is known; while an ask is under way there are two, since nobody knows which of them the
//! database has. The store forgets the older one when the database is known to have the newer. So of two databases that began with one
//! mark, only one can come with a mark that the row knows; and a number is used only by a database that was confirmed. Whether one that
//! was confirmed has taken the number nobody hears: it is given to the same database again, but to none that may be a copy of it.

use keywright_core::Mark;
use thiserror::Error;

use crate::worker_ids::IdRange;

/// What became of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentState {
    /// A database has it.
    Assigned,
    /// It was given up, and how far it was used is known.
    Released,
    /// It is never given again.
    Retired,
}

impl AssignmentState {
    const ALL: [Self; 3] = [Self::Assigned, Self::Released, Self::Retired];

    /// As in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Assigned => "assigned",
            Self::Released => "released",
            Self::Retired => "retired",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// Which database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseName {
    /// Its server's system identifier; copies have it, too.
    pub system: String,
    /// Its object id.
    pub oid: u32,
    /// Host, port and name, for people.
    pub place: String,
}

impl DatabaseName {
    fn is_like(&self, other: &Self) -> bool {
        self.system == other.system && self.oid == other.oid
    }
}

/// A number that was ever assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedRow {
    /// The number.
    pub worker_id: u32,
    /// What became of it.
    pub state: AssignmentState,
    /// The mark of its database.
    pub mark: Mark,
    /// Or this one, which it was sent.
    pub next: Option<Mark>,
    /// Counts asks: whoever writes must have read the last.
    pub asks: u32,
    /// Whether ids may have been issued with it.
    pub is_used: bool,
    /// All ids of its last owners are of moments before this, unix milliseconds.
    pub bound_ms: Option<i64>,
    /// Who has or had it.
    pub database: DatabaseName,
    /// When that was, unix milliseconds.
    pub assigned_at_ms: i64,
    /// The last ask.
    pub asked_at_ms: i64,
    /// When it was released or retired.
    pub released_at_ms: Option<i64>,
    /// The store was restored since: it does not know the mark.
    pub is_restored: bool,
    /// A copy that asked, for people.
    pub report: Option<String>,
}

/// A database that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// Its mark.
    pub mark: Mark,
    /// The number that it has under this mark; `None`: it is to get one.
    pub worker_id: Option<u32>,
    /// It has not been started anew since it has this mark, so it is no copy of a database with that.
    pub is_same_life: bool,
    /// Which it is.
    pub database: DatabaseName,
}

/// What the store knows of all numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers<'a> {
    /// Those that were ever assigned.
    pub rows: &'a [AssignedRow],
    /// Those that may be.
    pub range: IdRange,
    /// The first that never was.
    pub next_id: u32,
    /// The store was restored: it may have been since.
    pub is_restored: bool,
}

/// Which number it gets or has, and how the store comes to say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The number.
    pub worker_id: u32,
    /// Where it is found.
    pub from: Found,
    /// What its row will count.
    pub asks: u32,
}

/// Where a number is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It is the asker's; the row counts so many asks.
    Own {
        /// Asks until now.
        asks: u32,
    },
    /// It was never assigned.
    New,
    /// The asker has it, by what it says, and a restored store does not know it.
    Lost,
    /// It was released; the row counts so many asks.
    Released {
        /// Asks until now.
        asks: u32,
    },
}

/// Why a database gets no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// The number is known by another mark now: this one is a copy, or the other is.
    #[error("worker id {worker_id} has another mark than this database: {now}")]
    Stale {
        /// The number.
        worker_id: u32,
        /// What is known of it.
        now: String,
    },
    /// The store knows less than the database.
    #[error(
        "the store knows less of worker id {worker_id} than this database: it is another store, or was restored from a backup"
    )]
    StoreBehind {
        /// The number.
        worker_id: u32,
    },
    /// A number is another one's that may have gone on from the same mark.
    #[error("another database may have worker id {worker_id} under this mark")]
    MayBeAnothers {
        /// The number.
        worker_id: u32,
    },
    /// The store was restored, and nobody said since what may have been assigned.
    #[error(
        "the store was restored, and which worker ids were assigned since the backup is not known"
    )]
    Restored,
    /// All numbers were assigned.
    #[error(
        "all worker ids of {range} were assigned, and none was released that can be given again"
    )]
    NoneLeft {
        /// Those that may be assigned.
        range: IdRange,
    },
}

/// Decides what a database gets that asks.
///
/// # Errors
/// [`Refused`].
pub fn plan_ask(numbers: &Numbers<'_>, asker: &Asker) -> Result<Ask, Refused> {
    match asker.worker_id {
        Some(worker_id) => ask_again(numbers, asker, worker_id),
        None => ask_for_one(numbers, asker),
    }
}

fn knows(row: &AssignedRow, mark: Mark) -> bool {
    row.state == AssignmentState::Assigned && (row.mark == mark || row.next == Some(mark))
}

fn own(row: &AssignedRow, asker: &Asker) -> Ask {
    Ask {
        worker_id: row.worker_id,
        from: Found::Own { asks: row.asks },
        asks: row.asks.max(asker.mark.asks).saturating_add(1),
    }
}

fn ask_again(numbers: &Numbers<'_>, asker: &Asker, worker_id: u32) -> Result<Ask, Refused> {
    let row = numbers.rows.iter().find(|row| row.worker_id == worker_id);
    match row {
        Some(row) if knows(row, asker.mark) => Ok(own(row, asker)),
        // Whoever comes first goes on with what it has; whoever comes next is found.
        Some(row)
            if row.is_restored
                && row.state == AssignmentState::Assigned
                && row.database.is_like(&asker.database) =>
        {
            Ok(own(row, asker))
        }
        Some(row) if asker.mark.asks > row.asks => Err(Refused::StoreBehind { worker_id }),
        Some(row) => Err(Refused::Stale {
            worker_id,
            now: match row.state {
                AssignmentState::Assigned => format!("{} has asked since", row.database.place),
                AssignmentState::Released | AssignmentState::Retired => {
                    format!("it was {}", row.state.name())
                }
            },
        }),
        None if numbers.range.has(worker_id) && worker_id < numbers.next_id => Ok(Ask {
            worker_id,
            from: Found::Lost,
            asks: asker.mark.asks.saturating_add(1),
        }),
        None => Err(Refused::StoreBehind { worker_id }),
    }
}

fn ask_for_one(numbers: &Numbers<'_>, asker: &Asker) -> Result<Ask, Refused> {
    if let Some(row) = numbers.rows.iter().find(|row| knows(row, asker.mark)) {
        // Who was confirmed may have taken the number, and nobody heard of it.
        return match row.is_used && !asker.is_same_life {
            true => Err(Refused::MayBeAnothers {
                worker_id: row.worker_id,
            }),
            false => Ok(own(row, asker)),
        };
    }
    if numbers.is_restored {
        return Err(Refused::Restored);
    }
    let next_id = numbers.next_id.max(numbers.range.first);
    if numbers.range.has(next_id) {
        return Ok(Ask {
            worker_id: next_id,
            from: Found::New,
            asks: asker.mark.asks.saturating_add(1),
        });
    }
    // The one that was given up first: its ids lie furthest back.
    let released = numbers
        .rows
        .iter()
        .filter(|row| row.state == AssignmentState::Released && numbers.range.has(row.worker_id));
    let row = released.min_by_key(|row| (row.released_at_ms, row.worker_id));
    row.map(|row| Ask {
        worker_id: row.worker_id,
        from: Found::Released { asks: row.asks },
        asks: row.asks.max(asker.mark.asks).saturating_add(1),
    })
    .ok_or(Refused::NoneLeft {
        range: numbers.range,
    })
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
