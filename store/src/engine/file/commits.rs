//! How an older state is noticed that somebody writes into the file while programs use it (`cp backup store.db`).
//!
//! The file stays the one that they have open, so what SQLite has in memory counts as up to date: pages that are written next would come from
//! the newer state, and all others stay the older one's. So what SQLite has read is forgotten before each transaction ([`forget`]), and
//! each transaction that writes draws a token. Programs remember the last one ([`Commits::has`]). The tokens are in two tables, and so on two
//! pages, in turn, and each names the one before. Where a commit is copied into a file that was overwritten since the commit began, the other
//! page is the older state's, and the two do not fit: then everybody knows, also who starts later.

use std::time::Duration;

use rusqlite::{Connection, Row};
use uuid::Uuid;

use super::error::FileError;

/// How long those who read are waited for, milliseconds, before what was committed is copied into the file.
const READERS_MS_MAX: u64 = 100;
/// Has the commits with even numbers: the last one of these, in one row.
const EVEN: &str = "keywright_commit_even";
/// Has the others.
const ODD: &str = "keywright_commit_odd";

const READ: &str = "SELECT e.serial, e.token, e.previous, o.serial, o.token, o.previous \
                    FROM keywright_commit_even AS e, keywright_commit_odd AS o";

/// A commit that wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    serial: i64,
    token: String,
}

impl Commit {
    fn new(serial: i64) -> Self {
        Self {
            serial,
            token: Uuid::new_v4().simple().to_string(),
        }
    }

    /// Whether it was made after the other one, as far as their numbers say.
    pub(super) fn is_later_than(&self, other: &Self) -> bool {
        self.serial > other.serial
    }

    fn table(&self) -> &'static str {
        match self.serial % 2 == 0 {
            true => EVEN,
            false => ODD,
        }
    }
}

/// The last two commits of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commits {
    pub(super) last: Commit,
    before: Commit,
}

impl Commits {
    /// Whether a commit is among those that led to this state. Of one that is long ago its number must do.
    pub(super) fn has(&self, seen: &Commit) -> bool {
        if seen.serial == self.last.serial {
            return *seen == self.last;
        }
        if seen.serial == self.before.serial {
            return *seen == self.before;
        }
        seen.serial < self.before.serial
    }
}

/// Forgets what was read of the file, between two transactions. A commit of another program does so too, a copy that somebody writes into the file does
/// not.
pub(super) fn forget(connection: &Connection, busy_ms: u64) -> Result<(), FileError> {
    let forgotten = connection.release_memory();
    forgotten.map_err(|error| FileError::of(&error, busy_ms))
}

/// The last two commits; `None`: the file was made by a version that did not record them.
///
/// # Errors
/// The two do not fit: an older state was written over what one of them read.
pub(super) fn read(connection: &Connection, busy_ms: u64) -> Result<Option<Commits>, FileError> {
    let found = connection.prepare_cached(READ).and_then(|mut read| {
        read.query_row((), |row| Ok((commit_at(row, 0)?, commit_at(row, 3)?)))
    });
    let (even, odd) = match found {
        Ok(found) => found,
        Err(rusqlite::Error::QueryReturnedNoRows) => return Err(FileError::Overwritten),
        Err(error) => {
            let error = FileError::of(&error, busy_ms);
            return match error.is_missing_table() {
                true => Ok(None),
                false => Err(error),
            };
        }
    };
    let is_even_last = even.0.is_later_than(&odd.0);
    let ((last, previous), (before, _)) = match is_even_last {
        true => (even, odd),
        false => (odd, even),
    };
    let is_next = before.serial.checked_add(1) == Some(last.serial);
    match is_next && previous == before.token {
        true => Ok(Some(Commits { last, before })),
        false => Err(FileError::Overwritten),
    }
}

/// A commit, and the token of the one before.
fn commit_at(row: &Row<'_>, first: usize) -> rusqlite::Result<(Commit, String)> {
    let commit = Commit {
        serial: row.get(first)?,
        token: row.get(first + 1)?,
    };
    Ok((commit, row.get(first + 2)?))
}

/// Records the commit that ends this transaction, which began behind `last`.
pub(super) fn record(
    connection: &Connection,
    last: &Commit,
    busy_ms: u64,
) -> Result<Commit, FileError> {
    let of = |error: rusqlite::Error| FileError::of(&error, busy_ms);
    let next = Commit::new(last.serial.checked_add(1).ok_or(FileError::Overwritten)?);
    let update = format!(
        "UPDATE {} SET serial = ?, token = ?, previous = ?",
        next.table()
    );
    let changed = connection
        .prepare_cached(&update)
        .and_then(|mut update| update.execute((next.serial, &next.token, &last.token)))
        .map_err(of)?;
    match changed {
        1 => Ok(next),
        _ => Err(FileError::Overwritten),
    }
}

