//! Leases in the store: taking over, extending, giving up.

use std::sync::atomic::{AtomicI64, Ordering};

use keywright_core::{BoundPlan, BoundRefusal, BoundRequest, Layout, plan_bound};

use super::bucket_rows::Leased;
use super::switch_rows::make;
use super::uptime::{started_ms, was_started_since};
use super::worker_id_rows::RecordedIds;
use super::worker_row::NewOwner;
use super::{
    Link, Row, StoreError, Transaction, bucket_rows, column, lease_marks, number_table, values,
    worker_id_rows,
};
use crate::clock::Clock;
use crate::engine::words::Words;
use crate::lease::space::Space;
use crate::lease::{
    Claim, Claimant, Era, HeldLease, LeaseRow, NoLease, Standing, TakeoverLimits, is_behind,
    plan_claim, standing,
};
use crate::worker_ids::{IdRange, WorkerIds};

/// Reads leases, by the store's clock.
fn select(words: Words) -> String {
    format!(
        "SELECT worker_id, owner, holder, epoch, hi_ms, layout, server, expires_at <= {} AS expired FROM keywright_worker",
        words.now()
    )
}

/// A worker id to be taken over: any, or a certain one.
#[derive(Debug)]
pub(crate) struct TakeLease<'a> {
    pub(crate) space: Space,
    /// `server` is filled in when the connection is known.
    pub(crate) claimant: Claimant,
    pub(crate) limits: TakeoverLimits,
    /// The clock of `limits`, which may have been read long before the store is asked.
    pub(crate) clock: &'a dyn Clock,
    /// What the configuration says.
    pub(crate) worker_ids: WorkerIds,
    /// Whether buckets of readable ids are divided among several stores.
    pub(crate) must_be_divided: bool,
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
    async fn run(&self, link: &mut Link) -> Result<Result<TakenLease, NoLease>, StoreError> {
        let mut claimant = self.claimant.clone();
        link.begin().await?;
        claimant.server.clone_from(&link.server.identity);
        let era = Era {
            started_ms: started_ms(link, self.clock).await?,
            ..era(link, self.space).await?
        };
        lock_all(link).await?;
        let rows = all_rows(link, self.space.name()).await?;
        let recorded = worker_id_rows::read(link, link.words().in_share_mode()).await?;
        let within = self.within(link).await?;
        let wanted = match (self.differs(recorded.as_ref()), within) {
            (Some(no_lease), _) | (None, Err(no_lease)) => Err(no_lease),
            (None, Ok(within)) => {
                claimant.leasable.within = within.unwrap_or(claimant.leasable.within);
                self.wanted(&rows, link).await?
            }
        };
        let claim = wanted.and_then(|wanted| {
            claimant.wanted = wanted;
            plan_claim(&rows, &claimant, &self.limits, &era)
        });
        let claim = match claim {
            Ok(claim) => claim,
            Err(no_lease) => {
                let whose = (self.space.name(), claimant.owner.as_str(), self.holder);
                let is_told = lease_marks::tell(&no_lease, &rows, whose, link).await?;
                link.end(is_told).await?;
                return Ok(Err(no_lease));
            }
        };
        self.write(link, &claimant, &claim).await?;
        link.commit().await?;
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
    /// The only number that will do, if it is not any.
    async fn wanted(
        &self,
        rows: &[LeaseRow],
        link: &mut Link,
    ) -> Result<Result<Option<u32>, NoLease>, StoreError> {
        let claimant = &self.claimant;
        match (self.space, &self.worker_ids.table) {
            (Space::Snowflake, Some(table)) => {
                let number = number_table::number(table, claimant, rows, link).await?;
                Ok(number.map(Some))
            }
            (Space::Snowflake, None) | (Space::Readable, _) => Ok(Ok(claimant.wanted)),
        }
    }

    /// Where there are several stores each leases buckets of its own, and nothing before it is known which.
    async fn within(
        &self,
        link: &mut Link,
    ) -> Result<Result<Option<IdRange>, NoLease>, StoreError> {
        if self.space != Space::Readable {
            return Ok(Ok(None));
        }
        Ok(match bucket_rows::leased(link).await? {
            Leased::Any if self.must_be_divided => Err(NoLease::BucketsClosed),
            Leased::Any => Ok(None),
            Leased::Closed => Err(NoLease::BucketsClosed),
            Leased::Within(None) => Err(NoLease::NoBuckets),
            Leased::Within(range) => Ok(range),
        })
    }

    /// Databases that are fed, or have an assigned number, have the layout that is recorded; ids of others could meet theirs.
    fn differs(&self, recorded: Option<&RecordedIds>) -> Option<NoLease> {
        let ids = recorded.map_or_else(WorkerIds::default, |recorded| recorded.ids.clone());
        if ids != self.worker_ids {
            return Some(NoLease::OtherWorkerIds {
                recorded: Box::new(ids),
                configured: Box::new(self.worker_ids.clone()),
            });
        }
        let (of_databases, recorded) = ids.fed.or(ids.assigned).zip(recorded)?;
        let is_other =
            self.space == Space::Snowflake && recorded.layout != self.claimant.layout.to_string();
        is_other.then(|| NoLease::OtherLayout {
            worker_id: of_databases.first,
            layout: recorded.layout.clone(),
        })
    }

    async fn write(
        &self,
        link: &mut Link,
        claimant: &Claimant,
        claim: &Claim,
    ) -> Result<(), StoreError> {
        let layout = claimant.layout.to_string();
        // Whoever paused while it issued with another layout must find its lease gone.
        let evict = "UPDATE keywright_worker SET epoch = epoch + 1, owner = NULL \
                     WHERE space = ? AND layout <> ? AND worker_id <> ?";
        let space = self.space.name();
        link.change(evict, values![space, &layout, claim.worker_id])
            .await?;
        let owner = NewOwner {
            owner: &claimant.owner,
            holder: self.holder,
            epoch: claim.epoch,
            bound_ms: claim.plan.bound_ms,
            layout,
            server: &claimant.server,
            lease_ms: self.lease_ms,
        };
        let found = claim.epoch_found.zip(claim.hi_found_ms);
        owner.write(link, (space, claim.worker_id), found).await
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
    /// It says what we wrote last, but may have expired, and the store's server may have been started since we wrote it. If an older state was put back
    /// then, somebody else may have had it in between: it is to be taken over anew.
    Doubtful,
    /// The store says less of it than was committed: it is not to be had anew before somebody has said how far ids were given.
    GoneBack,
    /// It is not ours any more.
    Lost,
}

/// A lease to be renewed, and its bound extended.
#[derive(Debug)]
pub(crate) struct ExtendLease<'a> {
    pub(crate) space: Space,
    pub(crate) held: &'a HeldLease,
    /// What the clock showed before the row was written last, with time in which the machine was suspended.
    pub(crate) written_boot_ms: u64,
    pub(crate) clock: &'a dyn Clock,
    /// The request, but for the bound, which is read; `None`: only renew.
    pub(crate) request: Option<BoundRequest>,
    /// Where to note the bound before it is sent, so that one of unknown outcome is recognised later.
    pub(crate) attempted_ms: &'a AtomicI64,
    pub(crate) lease_ms: u64,
}

