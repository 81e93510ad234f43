//! Recording which worker ids are leased and which assigned.

use keywright_core::{Cause, Layout};

use super::assigned_rows;
use super::lease_rows::{all_rows, lock_all};
use super::worker_id_rows::{RecordedIds, differs, read};
use super::{Link, StoreError, Transaction, values};
use crate::failure::Failure;
use crate::lease::space::Space;
use crate::worker_ids::{IdRange, WorkerIds};

/// What became of a configuration's ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerIdsRecorded {
    /// They are recorded already, or there are none.
    AsBefore,
    /// They are from now on.
    Now,
}

/// Records the ranges of a configuration: no number that was leased can be assigned, and none that was assigned comes out of its range.
#[derive(Debug)]
pub(crate) struct RecordWorkerIds {
    pub(crate) ids: WorkerIds,
    pub(crate) layout: Layout,
    /// Also in place of others.
    pub(crate) may_change: bool,
}

impl Transaction<Result<WorkerIdsRecorded, Failure>> for RecordWorkerIds {
    /// Leases are locked first, as by those who take them.
    async fn run(&self, link: &mut Link) -> Result<Result<WorkerIdsRecorded, Failure>, StoreError> {
        link.begin().await?;
        lock_all(link).await?;
        let mut leased = Vec::new();
        for space in [Space::Snowflake, Space::Readable] {
            let rows = all_rows(link, space.name()).await?;
            leased.extend(rows.iter().map(|row| row.worker_id));
        }
        let lock = link.words().for_update();
        let recorded = read(link, lock).await?;
        let assigned = assigned_rows::all(link).await?;
        let assigned: Vec<u32> = assigned.iter().map(|row| row.worker_id).collect();
        let next_id = match self.decide(recorded.as_ref(), &leased, &assigned) {
            Ok(Some(next_id)) => next_id,
            Ok(None) => {
                link.rollback().await?;
                return Ok(Ok(WorkerIdsRecorded::AsBefore));
            }
            Err(failure) => {
                link.rollback().await?;
                return Ok(Err(failure));
            }
        };
        let text = |range: Option<IdRange>| range.map_or(String::new(), |its| its.to_string());
        let (leased, assigned) = (text(self.ids.leased), text(self.ids.assigned));
        let (layout, or_update) = (self.layout.to_string(), link.words().or_update("id"));
        let write = format!(
            "INSERT INTO keywright_worker_ids (id, leased, assigned, layout, next_id) VALUES (1, ?, ?, ?, ?) \
             {or_update} leased = ?, assigned = ?, layout = ?, next_id = ?"
        );
        let mut values = values![&leased, &assigned, &layout, next_id];
        values.extend(values![&leased, &assigned, &layout, next_id]);
        link.change(write, values).await?;
        link.commit().await?;
        Ok(Ok(WorkerIdsRecorded::Now))
    }
}

impl RecordWorkerIds {
    /// The next number to be assigned, where there is something to record.
    fn decide(
        &self,
        recorded: Option<&RecordedIds>,
        leased: &[u32],
        assigned: &[u32],
    ) -> Result<Option<u32>, Failure> {
        let layout = self.layout.to_string();
        match recorded {
            None if self.ids.is_empty() => return Ok(None),
            Some(its) if its.ids == self.ids && its.layout == layout => return Ok(None),
            Some(its) if !self.may_change => return Err(differs(its, &self.ids, &layout)),
            None | Some(_) => {}
        }
        let in_use = |message: String| Err(Failure::new(Cause::WorkerIdInUse, message));
        let is_assigned = |id: u32| self.ids.assigned.is_some_and(|range| range.has(id));
        if let Some(id) = leased.iter().find(|id| is_assigned(**id)) {
            return in_use(format!(
                "{id} cannot be assigned to a database: programs have leased it as worker id or bucket"
            ));
        }
        if let Some(id) = assigned.iter().find(|id| !is_assigned(**id)) {
            return in_use(format!(
                "worker id {id} was assigned to a database, so it must stay in assigned_worker_ids"
            ));
        }
        if let Some(its) = recorded.filter(|its| its.layout != layout && !assigned.is_empty()) {
            return in_use(format!(
                "databases were assigned worker ids with layout \"{}\", and this configuration's is \"{layout}\"",
                its.layout
            ));
        }
        let first = self.ids.assigned.map_or(0, |range| range.first);
        let next_id = recorded.filter(|_| !assigned.is_empty());
        Ok(Some(next_id.map_or(first, |its| its.next_id.max(first))))
    }
}
