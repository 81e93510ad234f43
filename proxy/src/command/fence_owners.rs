//! The rules in force by which tables have their fence, as the store has recorded it: a configuration may have these written another way.

use std::collections::BTreeMap;
use std::time::Duration;

use keywright_proxy::schema::Snapshot;
use keywright_store::switch::{KeySpace, RuleName, Standing, Switchboard, keys_in_force};
use tokio::time::timeout;

/// How long the store is waited for, milliseconds: what is said without this is right, too.
const STORE_MS_MAX: u64 = 1_000;

/// The rules of a server's tables, with their keys, by schema and table.
pub(super) type Owners = BTreeMap<(String, String), (RuleName, KeySpace)>;

/// Those of a server; none where the store cannot be asked.
pub(super) async fn owners(
    snapshot: Option<&Snapshot>,
    (board, standing): (&Switchboard, Option<&Standing>),
) -> Owners {
    let context = snapshot.and_then(|snapshot| snapshot.context.as_ref());
    let (Some(context), Some(standing)) = (context, standing) else {
        return Owners::new();
    };
    let asked = timeout(
        Duration::from_millis(STORE_MS_MAX),
        board.fenced(&context.identity),
    );
    let Ok(Ok(recorded)) = asked.await else {
        return Owners::new();
    };
    let owned = recorded.into_iter().filter_map(|its| {
        let keys = keys_in_force(&its, &standing.rules)?.clone();
        Some(((its.schema, its.table), (its.rule, keys)))
    });
    owned.collect()
}
