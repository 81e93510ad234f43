//! Worker ids that databases are assigned.

use keywright_core::{Cause, Mark};

use super::Keys;
use crate::assignment::{Ask, Asker, AssignedRow, Refused};
use crate::failure::Failure;
use crate::store::assigned_admin::{
    AdvanceNumbers, GiveUp, GivenUp, ListAssigned, ReleasedNumber, ReportCopy,
};
use crate::store::assigned_rows::{CommitAsk, ConfirmAsk, Confirmed, PlanAsk};
use crate::store::number_table::LookAtNumbers;
use crate::store::worker_id_admin::{RecordWorkerIds, WorkerIdsRecorded};
use crate::store::worker_id_rows::{self, ReadWorkerIds};
use crate::worker_ids::IdRange;

impl Keys {
    /// Records which worker ids are leased and which assigned, as the configuration says; in place of others where `may_change`.
    ///
    /// # Errors
    /// The store has recorded others; programs have leased a number, or a database was assigned one, that does not fit; the store cannot
    /// be used.
    pub async fn record_worker_ids(&self, may_change: bool) -> Result<WorkerIdsRecorded, Failure> {
        let settings = &self.0.settings;
        self.run(RecordWorkerIds {
            ids: settings.worker_ids(),
            layout: settings.layout(),
            may_change,
        })
        .await?
    }

    /// What is wrong with the ranges of the configuration, beside what the store has recorded.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(super) async fn other_worker_ids(&self) -> Result<Option<Failure>, Failure> {
        let settings = &self.0.settings;
        let (ids, layout) = (settings.worker_ids(), settings.layout().to_string());
        Ok(match self.run(ReadWorkerIds).await? {
            None if ids.is_empty() => None,
            None => Some(worker_id_rows::not_recorded()),
            Some(recorded) if recorded.ids == ids && recorded.layout == layout => None,
            Some(recorded) => Some(worker_id_rows::differs(&recorded, &ids, &layout)),
        })
    }

    /// What is in the way of numbers out of a table, if they come from one.
    pub(super) async fn lacks_numbers(&self) -> Option<Failure> {
        let table = self.0.settings.worker_ids().table?;
        self.run(LookAtNumbers { table }).await.err()
    }

    /// The numbers that are assigned.
    pub(crate) fn assigned_range(&self) -> Option<IdRange> {
        self.0.settings.worker_ids().assigned
    }

    /// What a database would get that asks; nothing is changed.
    ///
    /// # Errors
    /// The configuration, or the database's layout, is another than the store has recorded; the store cannot be used.
    pub(crate) async fn plan_ask(
        &self,
        asker: &Asker,
        layout: &str,
    ) -> Result<Result<Ask, Refused>, Failure> {
        self.run(self.planned(asker, layout)).await?
    }

    /// Writes what was planned, and the mark that the database is to have next. False: it would get something else now.
    ///
    /// # Errors
    /// As [`Keys::plan_ask`].
    pub(crate) async fn commit_ask(
        &self,
        asker: &Asker,
        layout: &str,
        ask: Ask,
        next: Mark,
    ) -> Result<bool, Failure> {
        self.run(CommitAsk {
            plan: self.planned(asker, layout),
            ask,
            next,
        })
        .await?
    }

    fn planned(&self, asker: &Asker, layout: &str) -> PlanAsk {
        let settings = &self.0.settings;
        PlanAsk {
            asker: asker.clone(),
            layout: layout.to_owned(),
            ids: settings.worker_ids(),
            configured_layout: settings.layout().to_string(),
        }
    }

    /// The database is known to have the mark that it was sent. `None`: somebody else has asked meanwhile.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn confirm_ask(
        &self,
        worker_id: u32,
        next: Mark,
    ) -> Result<Option<Confirmed>, Failure> {
        self.run(ConfirmAsk { worker_id, next }).await
    }

    /// Notes a copy that has asked.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn report_copy(&self, worker_id: u32, report: String) -> Result<(), Failure> {
        self.run(ReportCopy { worker_id, report }).await
    }

    /// A database has given its number up, and says how far it used it.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn given_up(
        &self,
        worker_id: u32,
        mark: Mark,
        bound_ms: Option<i64>,
        layout: Option<&str>,
    ) -> Result<ReleasedNumber, Failure> {
        let ours = self.0.settings.layout().to_string();
        let how = GivenUp::ByDatabase {
            mark,
            bound_ms,
            is_of_layout: layout.is_none_or(|layout| layout == ours),
        };
        self.run(GiveUp { worker_id, how }).await
    }

    /// Has a number never be given again, by the word of somebody who knows that its database is no more.
    ///
    /// # Errors
    /// It is nobody's; the store cannot be used.
    pub async fn retire_worker_id(&self, worker_id: u32) -> Result<(), Failure> {
        let how = GivenUp::Gone;
        match self.run(GiveUp { worker_id, how }).await? {
            ReleasedNumber::Released | ReleasedNumber::Retired => Ok(()),
            ReleasedNumber::NotAssigned => Err(not_assigned(worker_id)),
        }
    }

    /// All numbers that were ever assigned.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn assigned(&self) -> Result<Vec<AssignedRow>, Failure> {
        self.run(ListAssigned).await
    }

    /// Numbers up to this one count as assigned: after a backup of the store was restored. The next one.
    ///
    /// # Errors
    /// No ranges are recorded; the store cannot be used.
    pub async fn advance_worker_ids(&self, above: u32) -> Result<u32, Failure> {
        let next_id = self.run(AdvanceNumbers { above }).await?;
        next_id.ok_or_else(worker_id_rows::not_recorded)
    }
}

/// The failure of a number that no database has.
pub(crate) fn not_assigned(worker_id: u32) -> Failure {
    let message = format!("worker id {worker_id} is not assigned to a database");
    Failure::new(Cause::ArgumentOutOfRange, message)
        .hint("keywright worker list shows those that are")
}
