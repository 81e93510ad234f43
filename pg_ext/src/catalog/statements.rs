//! Statements that change something, as the role in force.

use std::ffi::CString;
use std::panic::AssertUnwindSafe;

use pgrx::datum::DatumWithOid;
use pgrx::spi::Spi;
use pgrx::{PgSqlErrorCode, PgTryBuilder};

use crate::catalog::damage;
use crate::failure::Failure;
use crate::server::backend::BackendCell;
use crate::server::{query, relation};

/// How many of our own statements this session is running, one within the other.
static RUNNING: BackendCell<u32> = BackendCell::new(0);

/// While it lives, a statement of ours runs.
struct Running(());

impl Running {
    fn begin() -> Self {
        RUNNING.set(RUNNING.get().saturating_add(1));
        Self(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get().saturating_sub(1));
    }
}

/// Whether what changes keywright's tables and sequences at this moment is one of [`run`]'s statements.
pub fn is_own() -> bool {
    RUNNING.get() > 0
}

/// Runs a statement that changes something, as the role in force, and says how many rows it changed.
///
/// # Errors
/// The transaction is above READ COMMITTED and somebody else changed the row since it began. Nothing may be done after that but
/// to pass it on.
pub fn run(statement: &str, arguments: &[DatumWithOid]) -> Result<usize, Failure> {
    let _running = Running::begin();
    PgTryBuilder::new(AssertUnwindSafe(|| {
        Spi::connect_mut(|client| Ok(client.update(statement, None, arguments)?.len()))
            .map_err(|error: pgrx::spi::Error| damage::damaged(&error.to_string()))
    }))
    .catch_when(PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE, |_| {
        Err(damage::changed_meanwhile(
            "what keywright keeps of this database",
        ))
    })
    .execute()
}

/// As [`run`], of a statement on one of keywright's tables. Triggers may still keep rows from being changed: the number tells.
///
/// # Errors
/// As [`run`]; and where somebody else's rule stands on the table, for it may do something else instead.
pub fn change(table: &str, statement: &str, arguments: &[DatumWithOid]) -> Result<usize, Failure> {
    if relation::find(c"keywright", table).is_some_and(relation::has_rules) {
        return Err(damage::intercepted(table));
    }
    run(statement, arguments)
}

/// As [`change`], of a statement that changes one row, whatever others do.
///
/// # Errors
/// As [`change`]; and where the row was kept from being changed.
pub fn change_one(table: &str, statement: &str, arguments: &[DatumWithOid]) -> Result<(), Failure> {
    match change(table, statement, arguments)? {
        1 => Ok(()),
        _ => Err(damage::intercepted(table)),
    }
}

/// Why a row that is there was not changed: `row` selects it for a statement of this transaction. Where such a statement sees it, some rule or trigger
/// holds it; else the transaction is above READ COMMITTED, and the row came after it began.
pub fn unchanged(table: &str, row: &str, arguments: &[DatumWithOid], what: &str) -> Failure {
    match run(row, arguments) {
        Ok(0) => damage::changed_meanwhile(what),
        Ok(_) => damage::intercepted(table),
        Err(failure) => failure,
    }
}

/// Runs the statements that a query makes, as the role in force.
///
/// # Errors
/// None of its own; raises what they raise.
pub fn carry_out(query: &str, arguments: &[DatumWithOid]) -> Result<(), Failure> {
    for statement in texts(query, arguments) {
        query::execute(&statement);
    }
    Ok(())
}

/// The texts that a query yields, in the database's encoding.
pub fn texts(query: &str, arguments: &[DatumWithOid]) -> Vec<CString> {
    query::rows(query, arguments, |row| row.get::<Vec<u8>>(1))
        .into_iter()
        .flatten()
        .filter_map(|text| CString::new(text).ok())
        .collect()
}
