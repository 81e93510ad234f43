//! Which buckets of readable ids a store leases, where there are several: the rows.

use uuid::Uuid;

use super::{Link, Row, StoreError, column, values};
use crate::buckets::{BucketRows, Given, OwnBuckets};
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

/// As it stands in a column.
pub(super) fn text(range: Option<IdRange>) -> String {
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

/// Reads all rows.
pub(super) async fn read(link: &mut Link, lock: &str) -> Result<BucketRows, StoreError> {
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

/// Writes a store's own row.
pub(super) async fn write_own(
    own: &OwnBuckets,
    name: &str,
    link: &mut Link,
) -> Result<(), StoreError> {
    let write = format!(
        "INSERT INTO keywright_bucket (store, name, store_id, giver, buckets, is_open, is_restored, version) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) \
         {} name = ?, giver = ?, buckets = ?, is_open = ?, is_restored = ?, version = ?",
        link.words().or_update("store")
    );
    let (giver, buckets) = (own.giver.as_str(), text(own.buckets));
    let is_open = i64::from(own.is_open);
    let is_restored = i64::from(own.is_restored);
    let values = values![
        OWN,
        name,
        own.store_id.as_str(),
        giver,
        &buckets,
        is_open,
        is_restored,
        own.version,
        name,
        giver,
        &buckets,
        is_open,
        is_restored,
        own.version
    ];
    link.change(write, values).await?;
    Ok(())
}

/// All rows, until the transaction ends, for a look.
pub(super) async fn look(link: &mut Link) -> Result<BucketRows, StoreError> {
    let lock = link.words().in_share_mode();
    read(link, lock).await
}

/// Has the store know that it was restored: which of its buckets were leased since the backup, and which it gave, it does not. `are_divided`: several
/// stores have buckets, so that the backup may be from before this one had any: it is closed, too. Its row then, if it has one.
pub(super) async fn restore(
    are_divided: bool,
    link: &mut Link,
) -> Result<Option<OwnBuckets>, StoreError> {
    let lock = link.words().for_update();
    let select = format!("{SELECT} WHERE store = ?{lock}");
    let row = link.first(select, values![OWN]).await?;
    let (own, name) = match row {
        Some(row) => (own(&row)?, column(&row, "name")?),
        None if are_divided => (OwnBuckets::closed(new_id()), String::new()),
        None => return Ok(None),
    };
    let restored = own.restored(unlike_any());
    write_own(&restored, &name, link).await?;
    Ok(Some(restored))
}

/// Drawn for a store.
pub(super) fn new_id() -> String {
    Uuid::new_v4().simple().to_string()
}

/// A version that no row had: one counted up from the backup's could be what somebody has read of the store that was lost.
fn unlike_any() -> u64 {
    let (random, _) = Uuid::new_v4().as_u64_pair();
    // As a signed number too, with room to count up.
    random >> 2
}
