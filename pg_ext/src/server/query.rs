//! Queries in a given snapshot, which pgrx's own SPI does not offer once the transaction has written, and statements whose
//! text is not UTF-8.

use std::ffi::{CStr, CString, c_int};

use pgrx::datum::{DatumWithOid, FromDatum};
use pgrx::pg_sys;

use crate::server::process;
use crate::server::role::AsOwner;

/// The row a query found.
pub struct Row {
    tuple: pg_sys::HeapTuple,
    columns: pg_sys::TupleDesc,
}

impl Row {
    /// The value in `column`, from 1; `None` if it is null. `T` must be what the query's column is.
    pub fn get<T: FromDatum>(&self, column: i32) -> Option<T> {
        let mut is_null = true;
        // SAFETY: both pointers come from the result of the query that is still open, and the server checks the column's
        // number. `T` matches the column by the caller's promise, and copies what it keeps.
        unsafe {
            let datum = pg_sys::SPI_getbinval(self.tuple, self.columns, column, &mut is_null);
            T::from_datum(datum, is_null)
        }
    }
}

/// Runs a query that yields at most one row in the newest committed state and this transaction's own, whatever the
/// isolation of the transaction. Raises what the query raises.
pub fn one_row<T>(
    query: &str,
    arguments: &[DatumWithOid],
    read: impl FnOnce(&Row) -> T,
) -> Option<T> {
    let query = CString::new(query).ok()?;
    select(&query, arguments, 1, |rows| {
        rows.next().map(|row| read(&row))
    })
}

/// As [`one_row`], with all rows.
pub fn rows<T>(query: &str, arguments: &[DatumWithOid], read: impl Fn(&Row) -> T) -> Vec<T> {
    let Ok(query) = CString::new(query) else {
        return Vec::new();
    };
    select(&query, arguments, 0, |rows| {
        rows.map(|row| read(&row)).collect()
    })
}

/// The one number that a query yields; the text of the query is in the database's encoding.
pub fn number(query: &CStr) -> Option<i64> {
    select(query, &[], 1, |rows| {
        rows.next().and_then(|row| row.get::<i64>(1))
    })
}

/// Runs a statement that changes something, as the role in force; its text is in the database's encoding. Raises what the
/// statement raises.
pub fn execute(statement: &CStr) {
    // SAFETY: a C string that outlives the call. An error raised inside leaves SPI through the server's abort processing.
    unsafe {
        pg_sys::SPI_connect();
        pg_sys::SPI_execute(statement.as_ptr(), false, 0);
        pg_sys::SPI_finish();
    }
}

fn select<T>(
    query: &CStr,
    arguments: &[DatumWithOid],
    limit: i64,
    read: impl FnOnce(&mut dyn Iterator<Item = Row>) -> T,
) -> T {
    let mut types: Vec<pg_sys::Oid> = arguments.iter().map(DatumWithOid::oid).collect();
    let datums = arguments
        .iter()
        .map(|argument| argument.datum().map(|datum| datum.sans_lifetime()));
    let (mut values, nulls): (Vec<pg_sys::Datum>, Vec<std::ffi::c_char>) = datums
        .map(|datum| match datum {
            Some(datum) => (datum, b' '.cast_signed()),
            None => (pg_sys::Datum::from(0usize), b'n'.cast_signed()),
        })
        .unzip();
    let _snapshot = LatestSnapshot::push();
    // SAFETY: the arrays have one element per argument and outlive the call; read-only execution uses the active snapshot,
    // which is the one pushed above. The result has as many rows as SPI_processed says, and is read before SPI_finish frees
    // it. An error raised inside leaves SPI through the server's abort processing.
    unsafe {
        pg_sys::SPI_connect();
        let outcome = pg_sys::SPI_execute_with_args(
            query.as_ptr(),
            i32::try_from(arguments.len()).unwrap_or(0),
            types.as_mut_ptr(),
            values.as_mut_ptr(),
            nulls.as_ptr(),
            true,
            limit,
        );
        let found = if outcome == pg_sys::SPI_OK_SELECT.cast_signed() {
            usize::try_from(pg_sys::SPI_processed).unwrap_or(0)
        } else {
            0
        };
        let table = pg_sys::SPI_tuptable;
        let result = read(&mut (0..found).map(|place| Row {
            tuple: *(*table).vals.add(place),
            columns: (*table).tupdesc,
        }));
        pg_sys::SPI_finish();
        result
    }
}

/// Runs a query that yields at most one row, as `owner`: with the server's own names, whatever the session's `search_path` has.
pub fn one_row_as<T>(
    owner: pg_sys::Oid,
    query: &str,
    arguments: &[DatumWithOid],
    read: impl FnOnce(&Row) -> T,
) -> Option<T> {
    let _owner = AsOwner::new(owner);
    let _path = ServerPath::set();
    one_row(query, arguments, read)
}

/// Names mean the server's own objects until dropped: a type or function of the session's own, in `pg_temp` for instance, would else be
/// run as whoever is in force. An error in between leaves it to the abort of the (sub)transaction, as a function's SET clause does.
struct ServerPath {
    level: c_int,
}

impl ServerPath {
    fn set() -> Self {
        // SAFETY: runs in a transaction; both are C strings. The server's own setting takes any path, so nothing is raised.
        unsafe {
            let level = pg_sys::NewGUCNestLevel();
            pg_sys::set_config_option(
                c"search_path".as_ptr(),
                c"pg_catalog, pg_temp".as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
            Self { level }
        }
    }
}

impl Drop for ServerPath {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: puts back what `set` replaced; while an error unwinds the abort of the transaction does it.
            unsafe { pg_sys::AtEOXact_GUC(true, self.level) };
        }
    }
}

/// Makes the newest committed state the active snapshot until dropped, also under REPEATABLE READ.
pub struct LatestSnapshot(());

impl LatestSnapshot {
    /// Takes the snapshot. Raises an error outside a transaction.
    pub fn push() -> Self {
        // SAFETY: functions run inside a transaction with an active snapshot; the pushed one is popped on drop or by abort.
        // A parallel query may take no new one; all its workers see what the query sees.
        unsafe {
            let snapshot = if process::is_parallel() {
                pg_sys::GetActiveSnapshot()
            } else {
                pg_sys::GetLatestSnapshot()
            };
            pg_sys::PushActiveSnapshot(snapshot);
        }
        Self(())
    }
}

impl Drop for LatestSnapshot {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: pops what `push` pushed; while an error unwinds the abort of the transaction does it.
            unsafe { pg_sys::PopActiveSnapshot() };
        }
    }
}
