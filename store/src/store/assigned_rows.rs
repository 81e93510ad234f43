//! Worker ids that databases are assigned: each step of an ask is one transaction, which locks the row of the ranges first.

use keywright_core::{Cause, Mark};

use super::worker_id_rows::{self, RecordedIds};
use super::{Link, Row, StoreError, Transaction, column, values};
use crate::assignment::{
    Ask, Asker, AssignedRow, AssignmentState, DatabaseName, Found, Numbers, Refused, plan_ask,
};
use crate::failure::Failure;
use crate::worker_ids::{IdRange, WorkerIds};

/// As long as the column.
const TEXT_CHARS_MAX: usize = 255;

const COLUMNS: &str = "worker_id, state, mark, next_mark, asks, is_used, bound_ms, system_id, database_oid, place, \
                       assigned_at_ms, asked_at_ms, released_at_ms, is_restored, report";

/// All numbers that were ever assigned. Who locks the row of the ranges has them to itself.
pub(super) async fn all(link: &mut Link) -> Result<Vec<AssignedRow>, StoreError> {
    let lock = link.words().for_update();
    read(link, lock).await
}

pub(super) async fn read(link: &mut Link, lock: &str) -> Result<Vec<AssignedRow>, StoreError> {
    let select = format!("SELECT {COLUMNS} FROM keywright_assigned ORDER BY worker_id{lock}");
    let rows = link.rows(select, Vec::new()).await?;
    rows.iter().map(read_row).collect()
}

fn read_row(row: &Row) -> Result<AssignedRow, StoreError> {
    let wrong = |column: &str, value: String| StoreError::Column {
        column: column.to_owned(),
        value,
    };
    let mark =
        |name: &str, text: String| Mark::parse(&text).ok_or_else(|| wrong(name, text.clone()));
    let state: String = column(row, "state")?;
    let next: Option<String> = column(row, "next_mark")?;
    Ok(AssignedRow {
        worker_id: column(row, "worker_id")?,
        state: AssignmentState::parse(&state).ok_or_else(|| wrong("state", state.clone()))?,
        mark: mark("mark", column(row, "mark")?)?,
        next: next.map(|text| mark("next_mark", text)).transpose()?,
        asks: column(row, "asks")?,
        is_used: column::<i64>(row, "is_used")? != 0,
        bound_ms: column(row, "bound_ms")?,
        database: DatabaseName {
            system: column(row, "system_id")?,
            oid: column(row, "database_oid")?,
            place: column(row, "place")?,
        },
        assigned_at_ms: column(row, "assigned_at_ms")?,
        asked_at_ms: column(row, "asked_at_ms")?,
        released_at_ms: column(row, "released_at_ms")?,
        is_restored: column::<i64>(row, "is_restored")? != 0,
        report: column(row, "report")?,
    })
}

/// The ranges, locked until the transaction ends: whoever assigns or releases comes one after the other.
pub(super) async fn locked(link: &mut Link) -> Result<Option<RecordedIds>, StoreError> {
    let lock = link.words().for_update();
    worker_id_rows::read(link, lock).await
}

/// What a database would get; nothing is changed.
#[derive(Debug)]
pub(crate) struct PlanAsk {
    pub(crate) asker: Asker,
    /// The layout of the database.
    pub(crate) layout: String,
    /// What the configuration says.
    pub(crate) ids: WorkerIds,
    pub(crate) configured_layout: String,
}

impl Transaction<Result<Result<Ask, Refused>, Failure>> for PlanAsk {
    async fn run(
        &self,
        link: &mut Link,
    ) -> Result<Result<Result<Ask, Refused>, Failure>, StoreError> {
        link.begin().await?;
        let planned = self.plan(link).await?;
        link.rollback().await?;
        Ok(planned)
    }
}

impl PlanAsk {
    async fn plan(
        &self,
        link: &mut Link,
    ) -> Result<Result<Result<Ask, Refused>, Failure>, StoreError> {
        let recorded = locked(link).await?;
        let (recorded, range) = match self.check(recorded) {
            Ok(checked) => checked,
            Err(failure) => return Ok(Err(failure)),
        };
        let rows = all(link).await?;
        let numbers = Numbers {
            rows: &rows,
            range,
            next_id: recorded.next_id,
            is_restored: recorded.is_restored,
        };
        Ok(Ok(plan_ask(&numbers, &self.asker)))
    }

    fn check(&self, recorded: Option<RecordedIds>) -> Result<(RecordedIds, IdRange), Failure> {
        let Some(recorded) = recorded else {
            return Err(worker_id_rows::not_recorded());
        };
        let layout = &self.configured_layout;
        if recorded.ids != self.ids || recorded.layout != *layout {
            return Err(worker_id_rows::differs(&recorded, &self.ids, layout));
        }
        let Some(range) = recorded.ids.assigned else {
            return Err(worker_id_rows::not_recorded());
        };
        if self.layout != *layout {
            let message = format!(
                "the database has layout \"{}\", and worker ids of layout \"{layout}\" are assigned",
                self.layout
            );
            return Err(Failure::new(Cause::LayoutOverlap, message).hint(format!(
                "ids differ for certain only where all have one layout: SELECT keywright.set_layout('{layout}') in the database"
            )));
        }
        Ok((recorded, range))
    }
}

