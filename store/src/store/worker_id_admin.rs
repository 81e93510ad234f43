//! Recording which worker ids programs and fed databases lease, and which are assigned.

use keywright_core::{Cause, Layout};
use uuid::Uuid;

use super::assigned_rows;
use super::lease_rows::{all_rows, lock_all};
use super::worker_id_rows::{RecordedIds, differs, leased_text, read};
use super::{Link, StoreError, Transaction, bucket_rows, values};
use crate::buckets::{BucketRows, Given, has_others};
use crate::failure::Failure;
use crate::lease::space::Space;
use crate::lease::{LeaseRow, fed};
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
        let snowflakes = all_rows(link, Space::Snowflake.name()).await?;
        let buckets = all_rows(link, Space::Readable.name()).await?;
        let fed = all_rows(link, fed::SPACE).await?;
        let lock = link.words().for_update();
        let recorded = read(link, lock).await?;
        let assigned = assigned_rows::all(link).await?;
        let assigned: Vec<u32> = assigned.iter().map(|row| row.worker_id).collect();
        let used = Used {
            snowflakes: &snowflakes,
            buckets: &buckets,
            fed: &fed,
            assigned: &assigned,
        };
        let next_id = match self.decide(recorded.as_ref(), &used) {
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
        // Those that are recorded already were looked at by whoever divided buckets since; a store that was restored would be refused.
        let rows = bucket_rows::look(link).await?;
        if let Err(failure) = self.check_buckets(&rows) {
            link.rollback().await?;
            return Ok(Err(failure));
        }
        let text = |range: Option<IdRange>| range.map_or(String::new(), |its| its.to_string());
        let leased = leased_text(&self.ids);
        let [fed, assigned] = [self.ids.fed, self.ids.assigned].map(text);
        let (layout, words) = (self.layout.to_string(), link.words());
        let (or_update, now_ms) = (words.or_update("id"), words.now_ms());
        let write = format!(
            "INSERT INTO keywright_worker_ids \
             (id, leased, fed, assigned, layout, next_id, key_space_id, unknown_server, unknown_ms) \
             VALUES (1, ?, ?, ?, ?, ?, ?, ?, {now_ms}) \
             {or_update} leased = ?, fed = ?, assigned = ?, layout = ?, next_id = ?"
        );
        let ranges = || values![&leased, &fed, &assigned, &layout, next_id];
        let mut values = ranges();
        let key_space_id = Uuid::new_v4().simple().to_string();
        values.extend(values![key_space_id, link.server.identity.as_str()]);
        values.extend(ranges());
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
        used: &Used<'_>,
    ) -> Result<Option<u32>, Failure> {
        let layout = self.layout.to_string();
        match recorded {
            None if self.ids.is_empty() => return Ok(None),
            Some(its) if its.ids == self.ids && its.layout == layout => return Ok(None),
            Some(its) if !self.may_change => return Err(differs(its, &self.ids, &layout)),
            None | Some(_) => {}
        }
        self.check_table(recorded, used)?;
        self.check_fed(used)?;
        let assigned = used.assigned;
        let in_use = |message: String| Err(Failure::new(Cause::WorkerIdInUse, message));
        let is_assigned = |id: u32| self.ids.assigned.is_some_and(|range| range.has(id));
        let leased = used.snowflakes.iter().chain(used.buckets);
        if let Some(id) = leased.map(|row| row.worker_id).find(|id| is_assigned(*id)) {
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

    /// Generators beside this store may have any number of the table, and those that programs leased come from it, too, later.
    fn check_table(&self, recorded: Option<&RecordedIds>, used: &Used<'_>) -> Result<(), Failure> {
        let before = recorded.and_then(|its| its.ids.table.as_ref());
        let message = match (before, &self.ids.table) {
            (None, None) => return Ok(()),
            (Some(before), Some(table)) if before == table => return Ok(()),
            (Some(before), _) => {
                format!("numbers of table {before} are others' worker ids, and cannot be leased")
            }
            (None, Some(table)) => match (used.snowflakes.first(), used.assigned.first()) {
                (None, None) => return Ok(()),
                (Some(row), _) => format!(
                    "programs have leased worker id {}, which table {table} may give, too",
                    row.worker_id
                ),
                (None, Some(id)) => format!(
                    "worker id {id} was assigned to a database, and table {table} may give it, too"
                ),
            },
        };
        let failure = Failure::new(Cause::WorkerIdInUse, message);
        Err(failure.hint("take another store for the one or the other"))
    }

    /// A database with an assigned number has the bucket of that number.
    fn check_buckets(&self, rows: &BucketRows) -> Result<(), Failure> {
        let Some(assigned) = self.ids.assigned else {
            return Ok(());
        };
        let others = |of: &str| {
            let message = format!(
                "{assigned} cannot be assigned to databases: the buckets of readable ids of the same numbers are those of {of}"
            );
            Err(Failure::new(Cause::WorkerIdInUse, message))
        };
        let mut given = rows.given.iter();
        let meets = |its: &&Given| its.buckets.is_some_and(|range| range.meets(&assigned));
        if let Some(its) = given.find(meets) {
            return others(&format!("store \"{}\"", its.name));
        }
        // A store that was given some has no others, and none at all while it is closed.
        let its_own = rows.own.as_ref().filter(|own| own.giver != own.store_id);
        let its_own = its_own.map(|own| own.buckets.filter(|_| own.is_open));
        match its_own {
            Some(buckets) if has_others(assigned, buckets) => others("another store"),
            Some(_) | None => Ok(()),
        }
    }

    /// What databases were handed stays theirs, and what they are to be handed was nobody's.
    fn check_fed(&self, used: &Used<'_>) -> Result<(), Failure> {
        let in_use = |message: String| Err(Failure::new(Cause::WorkerIdInUse, message));
        let is_fed = |id: u32| self.ids.fed.is_some_and(|range| range.has(id));
        let mut fed = used.fed.iter();
        if let Some(row) = fed.find(|row| !is_fed(row.worker_id) || row.layout != self.layout) {
            return in_use(format!(
                "worker id {} was leased by a database that is fed, with layout \"{}\", so it must stay in fed_worker_ids",
                row.worker_id, row.layout
            ));
        }
        let mut programs = used.snowflakes.iter();
        if let Some(row) = programs.find(|row| is_fed(row.worker_id)) {
            return in_use(format!(
                "worker id {} cannot be in fed_worker_ids: programs have leased it",
                row.worker_id
            ));
        }
        let has_databases = self.ids.fed.or(self.ids.assigned).is_some();
        let mut programs = used.snowflakes.iter();
        match programs.find(|row| has_databases && row.layout != self.layout) {
            Some(row) => in_use(format!(
                "programs have leased worker ids with layout \"{}\", and databases that are fed or assigned some would have \"{}\"",
                row.layout, self.layout
            )),
            None => Ok(()),
        }
    }
}

/// Numbers that somebody has, or had.
struct Used<'a> {
    /// Worker ids that programs leased.
    snowflakes: &'a [LeaseRow],
    /// Buckets that they leased.
    buckets: &'a [LeaseRow],
    /// Worker ids that databases leased which are fed.
    fed: &'a [LeaseRow],
    /// Worker ids that were assigned.
    assigned: &'a [u32],
}
