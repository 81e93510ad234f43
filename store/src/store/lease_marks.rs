//! What the row of a worker id says whose bound was put back to an older state: a program that has seen more writes it there, beside its own name as
//! the holder, for people and for `check`. Unlike a tag's it keeps nobody from the worker id: whoever takes one begins above it.

use tracing::warn;

use super::{Link, StoreError, values};
use crate::lease::marks::{mark, marked_ms};
use crate::lease::{LeaseRow, NoLease, is_held};

/// Writes it into the row of the worker id that is behind, or else into that of another one. All of them are locked. Whether there is something
/// to commit.
pub(super) async fn tell(
    no_lease: &NoLease,
    rows: &[LeaseRow],
    (space, owner, holder): (&str, &str, &str),
    link: &mut Link,
) -> Result<bool, StoreError> {
    let NoLease::GoneBack {
        worker_id,
        bound_ms,
    } = no_lease
    else {
        return Ok(false);
    };
    let Some(row) = row_to_mark(rows, *worker_id, *bound_ms, owner) else {
        return Ok(false);
    };
    let update = "UPDATE keywright_worker SET holder = ? WHERE space = ? AND worker_id = ? AND epoch = ? AND hi_ms = ?";
    let mark = mark(*bound_ms, holder);
    let values = values![mark, space, row.worker_id, row.epoch, row.hi_ms];
    match link.change_one(update, values).await {
        Ok(()) => Ok(true),
        Err(error) if error.is_answer() => {
            warn!(%error, "the store cannot be told that it has gone back");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// None where a row says so already. A holder's name is left to whoever holds a worker id.
fn row_to_mark<'r>(
    rows: &'r [LeaseRow],
    worker_id: u32,
    bound_ms: i64,
    owner: &str,
) -> Option<&'r LeaseRow> {
    let is_behind = |row: &&LeaseRow| row.hi_ms < bound_ms;
    let told_ms = |row: &LeaseRow| row.holder.as_deref().and_then(marked_ms);
    let is_told = |row: &LeaseRow| told_ms(row).is_some_and(|told_ms| told_ms >= bound_ms);
    let mut behind = rows.iter().filter(is_behind);
    if behind.any(is_told) {
        return None;
    }
    let is_free = |row: &&LeaseRow| !is_held(row) || row.owner.as_deref() == Some(owner);
    let may_mark = || rows.iter().filter(is_behind).filter(is_free);
    let its = may_mark().find(|row| row.worker_id == worker_id);
    its.or_else(|| may_mark().next())
}

#[cfg(test)]
mod tests {
    use keywright_core::Preset;

    use super::{LeaseRow, mark, row_to_mark};

    fn row(worker_id: u32, hi_ms: i64, owner: Option<&str>) -> LeaseRow {
        LeaseRow {
            worker_id,
            owner: owner.map(str::to_owned),
            holder: Some(format!("host pid {worker_id}")),
            epoch: 1,
            hi_ms,
            layout: Preset::Twitter.layout(),
            server: "here".to_owned(),
            expired: false,
        }
    }

    #[test]
    fn what_is_behind_is_marked_once_and_nobody_who_holds_it() {
        let marked_of = |rows: &[LeaseRow]| {
            let row = row_to_mark(rows, 1, 500, "me");
            row.map(|row| row.worker_id)
        };
        let rows = [
            row(0, 400, None),
            row(1, 400, Some("me")),
            row(2, 400, None),
        ];
        assert_eq!(marked_of(&rows), Some(1));
        let others = [
            row(0, 400, Some("another")),
            row(1, 600, Some("me")),
            row(2, 400, None),
        ];
        assert_eq!(marked_of(&others), Some(2));
        assert_eq!(marked_of(&[row(0, 500, None)]), None);
        let told = |bound_ms| LeaseRow {
            holder: Some(mark(bound_ms, "host pid 9")),
            ..row(0, 400, None)
        };
        assert_eq!(marked_of(&[told(500), row(1, 400, Some("me"))]), None);
        assert_eq!(marked_of(&[told(450), row(1, 400, Some("me"))]), Some(1));
    }
}
