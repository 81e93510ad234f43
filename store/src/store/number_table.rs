//! UidGenerator's table of worker ids, `WORKER_NODE`: each start of a generator adds a row, and the row's number is its worker id, once and
//! for good. A program takes its number in the same way, in the transaction that writes its lease.
//!
//! The table says nothing of ids, so a program's bound stands in its lease, as ever: a number that has one already comes a second time, from
//! a table that was made anew or brought back from a backup, and nothing is issued with it. A number that has none begins as far ahead of
//! the clock as every worker id of which nothing is known, since the server may have been promoted without the row of a program that runs.

use super::{Link, StoreError, Transaction, column, values};
use crate::host::host;
use crate::lease::{Claimant, HeldLease, LeaseRow, NoLease};
use crate::worker_ids::NumberTable;

/// Longest text of the table's columns, characters.
const TEXT_CHARS_MAX: usize = 64;
/// A generator on a machine of its own, as UidGenerator tells them apart from such in containers.
const TYPE: u32 = 2;

/// The number of a program out of the table: the one that it was given before, where that is known and nobody has had it since, or the next. It
/// stays taken whatever becomes of the transaction.
pub(super) async fn number(
    table: &NumberTable,
    claimant: &Claimant,
    rows: &[LeaseRow],
    link: &mut Link,
) -> Result<Result<u32, NoLease>, StoreError> {
    let owner = &claimant.owner;
    let is_held = |row: &LeaseRow| row.owner.as_ref() == Some(owner);
    let is_last = |row: &LeaseRow, last: &HeldLease| {
        row.owner.is_none() && row.worker_id == last.worker_id && row.epoch == last.epoch
    };
    let was_last = |row: &LeaseRow| {
        claimant
            .last
            .as_ref()
            .is_some_and(|last| is_last(row, last))
    };
    let ours = rows.iter().find(|row| is_held(row));
    if let Some(row) = ours.or_else(|| rows.iter().find(|row| was_last(row))) {
        return Ok(Ok(row.worker_id));
    }
    let number = next(table, owner, link).await?;
    let worker_id = u32::try_from(number).ok();
    let worker_id_max = claimant.worker_id_max;
    let Some(worker_id) = worker_id.filter(|its| *its <= worker_id_max) else {
        return Ok(Err(NoLease::NumbersUsedUp {
            table: table.clone(),
            number,
            worker_id_max,
        }));
    };
    let is_known = rows.iter().any(|row| row.worker_id >= worker_id);
    Ok(match is_known {
        true => Err(NoLease::NumberKnown {
            table: table.clone(),
            worker_id,
        }),
        false => Ok(worker_id),
    })
}

async fn next(table: &NumberTable, owner: &str, link: &mut Link) -> Result<u64, StoreError> {
    let table = table.quoted();
    let insert = format!(
        "INSERT INTO {table} (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) \
         VALUES (?, ?, ?, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)"
    );
    let short = |text: &str| -> String { text.chars().take(TEXT_CHARS_MAX).collect() };
    let values = values![short(&host()), short(owner), TYPE];
    link.change_one(insert, values).await?;
    let select = "SELECT LAST_INSERT_ID() AS number";
    let row = link.first(select, Vec::new()).await?;
    row.as_ref().map_or(Ok(0), |row| column(row, "number"))
}

/// Whether programs can take numbers, for a look.
#[derive(Debug)]
pub(crate) struct LookAtNumbers {
    pub(crate) table: NumberTable,
}

impl Transaction<()> for LookAtNumbers {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let table = self.table.quoted();
        let select = format!(
            "SELECT ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED FROM {table} LIMIT 1"
        );
        link.rows(select, Vec::new()).await?;
        Ok(())
    }
}
