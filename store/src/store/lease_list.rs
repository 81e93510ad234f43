//! Leases in the store, as people see them.

use super::{Link, StoreError, Transaction, column};
use crate::lease::marks::{marked_ms, unmarked};

/// Reads all leases, for people.
#[derive(Debug)]
pub(crate) struct ListLeases;

impl Transaction<Vec<WorkerRow>> for ListLeases {
    async fn run(&self, link: &mut Link) -> Result<Vec<WorkerRow>, StoreError> {
        let select = format!(
            "SELECT space, worker_id, owner, holder, epoch, hi_ms, layout, server, \
             expires_at <= {} AS expired FROM keywright_worker ORDER BY space, worker_id",
            link.words().now()
        );
        let rows = link.rows(select, Vec::new()).await?;
        rows.iter()
            .map(|row| {
                let owner: Option<String> = column(row, "owner")?;
                Ok(WorkerRow {
                    space: column(row, "space")?,
                    worker_id: column(row, "worker_id")?,
                    is_leased: owner.is_some() && column::<i64>(row, "expired")? == 0,
                    holder: column(row, "holder")?,
                    epoch: column(row, "epoch")?,
                    hi_ms: column(row, "hi_ms")?,
                    layout: column(row, "layout")?,
                })
            })
            .collect()
    }
}

/// A lease, as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRow {
    /// `snowflake` or `readable`.
    pub space: String,
    /// The worker id, or the bucket of readable ids.
    pub worker_id: u32,
    /// Whether somebody holds it and has renewed it in time.
    pub is_leased: bool,
    /// Host and process of whoever holds or held it, or has seen that the store has gone back.
    pub holder: Option<String>,
    /// Counts owners.
    pub epoch: u64,
    /// The bound, unix milliseconds.
    pub hi_ms: i64,
    /// The layout of its ids.
    pub layout: String,
}

impl WorkerRow {
    /// The bound that a program has seen of a worker id of this space, unix milliseconds, where the store has gone back behind it and that is not made up for.
    pub fn gone_back_from_ms(&self) -> Option<i64> {
        let seen_ms = marked_ms(self.holder.as_deref()?)?;
        (seen_ms > self.hi_ms).then_some(seen_ms)
    }

    /// The holder, for people: with such a bound only as long as that is not made up for.
    pub fn told_holder(&self) -> Option<&str> {
        let holder = self.holder.as_deref()?;
        Some(match self.gone_back_from_ms() {
            Some(_) => holder,
            None => unmarked(holder),
        })
    }
}
