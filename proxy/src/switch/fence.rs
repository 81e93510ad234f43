//! One table: its counter is read and recorded under its lock, and fenced; or the fence is lifted again.
//!
//! The lock is what makes the counter exact: before it an id can be taken and rolled back, behind the fence the counter is gone.
//! Who waits for a lock blocks readers too, so nobody waits long. A backup may let the lock come, and keep tables from being altered until it ends.

use std::fmt;

use keywright_store::innermost;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use thiserror::Error;

use crate::schema::{KeyColumn, forget_old_statistics};

/// How long a table's lock is waited for, seconds.
const LOCK_WAIT_S_MAX: u32 = 1;
/// The server's error: a lock did not come in time.
const LOCK_WAIT_TIMEOUT: u16 = 1205;

/// What became of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it should be.
    Done,
    /// The store says that the attempt is over: nothing was changed.
    Over,
    /// Its lock did not come: nothing was changed.
    Blocked(Option<Blocker>),
    /// Its lock came, and its counter could not be set in time: it is as it was.
    NotAltered,
    /// No number of its column is above its ids, or those of its keys: the server numbers none of its rows, with a fence or without.
    Full,
}

impl Outcome {
    /// What is in the way of a table, for people; `None`: nothing is.
    pub(super) fn obstacle(&self, column: &KeyColumn) -> Option<String> {
        match self {
            Self::Done | Self::Over | Self::Full => None,
            Self::Blocked(blocker) => {
                let who = blocker
                    .as_ref()
                    .map_or_else(String::new, |its| format!(": {its}"));
                Some(format!("{} is locked{who}", column.quoted_table()))
            }
            Self::NotAltered => Some(not_altered(column)),
        }
    }
}

/// For people.
pub(super) fn not_altered(column: &KeyColumn) -> String {
    format!(
        "{} cannot be altered now: a backup may keep it as it is (LOCK INSTANCE FOR BACKUP, BACKUP LOCK), so wait for its end",
        column.quoted_table()
    )
}

/// Who probably has a table's lock: the connection whose transaction has been open for longest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// Its number, as in the process list.
    pub connection: u64,
    /// User and host.
    pub who: String,
    /// How long the transaction has been open, seconds.
    pub open_s: u64,
}

impl fmt::Display for Blocker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connection,
            who,
            open_s,
        } = self;
        write!(
            out,
            "connection {connection} of {who} has had a transaction open for {open_s} s"
        )
    }
}

/// Why nothing can be said of a table.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// The server refused, or the connection failed.
    #[error("{}", innermost(.0))]
    Server(mysql_async::Error),
    /// The same of setting a table's counter.
    #[error("setting the counter of {table}: {}", innermost(.error))]
    Counter {
        /// The table, quoted.
        table: String,
        /// What the server says.
        error: mysql_async::Error,
    },
    /// The store could not be asked.
    #[error("{0}")]
    Store(keywright_store::Failure),
    /// The table is not there any more, or is no table with a counter.
    #[error("{0} has no AUTO_INCREMENT")]
    NoCounter(String),
    /// The server gives a user lock to nobody.
    #[error("the user lock \"{0}\" cannot be taken, though nobody has it")]
    NotTaken(String),
    /// A connection does not end.
    #[error("connection {0} was killed, and is still there")]
    StillThere(u64),
}

impl From<mysql_async::Error> for SwitchError {
    fn from(error: mysql_async::Error) -> Self {
        Self::Server(error)
    }
}

/// What is read under a table's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The first id that neither the server has made nor a row has.
    pub counter: u64,
    /// The first id above all rows.
    pub above_rows: u64,
    /// The table has its fence already, so that its counter is gone.
    pub was_fenced: bool,
}

