//! Values that were looked up, for as long as nothing changed.
//!
//! Every look-up is stamped with [`changes::count`]; the server's invalidation messages move that number on, so a
//! committed change of a definition, a privilege or the worker id is seen at the next call.

use crate::failure::Failure;
use crate::server::backend::BackendCell;
use crate::server::changes;

/// A looked-up value and the number of changes it was looked up under.
#[derive(Clone, Copy)]
pub struct Stamped<T> {
    value: T,
    changes: u32,
}

/// The value in `cell` if nothing changed since it was looked up.
#[inline]
pub fn fresh<T: Copy>(cell: &BackendCell<Option<Stamped<T>>>) -> Option<T> {
    cell.get()
        .filter(|stamped| stamped.changes == changes::count())
        .map(|stamped| stamped.value)
}

/// Looks up with `find` and keeps the result under the number of changes read before, so that a change arriving
/// during the look-up makes it stale at once.
pub fn remember<T: Copy>(
    cell: &BackendCell<Option<Stamped<T>>>,
    find: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(value) = fresh(cell) {
        return Ok(value);
    }
    changes::listen();
    let changes = changes::count();
    let value = find()?;
    cell.set(Some(Stamped { value, changes }));
    Ok(value)
}
