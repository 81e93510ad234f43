//! Which buckets of readable ids a store leases, where there are several: one transaction for each step. Why in this order stands in
//! [`crate::buckets`].

use uuid::Uuid;

use super::lease_rows::{all_rows, lock_all};
use super::{Link, Row, StoreError, Transaction, column, values, worker_id_rows};
use crate::buckets::{
    BucketRows, Given, OwnBuckets, Receiver, Refused, plan_close, plan_give, plan_open,
};
use crate::lease::space::Space;
use crate::worker_ids::IdRange;

/// The store's own row has this instead of an id.
const OWN: &str = "own";

const SELECT: &str = "SELECT store, name, store_id, giver, buckets, is_open, is_restored, version FROM keywright_bucket";

/// Which buckets programs lease.
pub(super) enum Leased {
    /// Any: nothing is recorded.
    Any,
    /// None now: `keywright init` was not run, or broke off, or the store was restored.
    Closed,
    /// These.
    Within(Option<IdRange>),
}

/// Reads which buckets may be leased, until the transaction ends. Leases were locked before.
pub(super) async fn leased(link: &mut Link) -> Result<Leased, StoreError> {
    let select = format!("{SELECT} WHERE store = ?{}", link.words().in_share_mode());
    let row = link.first(select, values![OWN]).await?;
    Ok(match row.as_ref().map(own).transpose()? {
        None => Leased::Any,
        Some(own) if !own.is_open => Leased::Closed,
        Some(own) => Leased::Within(own.buckets),
    })
}

fn range(row: &Row) -> Result<Option<IdRange>, StoreError> {
    let text: String = column(row, "buckets")?;
    if text.is_empty() {
        return Ok(None);
    }
    match IdRange::parse(&text) {
        Ok(range) => Ok(Some(range)),
        Err(_) => Err(StoreError::Column {
            column: "buckets".to_owned(),
            value: text,
        }),
    }
}

fn text(range: Option<IdRange>) -> String {
    range.map_or(String::new(), |range| range.to_string())
}

fn own(row: &Row) -> Result<OwnBuckets, StoreError> {
    Ok(OwnBuckets {
        store_id: column(row, "store_id")?,
        giver: column(row, "giver")?,
        buckets: range(row)?,
        is_open: column::<i64>(row, "is_open")? != 0,
        is_restored: column::<i64>(row, "is_restored")? != 0,
        version: column(row, "version")?,
    })
}

async fn read(link: &mut Link, lock: &str) -> Result<BucketRows, StoreError> {
    let select = format!("{SELECT} ORDER BY store{lock}");
    let mut rows = BucketRows::default();
    for row in link.rows(select, Vec::new()).await? {
        let store: String = column(&row, "store")?;
        if store == OWN {
            rows.own = Some(own(&row)?);
        } else {
            rows.given.push(Given {
                store_id: store,
                name: column(&row, "name")?,
                buckets: range(&row)?,
            });
        }
    }
    Ok(rows)
}

/// The same, locked, with the buckets that were ever leased.
async fn locked(link: &mut Link) -> Result<(BucketRows, Vec<u32>), StoreError> {
    lock_all(link).await?;
    let leases = all_rows(link, Space::Readable.name()).await?;
    let lock = link.words().for_update();
    let rows = read(link, lock).await?;
    Ok((rows, leases.iter().map(|row| row.worker_id).collect()))
}

async fn write_own(own: &OwnBuckets, name: &str, link: &mut Link) -> Result<(), StoreError> {
    let write = format!(
        "INSERT INTO keywright_bucket (store, name, store_id, giver, buckets, is_open, is_restored, version) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) \
         {} name = ?, giver = ?, buckets = ?, is_open = ?, version = ?",
        link.words().or_update("store")
    );
    let (giver, buckets) = (own.giver.as_str(), text(own.buckets));
    let is_open = i64::from(own.is_open);
    let values = values![
        OWN,
        name,
        own.store_id.as_str(),
        giver,
        &buckets,
        is_open,
        i64::from(own.is_restored),
        own.version,
        name,
        giver,
        &buckets,
        is_open,
        own.version
    ];
    link.change(write, values).await?;
    Ok(())
}

/// A row for a store that has none: nothing is leased there.
fn closed() -> OwnBuckets {
    OwnBuckets {
        store_id: Uuid::new_v4().simple().to_string(),
        giver: String::new(),
        buckets: None,
        is_open: false,
        is_restored: false,
        version: 0,
    }
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
}

impl Transaction<Result<OwnBuckets, Refused>> for CloseBuckets {
    async fn run(&self, link: &mut Link) -> Result<Result<OwnBuckets, Refused>, StoreError> {
        link.begin().await?;
        let (rows, leased) = locked(link).await?;
        let giver = self.giver.as_deref();
        if let Err(refused) = plan_close(rows.own.as_ref(), &leased, self.wanted, giver) {
            link.rollback().await?;
            return Ok(Err(refused));
        }
        let mut own = rows.own.unwrap_or_else(closed);
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
}

impl Transaction<Result<String, (String, Refused)>> for GiveBuckets {
    async fn run(&self, link: &mut Link) -> Result<Result<String, (String, Refused)>, StoreError> {
        link.begin().await?;
        let (rows, leased) = locked(link).await?;
        let given = plan_give(&rows, self.version, &leased, self.kept, &self.receivers);
        let given = match given {
            Ok(given) => match self.assigned(&given, link).await? {
                None => given,
                Some(refused) => {
                    link.rollback().await?;
                    return Ok(Err(refused));
                }
            },
            Err(refused) => {
                link.rollback().await?;
                return Ok(Err(refused));
            }
        };
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
        let mut own = rows.own.unwrap_or_else(closed);
        own.giver.clone_from(&own.store_id);
        own.buckets = self.kept;
        own.is_open = true;
        own.version = own.version.saturating_add(1);
        write_own(&own, &self.name, link).await?;
        link.commit().await?;
        Ok(Ok(own.store_id))
    }
}

impl GiveBuckets {
    /// Databases with an assigned number have the bucket of that number: no other store may have it.
    async fn assigned(
        &self,
        given: &[Given],
        link: &mut Link,
    ) -> Result<Option<(String, Refused)>, StoreError> {
        let lock = link.words().in_share_mode();
        let recorded = worker_id_rows::read(link, lock).await?;
        let Some(assigned) = recorded.and_then(|recorded| recorded.ids.assigned) else {
            return Ok(None);
        };
        let mut given = given.iter();
        let meets = |its: &&Given| its.buckets.is_some_and(|range| range.meets(&assigned));
        Ok(given
            .find(meets)
            .map(|its| (its.name.clone(), Refused::Assigned(assigned))))
    }
}

/// What others than this store have: no database may be assigned it.
pub(super) async fn given(link: &mut Link) -> Result<Vec<Given>, StoreError> {
    let lock = link.words().in_share_mode();
    Ok(read(link, lock).await?.given)
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

/// Has the store know that it was restored: which of its buckets were leased since the backup it does not.
pub(super) async fn restore(link: &mut Link) -> Result<(), StoreError> {
    let update = "UPDATE keywright_bucket SET is_open = 0, is_restored = 1, version = version + 1 WHERE store = ?";
    link.change(update, values![OWN]).await?;
    Ok(())
}