/// Reads a table's counter under its lock, has it recorded (`record` says whether the attempt still stands), and, if it is to have the
/// fence (`is_fenced`), fences the table before the lock is released.
///
/// # Errors
/// The server or the store fails. The connection must not be used again then; what the table is, is not known.
pub async fn fence<R>(
    conn: &mut Conn,
    column: &KeyColumn,
    is_fenced: bool,
    record: R,
) -> Result<Outcome, SwitchError>
where
    R: AsyncFnOnce(Reading) -> Result<bool, keywright_store::Failure>,
{
    if !lock(conn, column).await? {
        return Ok(Outcome::Blocked(blocker(conn).await));
    }
    let counter = counter(conn, column).await?;
    let reading = Reading {
        counter: counter.next,
        above_rows: counter.above_rows,
        was_fenced: counter.is_fenced,
    };
    let stands = record(reading).await.map_err(SwitchError::Store)?;
    let mut is_set = true;
    if stands && is_fenced && !counter.is_fenced {
        is_set = set_counter(conn, column, column.fence).await?;
    }
    unlock(conn).await?;
    Ok(outcome(stands, is_set))
}

/// Whether the attempt still stands, and whether the counter is as it should be.
fn outcome(stands: bool, is_set: bool) -> Outcome {
    match (stands, is_set) {
        (false, _) => Outcome::Over,
        (true, true) => Outcome::Done,
        (true, false) => Outcome::NotAltered,
    }
}

/// Lifts the fence of a table, if it has one, and lets its counter go on from `next`; under its lock, and only if `ask` still
/// says so then. It is asked before, too: a lock that waits costs transactions on the table their lives (1213). Where nothing can be lifted nobody waits
/// for a lock, and nothing is changed: on MariaDB the fence of most columns is what the counter of a full one is as well, which would be lifted for ever.
///
/// # Errors
/// As [`fence`].
pub async fn lift<A>(
    conn: &mut Conn,
    column: &KeyColumn,
    next: u64,
    ask: A,
) -> Result<Outcome, SwitchError>
where
    A: AsyncFn() -> Result<bool, keywright_store::Failure>,
{
    if !ask().await.map_err(SwitchError::Store)? {
        return Ok(Outcome::Over);
    }
    limit_waits(conn).await?;
    match above_rows(conn, column).await {
        Ok(above_rows) if next.max(above_rows) >= column.fence => return Ok(Outcome::Full),
        Ok(_) => {}
        Err(error) if is_lock_wait_timeout(&error) => {
            return Ok(Outcome::Blocked(blocker(conn).await));
        }
        Err(error) => return Err(error.into()),
    }
    if !lock(conn, column).await? {
        return Ok(Outcome::Blocked(blocker(conn).await));
    }
    let stands = ask().await.map_err(SwitchError::Store)?;
    let (mut is_set, mut is_full) = (true, false);
    if stands {
        let counter = counter(conn, column).await?;
        let to = next.max(counter.above_rows);
        // Set once more it would come down to the rows that are there, and ids that were rolled back would come again.
        if (counter.is_fenced || counter.next < next) && to < column.fence {
            is_set = set_counter(conn, column, to).await?;
        }
        is_full = numbers_no_row(column, next.max(counter.next));
    }
    unlock(conn).await?;
    Ok(match outcome(stands, is_set) {
        Outcome::Done if is_full => Outcome::Full,
        outcome => outcome,
    })
}

/// Whether the server makes no id for a column whose counter is to go on from `next`.
fn numbers_no_row(column: &KeyColumn, next: u64) -> bool {
    next >= column.fence || column.integer_max().is_some_and(|max| next > max)
}

/// What is in the way of [`lift`]; `None`: nothing is now. It sets the counter to what it is, which changes nothing: a backup lets the lock
/// come, and keeps that statement waiting.
///
/// # Errors
/// As [`fence`].
pub async fn probe(conn: &mut Conn, column: &KeyColumn) -> Result<Option<Outcome>, SwitchError> {
    if !lock(conn, column).await? {
        return Ok(Some(Outcome::Blocked(blocker(conn).await)));
    }
    let counter = counter(conn, column).await?;
    let is_set = set_counter(conn, column, counter.now).await?;
    unlock(conn).await?;
    Ok((!is_set).then_some(Outcome::NotAltered))
}

/// Nobody waits for a lock for long from now on.
async fn limit_waits(conn: &mut Conn) -> mysql_async::Result<()> {
    conn.query_drop(format!("SET SESSION lock_wait_timeout = {LOCK_WAIT_S_MAX}"))
        .await
}

