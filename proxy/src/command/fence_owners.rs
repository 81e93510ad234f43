//! What the store has recorded of tables that have a fence, or seem to: the rules in force by which they have it, which a configuration may have written
//! another way; and whether it was lifted.

use std::collections::BTreeMap;
use std::time::Duration;

use keywright_proxy::schema::{FenceRecord, Snapshot};
use keywright_store::Failure;
use keywright_store::switch::{Standing, Switchboard, TableName, keys_in_force};
use tokio::time::timeout;

/// How long the store is waited for, milliseconds: what is said without this is right, too.
const STORE_MS_MAX: u64 = 1_000;

/// That of a server's tables.
pub(super) type Owners = BTreeMap<TableName, FenceRecord>;

/// That of a server; nothing where the store cannot be asked.
pub(super) async fn owners(
    snapshot: Option<&Snapshot>,
    (board, standing): (&Switchboard, Option<&Standing>),
) -> Owners {
    let context = snapshot.and_then(|snapshot| snapshot.context.as_ref());
    let (Some(context), Some(standing)) = (context, standing) else {
        return Owners::new();
    };
    let server = context.identity.as_str();
    let asked =
        async { Ok::<_, Failure>((board.fenced(server).await?, board.lifted(server).await?)) };
    let asked = timeout(Duration::from_millis(STORE_MS_MAX), asked);
    let Ok(Ok((fenced, lifted))) = asked.await else {
        return Owners::new();
    };
    let lifted = lifted.into_iter().map(|table| (table, FenceRecord::Lifted));
    let set = fenced.into_iter().filter_map(|its| {
        let keys = keys_in_force(&its, &standing.rules)?.clone();
        Some(((its.schema, its.table), FenceRecord::SetBy(its.rule, keys)))
    });
    // Behind the others: nobody may lift those.
    lifted.chain(set).collect()
}
