//! Leases in the store: taking over, extending, giving up.

use std::sync::atomic::{AtomicI64, Ordering};

use keywright_core::{BoundPlan, BoundRefusal, BoundRequest, Layout, plan_bound};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Value};

use super::{Link, StoreError, Transaction, column};
use crate::lease::space::Space;
use crate::lease::{
    Claim, Claimant, Era, HeldLease, LeaseRow, NoLease, Standing, TakeoverLimits, plan_claim,
    standing,
};

const COLUMNS: &str =
    "worker_id, owner, epoch, hi_ms, layout, server, expires_at <= UTC_TIMESTAMP(3) AS expired";

/// When a lease expires: so many milliseconds from now, by the store's clock, in UTC.
const EXPIRY: &str = "UTC_TIMESTAMP(3) + INTERVAL (? * 1000) MICROSECOND";

/// A worker id to be taken over: any, or a certain one.
#[derive(Debug)]
pub(crate) struct TakeLease<'a> {
    pub(crate) space: Space,
    /// `server` is filled in when the connection is known.
    pub(crate) claimant: Claimant,
    pub(crate) limits: TakeoverLimits,
    pub(crate) holder: &'a str,
    pub(crate) lease_ms: u64,
}

/// A lease that is durably ours.
#[derive(Debug)]
pub(crate) struct TakenLease {
    pub(crate) claim: Claim,
    pub(crate) held: HeldLease,
}

impl Transaction<Result<TakenLease, NoLease>> for TakeLease<'_> {
    /// One transaction that locks all rows of the space.
    async fn run(self, link: &mut Link) -> Result<Result<TakenLease, NoLease>, StoreError> {
        let mut claimant = self.claimant.clone();
        claimant.server.clone_from(&link.server.identity);
        let conn = &mut link.conn;
        conn.query_drop("START TRANSACTION").await?;
        let era = era(conn, self.space).await?;
        let rows = all_rows(conn, self.space.name()).await?;
        let claim = match plan_claim(&rows, &claimant, &self.limits, &era) {
            Ok(claim) => claim,
            Err(no_lease) => {
                conn.query_drop("ROLLBACK").await?;
                return Ok(Err(no_lease));
            }
        };
        self.write(conn, &claimant, &claim).await?;
        conn.query_drop("COMMIT").await?;
        Ok(Ok(TakenLease {
            claim,
            held: HeldLease {
                worker_id: claim.worker_id,
                owner: claimant.owner,
                epoch: claim.epoch,
                published_ms: claim.plan.bound_ms,
                attempted_ms: claim.plan.bound_ms,
                server: claimant.server,
                generation: era.generation,
            },
        }))
    }
}

impl TakeLease<'_> {
    async fn write(
        &self,
        conn: &mut Conn,
        claimant: &Claimant,
        claim: &Claim,
    ) -> Result<(), StoreError> {
        let layout = claimant.layout.to_string();
        // Whoever paused while it issued with another layout must find its lease gone.
        let evict = "UPDATE keywright_worker SET epoch = epoch + 1, owner = NULL \
                     WHERE space = ? AND layout <> ? AND worker_id <> ?";
        let space = self.space.name();
        conn.exec_drop(evict, (space, layout.as_str(), claim.worker_id))
            .await?;
        let mut values: Vec<Value> = vec![
            claimant.owner.as_str().into(),
            self.holder.into(),
            claim.epoch.into(),
            claim.plan.bound_ms.into(),
            layout.into(),
            claimant.server.as_str().into(),
            self.lease_ms.into(),
            space.into(),
            claim.worker_id.into(),
        ];
        let statement = match claim.epoch_found {
            Some(epoch) => {
                values.extend([epoch.into(), claim.hi_found_ms.into()]);
                format!(
                    "UPDATE keywright_worker SET owner = ?, holder = ?, epoch = ?, hi_ms = ?, layout = ?, server = ?, \
                     expires_at = {EXPIRY} WHERE space = ? AND worker_id = ? AND epoch = ? AND hi_ms = ?"
                )
            }
            None => format!(
                "INSERT INTO keywright_worker (owner, holder, epoch, hi_ms, layout, server, expires_at, space, worker_id) \
                 VALUES (?, ?, ?, ?, ?, ?, {EXPIRY}, ?, ?)"
            ),
        };
        conn.exec_drop(statement, Params::Positional(values))
            .await?;
        require_one(conn)
    }
}

/// What becomes of a lease that is extended.
#[derive(Debug)]
pub(crate) enum Extension {
    /// The bound is durable and ours.
    Extended(BoundPlan),
    /// The lease is still ours; ids are too far ahead of the clock, or the layout has run out. The lease was renewed.
    Refused {
        /// Why it may not be extended.
        refusal: BoundRefusal,
        /// The bound as it is.
        bound_ms: i64,
    },
    /// Tables have gone over to these keys, or left them, and we do not follow yet.
    Superseded,
    /// It is not ours any more.
    Lost,
}

/// A lease to be renewed, and its bound extended.
#[derive(Debug)]
pub(crate) struct ExtendLease<'a> {
    pub(crate) space: Space,
    pub(crate) held: &'a HeldLease,
    /// The request, but for the bound, which is read; `None`: only renew.
    pub(crate) request: Option<BoundRequest>,
    /// Where to note the bound before it is sent, so that one of unknown outcome is recognised later.
    pub(crate) attempted_ms: &'a AtomicI64,
    pub(crate) lease_ms: u64,
}