/// Makes the tables, or what they say, anew: within a transaction.
pub(super) fn make(connection: &Connection, busy_ms: u64) -> Result<(), FileError> {
    let (before, last) = (Commit::new(0), Commit::new(1));
    write_both(connection, (&before, ""), (&last, &before.token), busy_ms)
}

/// Has the file tell everybody that an older state was written into it, also who starts later: within a transaction.
pub(super) fn spoil(connection: &Connection, busy_ms: u64) -> Result<(), FileError> {
    let (before, last) = (Commit::new(0), Commit::new(1));
    write_both(connection, (&before, ""), (&last, "overwritten"), busy_ms)
}

fn write_both(
    connection: &Connection,
    (even, before_even): (&Commit, &str),
    (odd, before_odd): (&Commit, &str),
    busy_ms: u64,
) -> Result<(), FileError> {
    let of = |error: rusqlite::Error| FileError::of(&error, busy_ms);
    for (commit, previous) in [(even, before_even), (odd, before_odd)] {
        let table = commit.table();
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {table} (
                id       INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
                serial   INTEGER NOT NULL,
                token    TEXT    NOT NULL,
                previous TEXT    NOT NULL
            ) STRICT"
        );
        connection.execute(&create, ()).map_err(of)?;
        let write = format!(
            "INSERT OR REPLACE INTO {table} (id, serial, token, previous) VALUES (1, ?, ?, ?)"
        );
        let values = (commit.serial, &commit.token, previous);
        connection.execute(&write, values).map_err(of)?;
    }
    Ok(())
}

/// Copies what was committed from the log into the file itself, so that whoever renames the file after a crash, or deletes the log, takes
/// nothing back. What somebody keeps from being copied, who has been reading for longer, stays in the log until the next commit.
pub(super) fn copy_back(connection: &Connection, busy_ms: u64) -> Result<(), FileError> {
    let copied = connection
        .busy_timeout(Duration::from_millis(READERS_MS_MAX.min(busy_ms)))
        .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(FULL)", (), |_| Ok(())))
        .and_then(|()| connection.busy_timeout(Duration::from_millis(busy_ms)));
    copied.map_err(|error| FileError::of(&error, busy_ms))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::error::FileError;
    use super::{Commits, EVEN, make, read, record, spoil};

    const BUSY_MS: u64 = 100;

    fn made() -> Result<Connection, FileError> {
        let connection =
            Connection::open_in_memory().map_err(|error| FileError::of(&error, BUSY_MS))?;
        assert_eq!(read(&connection, BUSY_MS)?, None);
        make(&connection, BUSY_MS)?;
        Ok(connection)
    }

    fn commits(connection: &Connection) -> Result<Commits, FileError> {
        read(connection, BUSY_MS)?.ok_or(FileError::Empty)
    }

    #[test]
    fn each_commit_follows_the_one_before() -> Result<(), FileError> {
        let connection = made()?;
        let first = commits(&connection)?.last;
        let mut all = vec![first];
        for _ in 0..5 {
            let last = commits(&connection)?.last;
            let next = record(&connection, &last, BUSY_MS)?;
            assert!(next.is_later_than(&last));
            all.push(next);
            let now = commits(&connection)?;
            assert!(all.iter().all(|seen| now.has(seen)), "{all:?}, {now:?}");
        }
        Ok(())
    }

    #[test]
    fn an_older_state_does_not_have_what_was_seen() -> Result<(), FileError> {
        let connection = made()?;
        let older = commits(&connection)?;
        let seen = record(&connection, &older.last, BUSY_MS)?;
        assert!(!older.has(&seen));
        // As many commits later it is another one.
        let other = record(&made()?, &older.last, BUSY_MS)?;
        assert!(!commits(&connection)?.has(&other));
        Ok(())
    }

    #[test]
    fn a_mixture_of_two_states_is_told() -> Result<(), FileError> {
        let connection = made()?;
        let first = commits(&connection)?.last;
        let second = record(&connection, &first, BUSY_MS)?;
        record(&connection, &second, BUSY_MS)?;
        let older = format!("UPDATE {EVEN} SET serial = 0, token = 'older', previous = ''");
        let changed = connection.execute(&older, ());
        changed.map_err(|error| FileError::of(&error, BUSY_MS))?;
        assert_eq!(read(&connection, BUSY_MS), Err(FileError::Overwritten));
        make(&connection, BUSY_MS)?;
        commits(&connection)?;
        spoil(&connection, BUSY_MS)?;
        assert_eq!(read(&connection, BUSY_MS), Err(FileError::Overwritten));
        Ok(())
    }
}
