//! Dividing buckets of readable ids among several stores: one transaction for each step. Why in this order stands in [`crate::buckets`].

use super::bucket_rows::{new_id, read, text, write_own};
use super::lease_rows::{all_rows, lock_all};
use super::{Link, StoreError, Transaction, values, worker_id_rows};
use crate::buckets::{
    BucketRows, Given, OwnBuckets, Receiver, Refused, Rest, plan_close, plan_give, plan_open,
};
use crate::lease::space::Space;
use crate::worker_ids::IdRange;

/// All rows, locked, with the buckets that were ever leased.
async fn locked(link: &mut Link) -> Result<(BucketRows, Vec<u32>), StoreError> {
    lock_all(link).await?;
    let leases = all_rows(link, Space::Readable.name()).await?;
    let lock = link.words().for_update();
    let rows = read(link, lock).await?;
    Ok((rows, leases.iter().map(|row| row.worker_id).collect()))
}

/// A row for a store that has none.
fn closed() -> OwnBuckets {
    OwnBuckets::closed(new_id())
}

/// Reads all of it, for a look.
#[derive(Debug)]
pub(crate) struct ReadBuckets;

impl Transaction<BucketRows> for ReadBuckets {
    async fn run(&self, link: &mut Link) -> Result<BucketRows, StoreError> {
        read(link, "").await
    }
}

/// Closes a store that is to be given these buckets. Its own row then.
#[derive(Debug)]
pub(crate) struct CloseBuckets {
    pub(crate) name: String,
    pub(crate) wanted: Option<IdRange>,
    /// The id of the store without tags, where it has one.
    pub(crate) giver: Option<String>,
    pub(crate) rest: Rest,
    /// Changes nothing: whether it would be refused.
    pub(crate) only_looks: bool,
}

impl Transaction<Result<OwnBuckets, Refused>> for CloseBuckets {
    async fn run(&self, link: &mut Link) -> Result<Result<OwnBuckets, Refused>, StoreError> {
        link.begin().await?;
        let (rows, leased) = locked(link).await?;
        let giver = self.giver.as_deref();
        let used = (leased.as_slice(), assigned(link).await?);
        if let Err(refused) = plan_close(rows.own.as_ref(), used, self.wanted, giver, self.rest) {
            link.rollback().await?;
            return Ok(Err(refused));
        }
        let mut own = rows.own.unwrap_or_else(closed);
        if self.only_looks {
            link.rollback().await?;
            return Ok(Ok(own));
        }
        own.is_open = false;
        own.version = own.version.saturating_add(1);
        write_own(&own, &self.name, link).await?;
        link.commit().await?;
        Ok(Ok(own))
    }
}

/// Gives stores that are closed their buckets, and keeps others. The id of the store that gives.
#[derive(Debug)]
pub(crate) struct GiveBuckets {
    pub(crate) name: String,
    /// Of its own row, as it was read before the first store was closed; 0: it had none.
    pub(crate) version: u64,
    pub(crate) kept: Option<IdRange>,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) rest: Rest,
    /// Changes nothing: whether it would be refused.
    pub(crate) only_looks: bool,
}

impl Transaction<Result<String, (String, Refused)>> for GiveBuckets {
    async fn run(&self, link: &mut Link) -> Result<Result<String, (String, Refused)>, StoreError> {
        link.begin().await?;
        let (rows, leased) = locked(link).await?;
        let assigned = assigned(link).await?;
        let receivers = &self.receivers;
        let planned = plan_give(
            &rows,
            self.version,
            &leased,
            self.kept,
            receivers,
            self.rest,
        );
        let checked = planned.and_then(|given| match assigned {
            Some(assigned) => check_assigned(given, assigned),
            None => Ok(given),
        });
        let given = match checked {
            Ok(given) => given,
            Err(refused) => {
                link.rollback().await?;
                return Ok(Err(refused));
            }
        };
        let mut own = rows.own.unwrap_or_else(closed);
        if self.only_looks {
            link.rollback().await?;
            return Ok(Ok(own.store_id));
        }
        for its in &given {
            let write = format!(
                "INSERT INTO keywright_bucket (store, name, store_id, giver, buckets, is_open, is_restored, version) \
                 VALUES (?, ?, '', '', ?, 0, 0, 0) {} name = ?, buckets = ?",
                link.words().or_update("store")
            );
            let buckets = text(its.buckets);
            let name = its.name.as_str();
            let values = values![its.store_id.as_str(), name, &buckets, name, &buckets];
            link.change(write, values).await?;
        }
        own.giver.clone_from(&own.store_id);
        own.buckets = self.kept;
        own.is_open = true;
        own.version = own.version.saturating_add(1);
        write_own(&own, &self.name, link).await?;
        link.commit().await?;
        Ok(Ok(own.store_id))
    }
}

/// Databases with an assigned number have the bucket of that number: no other store may have it.
fn check_assigned(given: Vec<Given>, assigned: IdRange) -> Result<Vec<Given>, (String, Refused)> {
    let meets = |its: &&Given| its.buckets.is_some_and(|range| range.meets(&assigned));
    match given.iter().find(meets) {
        Some(its) => Err((its.name.clone(), Refused::Assigned(assigned))),
        None => Ok(given),
    }
}

/// The numbers that the store assigns to databases, until the transaction ends.
async fn assigned(link: &mut Link) -> Result<Option<IdRange>, StoreError> {
    let lock = link.words().in_share_mode();
    let recorded = worker_id_rows::read(link, lock).await?;
    Ok(recorded.and_then(|recorded| recorded.ids.assigned))
}

/// Opens a store that was closed, with what it was given.
#[derive(Debug)]
pub(crate) struct OpenBuckets {
    pub(crate) name: String,
    /// Of its own row, as closing left it.
    pub(crate) version: u64,
    pub(crate) buckets: Option<IdRange>,
    pub(crate) giver: String,
}

impl Transaction<Result<(), Refused>> for OpenBuckets {
    async fn run(&self, link: &mut Link) -> Result<Result<(), Refused>, StoreError> {
        link.begin().await?;
        let (rows, _) = locked(link).await?;
        if let Err(refused) = plan_open(rows.own.as_ref(), self.version) {
            link.rollback().await?;
            return Ok(Err(refused));
        }
        let own = OwnBuckets {
            giver: self.giver.clone(),
            buckets: self.buckets,
            is_open: true,
            version: self.version.saturating_add(1),
            ..rows.own.unwrap_or_else(closed)
        };
        write_own(&own, &self.name, link).await?;
        link.commit().await?;
        Ok(Ok(()))
    }
}