impl Transaction<Extension> for ExtendLease<'_> {
    /// One transaction: lock the row, compare it with what we know, write by compare-and-swap, commit.
    async fn run(self, link: &mut Link) -> Result<Extension, StoreError> {
        let conn = &mut link.conn;
        conn.query_drop("START TRANSACTION").await?;
        let era = era(conn, self.space).await?;
        let space = self.space.name();
        let select = format!(
            "SELECT {COLUMNS} FROM keywright_worker WHERE space = ? AND worker_id = ? FOR UPDATE"
        );
        let found: Option<Row> = conn
            .exec_first(select, (space, self.held.worker_id))
            .await?;
        let found = found.as_ref().map(read_row).transpose()?;
        let hi_ms = match standing(found.as_ref(), self.held, &link.server.identity) {
            // Renewing it reserves nothing.
            Standing::Ours { hi_ms }
                if self.request.is_none() || era.generation == self.held.generation =>
            {
                hi_ms
            }
            Standing::Ours { hi_ms: _ } => {
                conn.query_drop("ROLLBACK").await?;
                return Ok(Extension::Superseded);
            }
            Standing::Lost => {
                conn.query_drop("ROLLBACK").await?;
                return Ok(Extension::Lost);
            }
        };
        let planned = self.request.map(|request| {
            plan_bound(&BoundRequest {
                bound_ms: Some(hi_ms),
                ..request
            })
        });
        let bound_ms = match planned {
            Some(Ok(plan)) => plan.bound_ms,
            Some(Err(_)) | None => hi_ms,
        };
        self.attempted_ms.store(bound_ms, Ordering::Release);
        let update = format!(
            "UPDATE keywright_worker SET hi_ms = ?, expires_at = {EXPIRY} \
             WHERE space = ? AND worker_id = ? AND owner = ? AND epoch = ? AND hi_ms = ?"
        );
        let values: Vec<Value> = vec![
            bound_ms.into(),
            self.lease_ms.into(),
            space.into(),
            self.held.worker_id.into(),
            self.held.owner.as_str().into(),
            self.held.epoch.into(),
            hi_ms.into(),
        ];
        conn.exec_drop(update, Params::Positional(values)).await?;
        require_one(conn)?;
        conn.query_drop("COMMIT").await?;
        Ok(match planned {
            Some(Ok(plan)) => Extension::Extended(plan),
            Some(Err(refusal)) => Extension::Refused { refusal, bound_ms },
            None => Extension::Extended(BoundPlan {
                bound_ms,
                hi_state: 0,
            }),
        })
    }
}

/// A lease to be given up. Its bound stays: whoever takes it over starts there.
#[derive(Debug)]
pub(crate) struct ReleaseLease<'a> {
    pub(crate) space: &'static str,
    pub(crate) held: &'a HeldLease,
}

impl Transaction<()> for ReleaseLease<'_> {
    async fn run(self, link: &mut Link) -> Result<(), StoreError> {
        let update = "UPDATE keywright_worker SET owner = NULL \
                      WHERE space = ? AND worker_id = ? AND owner = ? AND epoch = ?";
        let held = self.held;
        let values = (self.space, held.worker_id, held.owner.as_str(), held.epoch);
        link.conn.exec_drop(update, values).await?;
        Ok(())
    }
}

/// Reads all leases, for people.
#[derive(Debug)]
pub(crate) struct ListLeases;

impl Transaction<Vec<WorkerRow>> for ListLeases {
    async fn run(self, link: &mut Link) -> Result<Vec<WorkerRow>, StoreError> {
        let select = "SELECT space, worker_id, owner, holder, epoch, hi_ms, layout, server, \
                      expires_at <= UTC_TIMESTAMP(3) AS expired FROM keywright_worker ORDER BY space, worker_id";
        let rows: Vec<Row> = link.conn.query(select).await?;
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
    /// Host and process of whoever holds or held it.
    pub holder: Option<String>,
    /// Counts owners.
    pub epoch: u64,
    /// The bound, unix milliseconds.
    pub hi_ms: i64,
    /// The layout of its ids.
    pub layout: String,
}

fn require_one(conn: &Conn) -> Result<(), StoreError> {
    match conn.affected_rows() {
        1 => Ok(()),
        _ => Err(StoreError::NotLocked),
    }
}

/// What holds for all leases of a space. It stays until the transaction ends: a change locks this row before any lease.
async fn era(conn: &mut Conn, space: Space) -> Result<Era, StoreError> {
    const SELECT: &str = "SELECT snowflake_generation, snowflake_floor_ms FROM keywright_switch WHERE id = 1 LOCK IN SHARE MODE";
    if space != Space::Snowflake {
        return Ok(Era::default());
    }
    let row: Option<Row> = conn.query_first(SELECT).await?;
    match row {
        Some(row) => Ok(Era {
            generation: column(&row, "snowflake_generation")?,
            floor_ms: column(&row, "snowflake_floor_ms")?,
        }),
        None => Ok(Era::default()),
    }
}

/// All leases of a space, locked until the transaction ends.
pub(super) async fn all_rows(conn: &mut Conn, space: &str) -> Result<Vec<LeaseRow>, StoreError> {
    let select = format!(
        "SELECT {COLUMNS} FROM keywright_worker WHERE space = ? ORDER BY worker_id FOR UPDATE"
    );
    let rows: Vec<Row> = conn.exec(select, (space,)).await?;
    rows.iter().map(read_row).collect()
}

fn read_row(row: &Row) -> Result<LeaseRow, StoreError> {
    let text: String = column(row, "layout")?;
    let layout = Layout::parse(&text).map_err(|_| StoreError::Column {
        column: "layout".to_owned(),
        value: text,
    })?;
    Ok(LeaseRow {
        worker_id: column(row, "worker_id")?,
        owner: column(row, "owner")?,
        epoch: column(row, "epoch")?,
        hi_ms: column(row, "hi_ms")?,
        layout,
        server: column(row, "server")?,
        expired: column::<i64>(row, "expired")? != 0,
    })
}
