//! Whether a store says less of what databases that are fed were handed than this program has seen, and having all programs go by that.

use tracing::warn;

use super::fed_recorded::Recorded;
use super::lease_rows::{all_rows, lock_all};
use super::{Link, Store, StoreError, values, worker_id_rows};
use crate::lease::fed::{FedIds, Handed, SPACE};

/// Stands in place of the server that knows what was handed over. No server is called so.
const NOBODY: &str = "gone back";

/// Behind a start of the store's server: where it says less than this program has seen, an older state was put back, and others may have been handed what
/// nobody knows of any more. What was handed over until now counts as unknown then, as behind a promotion: databases go on with what they have, and
/// nobody is handed another worker id before all that may be lost is past.
pub(super) async fn compare_handed(store: &Store, link: &mut Link) -> Result<(), StoreError> {
    let handed = store.handed();
    if handed.is_empty() || store.words.uptime_s().is_none() {
        return Ok(());
    }
    link.begin().await?;
    let is_told = tell_if_behind(handed, link).await?;
    link.end(is_told).await
}

/// Whether there is something to commit. Leases are locked first, as by those who take them.
async fn tell_if_behind(handed: Vec<(u64, Handed)>, link: &mut Link) -> Result<bool, StoreError> {
    lock_all(link).await?;
    let lock = link.words().for_update();
    let ids = worker_id_rows::read(link, lock).await?;
    let range = ids.and_then(|recorded| recorded.ids.fed);
    let (Some(range), Some(recorded)) = (range, Recorded::read(link).await?) else {
        return Ok(false);
    };
    let identity = link.server.identity.clone();
    // What another server knew is unknown as soon as anybody is handed something.
    if recorded.unknown_server != identity {
        return Ok(false);
    }
    let its = handed.into_iter().filter(|(mark, _)| recorded.is_of(*mark));
    let seen: Vec<Handed> = its.map(|(_, handed)| handed).collect();
    let rows = all_rows(link, SPACE).await?;
    let fed = FedIds {
        rows: &rows,
        range,
        unknown_until_ms: recorded.unknown_until_ms(),
        elsewhere: &[],
        server: &identity,
    };
    let Some(behind) = fed.behind(&seen) else {
        return Ok(false);
    };
    // What this program knows of is not past before.
    let last_ms = seen.iter().map(|handed| handed.until_ms).max();
    let last_ms = last_ms.unwrap_or(behind.until_ms);
    let unknown_ms = last_ms.saturating_sub(recorded.ahead_ms);
    let unknown_ms = unknown_ms.max(recorded.unknown_ms);
    let update = "UPDATE keywright_worker_ids SET unknown_server = ?, unknown_ms = ? WHERE id = 1";
    link.change_one(update, values![NOBODY, unknown_ms]).await?;
    warn!(
        worker_id = behind.worker_id,
        until_ms = behind.until_ms,
        "the store has gone back behind what fed databases were handed: nobody is handed another worker id before all that may be lost is past"
    );
    Ok(true)
}
