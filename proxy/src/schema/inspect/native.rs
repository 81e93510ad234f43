//! Where native ids come from.

use anyhow::Result;
use keywright_store::server_identity;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::schema::snapshot::NativeIds;

/// Asked behind the tables' counters: ids that they count were made by then.
pub(super) async fn native(conn: &mut Conn) -> Result<NativeIds> {
    let failed = |failure| anyhow::anyhow!("{failure}");
    let server = server_identity(conn).await.map_err(failed)?;
    let (at, own_host): (String, String) = conn
        .query_first(
            "SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s'), SUBSTRING_INDEX(USER(), '@', -1)",
        )
        .await?
        .unwrap_or_default();
    Ok(NativeIds {
        server,
        at,
        own_host,
        accounts: accounts(conn).await,
    })
}

/// Whom the server knows; nobody, where it does not say.
async fn accounts(conn: &mut Conn) -> Vec<(String, u64)> {
    let kept = "SELECT CONCAT(user, '@', host), CAST(total_connections AS UNSIGNED) FROM performance_schema.accounts \
                WHERE user IS NOT NULL AND user <> 'event_scheduler' ORDER BY 2 DESC";
    let there = "SELECT CONCAT(user, '@', SUBSTRING_INDEX(host, ':', 1)), CAST(COUNT(*) AS UNSIGNED) \
                 FROM information_schema.processlist WHERE user NOT IN ('system user', 'event_scheduler') GROUP BY 1 ORDER BY 2 DESC";
    let found: Vec<(String, u64)> = conn.query(kept).await.unwrap_or_default();
    // Where the server keeps none it says so by an empty list.
    match found.is_empty() {
        true => conn.query(there).await.unwrap_or_default(),
        false => found,
    }
}
