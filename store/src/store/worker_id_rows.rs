//! Which worker ids are leased and which assigned, as the store has recorded it: the same for all programs.

use keywright_core::Cause;

use super::{Link, Row, StoreError, Transaction, column};
use crate::failure::Failure;
use crate::worker_ids::{IdRange, NumberTable, WorkerIds};

/// What stands before the name of a table, where numbers come from one.
const OF_TABLE: &str = "table ";

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedIds {
    pub(crate) ids: WorkerIds,
    /// The layout of all ids.
    pub(crate) layout: String,
    /// The first number that was never assigned.
    pub(crate) next_id: u32,
    /// The store was restored: it may have been assigned since.
    pub(crate) is_restored: bool,
}

/// What is recorded, locked as `lock` says; `None`: nothing, so anything is leased and nothing assigned.
pub(super) async fn read(link: &mut Link, lock: &str) -> Result<Option<RecordedIds>, StoreError> {
    let select = format!(
        "SELECT leased, fed, assigned, layout, next_id, is_restored FROM keywright_worker_ids WHERE id = 1{lock}"
    );
    let row = link.first(select, Vec::new()).await?;
    row.as_ref().map(read_row).transpose()
}

/// As the column says it that has what programs lease.
pub(super) fn leased_text(ids: &WorkerIds) -> String {
    match (&ids.table, ids.leased) {
        (Some(table), _) => format!("{OF_TABLE}{table}"),
        (None, Some(range)) => range.to_string(),
        (None, None) => String::new(),
    }
}

/// The table that the column names.
fn table(row: &Row) -> Result<Option<NumberTable>, StoreError> {
    let text: String = column(row, "leased")?;
    let Some(name) = text.strip_prefix(OF_TABLE) else {
        return Ok(None);
    };
    let table = NumberTable::parse(name).map_err(|_| StoreError::Column {
        column: "leased".to_owned(),
        value: text.clone(),
    })?;
    Ok(Some(table))
}

fn read_row(row: &Row) -> Result<RecordedIds, StoreError> {
    let table = table(row)?;
    Ok(RecordedIds {
        ids: WorkerIds {
            leased: match table {
                Some(_) => None,
                None => range(row, "leased")?,
            },
            table,
            fed: range(row, "fed")?,
            assigned: range(row, "assigned")?,
        },
        layout: column(row, "layout")?,
        next_id: column(row, "next_id")?,
        is_restored: column::<i64>(row, "is_restored")? != 0,
    })
}

fn range(row: &Row, name: &str) -> Result<Option<IdRange>, StoreError> {
    let text: String = column(row, name)?;
    if text.is_empty() {
        return Ok(None);
    }
    match IdRange::parse(&text) {
        Ok(range) => Ok(Some(range)),
        Err(_) => Err(StoreError::Column {
            column: name.to_owned(),
            value: text,
        }),
    }
}

/// Reads it, for a look.
#[derive(Debug)]
pub(crate) struct ReadWorkerIds;

impl Transaction<Option<RecordedIds>> for ReadWorkerIds {
    async fn run(&self, link: &mut Link) -> Result<Option<RecordedIds>, StoreError> {
        read(link, "").await
    }
}

/// The failure of a configuration that says other ranges than the store has.
pub(crate) fn differs(recorded: &RecordedIds, ids: &WorkerIds, layout: &str) -> Failure {
    let (theirs, ours) = (&recorded.layout, layout);
    let message = match recorded.ids == *ids {
        true => format!(
            "worker ids of layout \"{theirs}\" are assigned, and this configuration's layout is \"{ours}\""
        ),
        false => format!(
            "worker ids are {} in the store, and {ids} in this configuration",
            recorded.ids
        ),
    };
    Failure::new(Cause::WorkerIdInUse, message).hint(
        "say in [snowflake] what the store has recorded; keywright init --change-worker-ids records other ranges",
    )
}

/// The failure of ranges that are not recorded yet.
pub(crate) fn not_recorded() -> Failure {
    Failure::new(
        Cause::WorkerIdUnset,
        "the store has not recorded which worker ids are assigned",
    )
    .hint("set assigned_worker_ids in [snowflake], and run keywright init")
}