impl Transaction<Extension> for ExtendLease<'_> {
    /// One transaction: lock the row, compare it with what we know, write by compare-and-swap, commit.
    async fn run(&self, link: &mut Link) -> Result<Extension, StoreError> {
        link.begin().await?;
        let era = era(link, self.space).await?;
        let (space, words) = (self.space.name(), link.words());
        let select = format!(
            "{} WHERE space = ? AND worker_id = ?{}",
            select(words),
            words.for_update()
        );
        let found = link
            .first(select, values![space, self.held.worker_id])
            .await?;
        let found = found.as_ref().map(read_row).transpose()?;
        let is_doubtful = self.is_doubtful(found.as_ref(), link).await?;
        let hi_ms = match standing(found.as_ref(), self.held, &link.server.identity) {
            Standing::Ours { hi_ms: _ } if is_doubtful => {
                link.rollback().await?;
                return Ok(Extension::Doubtful);
            }
            // Renewing it reserves nothing.
            Standing::Ours { hi_ms }
                if self.request.is_none() || era.generation == self.held.generation =>
            {
                hi_ms
            }
            Standing::Ours { hi_ms: _ } => {
                link.rollback().await?;
                return Ok(Extension::Superseded);
            }
            Standing::Lost => {
                let has_gone_back = self.held.server == link.server.identity
                    && is_behind(found.as_ref(), self.held.published_ms, &era);
                link.rollback().await?;
                return Ok(match has_gone_back {
                    true => Extension::GoneBack,
                    false => Extension::Lost,
                });
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
            "UPDATE keywright_worker SET hi_ms = ?, expires_at = {} \
             WHERE space = ? AND worker_id = ? AND owner = ? AND epoch = ? AND hi_ms = ?",
            words.in_ms()
        );
        let held = self.held;
        let mut values = values![bound_ms, self.lease_ms, space, held.worker_id];
        values.extend(values![held.owner.as_str(), held.epoch, hi_ms]);
        link.change_one(update, values).await?;
        link.commit().await?;
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

impl ExtendLease<'_> {
    /// Whether somebody else may have had it since it was written, and an older state been put back after that.
    async fn is_doubtful(
        &self,
        found: Option<&LeaseRow>,
        link: &mut Link,
    ) -> Result<bool, StoreError> {
        // What was put back may expire later, and so may anything by a clock that was set back.
        let held_ms = self.clock.readings().boot_ms;
        let held_ms = held_ms.saturating_sub(self.written_boot_ms);
        let may_have_expired = found.is_some_and(|row| row.expired) || held_ms >= self.lease_ms;
        Ok(may_have_expired && was_started_since(link, self.clock, self.written_boot_ms).await?)
    }
}

/// A lease to be given up. Its bound stays: whoever takes it over starts there.
#[derive(Debug)]
pub(crate) struct ReleaseLease<'a> {
    pub(crate) space: &'static str,
    pub(crate) held: &'a HeldLease,
}

