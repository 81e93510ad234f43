//! Reading and setting a sequence.

use pgrx::{IntoDatum, pg_sys};

/// Last value of a sequence, `None` if it was never advanced. The role in force must be allowed to read it: where it may not the server raises an
/// error, or from 18 on says that there is none.
pub fn last(sequence: pg_sys::Oid) -> Option<i64> {
    // SAFETY: the function takes one object id.
    unsafe {
        pgrx::direct_function_call::<i64>(pg_sys::pg_sequence_last_value, &[sequence.into_datum()])
    }
}

/// Sets a sequence so that the next value is `last + 1`. Not undone by a rollback. Raises an error if the transaction
/// may not write or the role in force may not change the sequence.
pub fn set(sequence: pg_sys::Oid, last: i64) {
    // SAFETY: the function takes an object id and a bigint.
    unsafe {
        pgrx::direct_function_call::<i64>(
            pg_sys::setval_oid,
            &[sequence.into_datum(), last.into_datum()],
        )
    };
}