/// The second step of an ask: the number is the asker's, under the mark that it has and the one that it is sent.
#[derive(Debug)]
pub(crate) struct CommitAsk {
    pub(crate) plan: PlanAsk,
    /// As it was planned: it must be the same still.
    pub(crate) ask: Ask,
    pub(crate) next: Mark,
}

impl Transaction<Result<bool, Failure>> for CommitAsk {
    /// False: it would get something else now.
    async fn run(&self, link: &mut Link) -> Result<Result<bool, Failure>, StoreError> {
        link.begin().await?;
        let planned = match self.plan.plan(link).await? {
            Ok(planned) => planned,
            Err(failure) => {
                link.rollback().await?;
                return Ok(Err(failure));
            }
        };
        if planned.as_ref() != Ok(&self.ask) {
            link.rollback().await?;
            return Ok(Ok(false));
        }
        match self.ask.from {
            Found::Own { asks } => self.rotate(asks, link).await?,
            Found::Released { asks } => self.give_again(asks, link).await?,
            Found::New => {
                self.insert(0, link).await?;
                let update = "UPDATE keywright_worker_ids SET next_id = ? WHERE id = 1";
                let next_id = self.ask.worker_id.saturating_add(1);
                link.change_one(update, values![next_id]).await?;
            }
            Found::Lost => self.insert(1, link).await?,
        }
        link.commit().await?;
        Ok(Ok(true))
    }
}

impl CommitAsk {
    /// The mark that the asker has stands on, the one that was sent before does not: if the asker had it, it would have come with it.
    async fn rotate(&self, asks: u32, link: &mut Link) -> Result<(), StoreError> {
        let update = format!(
            "UPDATE keywright_assigned SET mark = ?, next_mark = ?, asks = ?, {} \
             WHERE worker_id = ? AND asks = ?",
            self.sets(link)
        );
        let mut values = self.values();
        values.extend(values![self.ask.worker_id, asks]);
        link.change_one(update, values).await
    }

    async fn give_again(&self, asks: u32, link: &mut Link) -> Result<(), StoreError> {
        let now = link.words().now_ms();
        let update = format!(
            "UPDATE keywright_assigned SET mark = ?, next_mark = ?, asks = ?, {}, state = 'assigned', \
             assigned_at_ms = {now}, released_at_ms = NULL, report = NULL WHERE worker_id = ? AND asks = ?",
            self.sets(link)
        );
        let mut values = self.values();
        values.extend(values![self.ask.worker_id, asks]);
        link.change_one(update, values).await
    }

    async fn insert(&self, is_used: i64, link: &mut Link) -> Result<(), StoreError> {
        let now = link.words().now_ms();
        let insert = format!(
            "INSERT INTO keywright_assigned (mark, next_mark, asks, system_id, database_oid, place, worker_id, state, is_used, \
             assigned_at_ms, asked_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, 'assigned', ?, {now}, {now})"
        );
        let mut values = self.values();
        values.extend(values![self.ask.worker_id, is_used]);
        link.change_one(insert, values).await
    }

    fn sets(&self, link: &Link) -> String {
        let now = link.words().now_ms();
        format!("system_id = ?, database_oid = ?, place = ?, asked_at_ms = {now}")
    }

    fn values(&self) -> Vec<super::Value> {
        let asker = &self.plan.asker;
        let database = &asker.database;
        values![
            asker.mark.to_string(),
            self.next.to_string(),
            self.ask.asks,
            database.system.as_str(),
            database.oid,
            cut(&database.place),
        ]
    }
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// The fourth step of an ask: the database has the mark that it was sent, and whoever comes with the one before is a copy.
#[derive(Debug)]
pub(crate) struct ConfirmAsk {
    pub(crate) worker_id: u32,
    pub(crate) next: Mark,
}

/// What is known of a number that is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Confirmed {
    /// Nobody was confirmed to have it before.
    pub(crate) is_unused: bool,
    /// All ids of its last owners are of moments before this, unix milliseconds.
    pub(crate) bound_ms: Option<i64>,
}

impl Transaction<Option<Confirmed>> for ConfirmAsk {
    /// `None`: somebody else has asked meanwhile.
    async fn run(&self, link: &mut Link) -> Result<Option<Confirmed>, StoreError> {
        link.begin().await?;
        locked(link).await?;
        let rows = all(link).await?;
        let row = rows.iter().find(|row| row.worker_id == self.worker_id);
        let sent =
            row.filter(|row| row.state == AssignmentState::Assigned && row.next == Some(self.next));
        let Some(row) = sent else {
            link.rollback().await?;
            return Ok(None);
        };
        let update = "UPDATE keywright_assigned SET mark = next_mark, next_mark = NULL, is_used = 1, is_restored = 0 \
                      WHERE worker_id = ? AND asks = ? AND next_mark = ?";
        let values = values![self.worker_id, row.asks, self.next.to_string()];
        link.change_one(update, values).await?;
        link.commit().await?;
        Ok(Some(Confirmed {
            is_unused: !row.is_used,
            bound_ms: row.bound_ms,
        }))
    }
}
