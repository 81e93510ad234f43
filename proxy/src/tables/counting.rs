//! How far the server's own ids have come on tables of rules that observe, and who may have asked for them.

use anyhow::Result;
use keywright_session::Mode;
use keywright_store::server_identity;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::columns::{Column, with_rule};
use crate::config::Config;

/// Accounts that are named.
const ACCOUNTS_SHOWN_MAX: usize = 10;

/// What one server says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counting {
    /// Which server.
    pub server: String,
    /// When, by its own clock, in UTC.
    pub at: String,
    /// The tables.
    pub counts: Vec<Count>,
    /// Accounts, with the number of their connections: all since the server's start where it keeps them, or those there are.
    pub accounts: Vec<String>,
    /// The host that this program comes from.
    pub own_host: String,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// Its rule.
    pub rule: usize,
    /// Schema and table.
    pub table: String,
    /// The next id.
    pub next: u64,
}

/// Asks for nothing where no rule observes.
pub(super) async fn counting(
    server: &mut Conn,
    config: &Config,
    columns: &[Column],
) -> Result<Counting> {
    let observing = with_rule(config, columns).filter(|(configured, column)| {
        configured.rule.mode == Mode::Observe && column.auto_increment && !column.fenced
    });
    let counts: Vec<Count> = observing
        .filter_map(|(_, column)| {
            Some(Count {
                rule: column.rule,
                table: format!("{}.{}", column.schema, column.table),
                next: column.counter?,
            })
        })
        .collect();
    if counts.is_empty() {
        return Ok(Counting::default());
    }
    let failed = |failure| anyhow::anyhow!("{failure}");
    let identity = server_identity(server).await.map_err(failed)?;
    let (at, own_host): (String, String) = server
        .query_first(
            "SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s'), SUBSTRING_INDEX(USER(), '@', -1)",
        )
        .await?
        .unwrap_or_default();
    Ok(Counting {
        server: identity,
        at,
        counts,
        accounts: accounts(server).await,
        own_host,
    })
}

/// Whom the server knows; nobody, where it does not say.
async fn accounts(server: &mut Conn) -> Vec<String> {
    let kept = "SELECT CONCAT(user, '@', host), CAST(total_connections AS UNSIGNED) FROM performance_schema.accounts \
                WHERE user IS NOT NULL AND user <> 'event_scheduler' ORDER BY 2 DESC";
    let there = "SELECT CONCAT(user, '@', SUBSTRING_INDEX(host, ':', 1)), CAST(COUNT(*) AS UNSIGNED) \
                 FROM information_schema.processlist WHERE user NOT IN ('system user', 'event_scheduler') GROUP BY 1 ORDER BY 2 DESC";
    let mut found: Vec<(String, u64)> = server.query(kept).await.unwrap_or_default();
    // Where the server keeps none it says so by an empty list.
    if found.is_empty() {
        found = server.query(there).await.unwrap_or_default();
    }
    let more = found.len().saturating_sub(ACCOUNTS_SHOWN_MAX);
    let shown = found.into_iter().take(ACCOUNTS_SHOWN_MAX);
    let mut shown: Vec<String> = shown
        .map(|(who, count)| format!("{who} ({count})"))
        .collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown
}