impl Transaction<()> for ReleaseLease<'_> {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let update = "UPDATE keywright_worker SET owner = NULL \
                      WHERE space = ? AND worker_id = ? AND owner = ? AND epoch = ?";
        let held = self.held;
        let mut values = values![self.space, held.worker_id];
        values.extend(values![held.owner.as_str(), held.epoch]);
        link.change(update, values).await?;
        Ok(())
    }
}

/// What holds for all leases of a space. It stays until the transaction ends: a change locks this row before any lease.
async fn era(link: &mut Link, space: Space) -> Result<Era, StoreError> {
    let select = format!(
        "SELECT snowflake_generation, {} AS floor_ms FROM keywright_switch WHERE id = 1{}",
        space.floor(),
        link.words().in_share_mode()
    );
    let mut found = link.first(&select, Vec::new()).await?;
    if found.is_none() && !link.words().locks_what_is_missing() {
        make(link).await?;
        found = link.first(&select, Vec::new()).await?;
    }
    match found {
        Some(row) => Ok(Era {
            // Tables never go over to readable ids.
            generation: match space {
                Space::Snowflake => column(&row, "snowflake_generation")?,
                Space::Readable => 0,
            },
            floor_ms: column(&row, "floor_ms")?,
            started_ms: None,
        }),
        None => Ok(Era::default()),
    }
}

/// Keeps others from making leases until the transaction ends, where reading all of them does not. Waiting for a row would not do: rows that
/// were made meanwhile are not seen then. Those who lock a row before they change it are let through first, so nobody waits for each other.
pub(super) async fn lock_all(link: &mut Link) -> Result<(), StoreError> {
    if !link.words().locks_what_is_missing() {
        let lock = "LOCK TABLE keywright_worker IN EXCLUSIVE MODE";
        link.change(lock, Vec::new()).await?;
    }
    Ok(())
}

/// All leases of a space, locked until the transaction ends.
pub(super) async fn all_rows(link: &mut Link, space: &str) -> Result<Vec<LeaseRow>, StoreError> {
    let words = link.words();
    let select = format!(
        "{} WHERE space = ? ORDER BY worker_id{}",
        select(words),
        words.for_update()
    );
    let rows = link.rows(select, values![space]).await?;
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
        holder: column(row, "holder")?,
        epoch: column(row, "epoch")?,
        hi_ms: column(row, "hi_ms")?,
        layout,
        server: column(row, "server")?,
        expired: column::<i64>(row, "expired")? != 0,
    })
}