fn is_lock_wait_timeout(error: &mysql_async::Error) -> bool {
    matches!(error, mysql_async::Error::Server(error) if error.code == LOCK_WAIT_TIMEOUT)
}

/// Whether the table is locked now; its rows and its counter are ours alone then.
async fn lock(conn: &mut Conn, column: &KeyColumn) -> Result<bool, SwitchError> {
    limit_waits(conn).await?;
    forget_old_statistics(conn).await?;
    let table = column.quoted_table();
    match conn.query_drop(format!("LOCK TABLES {table} WRITE")).await {
        Ok(()) => Ok(true),
        Err(error) if is_lock_wait_timeout(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn unlock(conn: &mut Conn) -> Result<(), SwitchError> {
    Ok(conn.query_drop("UNLOCK TABLES").await?)
}

/// What is known of a table's ids, under its lock.
struct Counter {
    is_fenced: bool,
    /// The table's AUTO_INCREMENT.
    now: u64,
    /// The first id that neither the server has made nor a row has.
    next: u64,
    /// The first above all rows.
    above_rows: u64,
}

/// The first id above all rows.
async fn above_rows(conn: &mut Conn, column: &KeyColumn) -> mysql_async::Result<u64> {
    let (table, name) = (column.quoted_table(), column.quoted_name());
    let select =
        format!("SELECT CAST(GREATEST(COALESCE(MAX({name}), 0), 0) AS UNSIGNED) FROM {table}");
    let highest: Option<u64> = conn.query_first(select).await?;
    Ok(highest.unwrap_or(0).saturating_add(1))
}

async fn counter(conn: &mut Conn, column: &KeyColumn) -> Result<Counter, SwitchError> {
    let above_rows = above_rows(conn, column).await?;
    let select = "SELECT auto_increment FROM information_schema.tables WHERE table_schema = ? AND table_name = ?";
    let counter: Option<Row> = conn
        .exec_first(select, (&column.schema, &column.table))
        .await?;
    let counter = counter.and_then(|row| row.get::<Option<u64>, usize>(0).flatten());
    let counter = counter.ok_or_else(|| SwitchError::NoCounter(column.quoted_table()))?;
    let is_fenced = counter == column.fence;
    Ok(Counter {
        is_fenced,
        now: counter,
        // The fence is no counter: ids that were rolled back before it are in the store, if anywhere.
        next: if is_fenced {
            above_rows
        } else {
            counter.max(above_rows)
        },
        above_rows,
    })
}

/// In place, or not at all: a copy would keep everybody waiting. Only InnoDB says which it is. False: the server did not come to it in time, although
/// the table is locked.
async fn set_counter(conn: &mut Conn, column: &KeyColumn, to: u64) -> Result<bool, SwitchError> {
    let table = column.quoted_table();
    let in_place = match column.engine.eq_ignore_ascii_case("InnoDB") {
        true => ", ALGORITHM = INPLACE",
        false => "",
    };
    let alter = format!("ALTER TABLE {table} AUTO_INCREMENT = {to}{in_place}");
    match conn.query_drop(alter).await {
        Ok(()) => Ok(true),
        Err(error) if is_lock_wait_timeout(&error) => Ok(false),
        Err(error) => Err(SwitchError::Counter { table, error }),
    }
}

/// Not known without the privilege PROCESS.
async fn blocker(conn: &mut Conn) -> Option<Blocker> {
    let found: Option<(u64, String, u64)> = conn
        .query_first(
            "SELECT CAST(t.trx_mysql_thread_id AS UNSIGNED), CONCAT(p.user, '@', p.host), \
             CAST(GREATEST(TIMESTAMPDIFF(SECOND, t.trx_started, NOW()), 0) AS UNSIGNED) \
             FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id \
             ORDER BY t.trx_started LIMIT 1",
        )
        .await
        .ok()?;
    found.map(|(connection, who, open_s)| Blocker {
        connection,
        who,
        open_s,
    })
}
