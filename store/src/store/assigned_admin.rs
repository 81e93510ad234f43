//! Worker ids that databases were assigned: given up, retired, listed; and a store that was restored.

use keywright_core::Mark;

use super::assigned_rows::{all, cut, locked, read};
use super::{Link, StoreError, Transaction, values};
use crate::assignment::{AssignedRow, AssignmentState};

/// A number that its database has given up, or one whose database is no more.
#[derive(Debug)]
pub(crate) struct GiveUp {
    pub(crate) worker_id: u32,
    pub(crate) how: GivenUp,
}

/// How a number was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// By the database with this mark, which says how far its ids came.
    ByDatabase {
        mark: Mark,
        bound_ms: Option<i64>,
        /// Its ids were of the layout that is assigned for.
        is_of_layout: bool,
    },
    /// By somebody's word: how far it was used is not known.
    Gone,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleasedNumber {
    /// It may be given to another, above its ids.
    Released,
    /// It is never given again.
    Retired,
    /// It was not the asker's, or nobody's.
    NotAssigned,
}

impl Transaction<ReleasedNumber> for GiveUp {
    async fn run(&self, link: &mut Link) -> Result<ReleasedNumber, StoreError> {
        link.begin().await?;
        locked(link).await?;
        let rows = all(link).await?;
        let row = rows.iter().find(|row| row.worker_id == self.worker_id);
        let row = row.filter(|row| row.state == AssignmentState::Assigned);
        let (Some(row), Some((state, bound_ms))) = (row, row.and_then(|row| self.state(row)))
        else {
            link.rollback().await?;
            return Ok(ReleasedNumber::NotAssigned);
        };
        // Whoever comes with one of its marks later is a copy.
        let update = format!(
            "UPDATE keywright_assigned SET state = ?, next_mark = NULL, asks = asks + 1, bound_ms = ?, is_restored = 0, \
             released_at_ms = {} WHERE worker_id = ? AND asks = ?",
            link.words().now_ms()
        );
        let values = values![state.name(), bound_ms, self.worker_id, row.asks];
        link.change_one(update, values).await?;
        link.commit().await?;
        Ok(match state {
            AssignmentState::Released => ReleasedNumber::Released,
            AssignmentState::Assigned | AssignmentState::Retired => ReleasedNumber::Retired,
        })
    }
}

impl GiveUp {
    fn state(&self, row: &AssignedRow) -> Option<(AssignmentState, Option<i64>)> {
        match self.how {
            GivenUp::ByDatabase {
                mark,
                bound_ms,
                is_of_layout,
            } => {
                let is_its = row.mark == mark || row.next == Some(mark);
                let state = match is_of_layout {
                    true => AssignmentState::Released,
                    false => AssignmentState::Retired,
                };
                is_its.then_some((state, bound_ms.max(row.bound_ms)))
            }
            GivenUp::Gone => Some((AssignmentState::Retired, row.bound_ms)),
        }
    }
}

/// Notes a copy that has asked, for people.
#[derive(Debug)]
pub(crate) struct ReportCopy {
    pub(crate) worker_id: u32,
    pub(crate) report: String,
}

impl Transaction<()> for ReportCopy {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let update = "UPDATE keywright_assigned SET report = ? WHERE worker_id = ?";
        let values = values![cut(&self.report), self.worker_id];
        link.change(update, values).await?;
        Ok(())
    }
}

/// All numbers that were ever assigned, for people.
#[derive(Debug)]
pub(crate) struct ListAssigned;

impl Transaction<Vec<AssignedRow>> for ListAssigned {
    async fn run(&self, link: &mut Link) -> Result<Vec<AssignedRow>, StoreError> {
        read(link, "").await
    }
}

/// Numbers up to one count as assigned, by the word of somebody who knows.
#[derive(Debug)]
pub(crate) struct AdvanceNumbers {
    pub(crate) above: u32,
}

impl Transaction<Option<u32>> for AdvanceNumbers {
    /// The next number; `None`: no ranges are recorded.
    async fn run(&self, link: &mut Link) -> Result<Option<u32>, StoreError> {
        link.begin().await?;
        let Some(recorded) = locked(link).await? else {
            link.rollback().await?;
            return Ok(None);
        };
        let next_id = recorded.next_id.max(self.above.saturating_add(1));
        let update = "UPDATE keywright_worker_ids SET next_id = ?, is_restored = 0 WHERE id = 1";
        link.change(update, values![next_id]).await?;
        link.commit().await?;
        Ok(Some(next_id))
    }
}

/// Has the store know that it was restored: which marks databases have, and which numbers were given since the backup, it does not.
pub(super) async fn restore(link: &mut Link) -> Result<(), StoreError> {
    for update in [
        "UPDATE keywright_worker_ids SET is_restored = 1",
        "UPDATE keywright_assigned SET is_restored = 1 WHERE state = 'assigned'",
        // It may have been given again.
        "UPDATE keywright_assigned SET state = 'retired' WHERE state = 'released'",
    ] {
        link.change(update, Vec::new()).await?;
    }
    Ok(())
}
