//! Snowflake ids in a switch: how far all leases together may have issued, and from where on these go on.

use std::sync::Arc;

use keywright_core::Layout;

use super::lease_rows::all_rows;
use super::uptime::uptime;
use super::{Link, StoreError, Transaction, values};
use crate::clock::Clock;
use crate::lease::space::Space;
use crate::lease::{
    LeaseRow, TakeoverLimits, first_above, first_above_foreign, first_above_granted, is_held,
};
use crate::switch::commit::Bound;

/// The largest snowflake id.
pub(super) const SNOWFLAKE_ID_MAX: u64 = u64::MAX >> 1;

/// By the store's clock, unix milliseconds.
pub(super) async fn now_ms(link: &mut Link) -> Result<i64, StoreError> {
    let now = format!("SELECT {}", link.words().now_ms());
    let now = link.first(now, Vec::new()).await?;
    now.map_or(Ok(0), |row| row.first())
}

/// What all leases together have reserved, and what they are to begin above: as long as there is none, that is all there is.
pub(super) async fn reserved_snowflakes(link: &mut Link) -> Result<u64, StoreError> {
    let rows = all_rows(link, Space::Snowflake.name()).await?;
    let reserved = rows.iter().map(first_above).max().unwrap_or(0);
    Ok(reserved.max(first_snowflake(link).await?))
}

/// What leases are to begin above.
async fn first_snowflake(link: &mut Link) -> Result<u64, StoreError> {
    let first = "SELECT snowflake_first FROM keywright_switch WHERE id = 1";
    let first = link.first(first, Vec::new()).await?;
    first.map_or(Ok(0), |row| row.first())
}

/// How far all leases together may have issued, and whoever was granted more than the rows say: an older state may have been put back under programs
/// that run, and not all of them have found that out. Where nobody has a lease, and the store has no server, there was nobody.
/// Of those whose bounds another server wrote, the last ones may be missing:
/// - one that nobody holds any more reaches as far as is left out by whoever takes it over now, by the later of the program's clock and the
///   store's. Whoever does so afterwards gets a lease of another generation, whose ids are in none of the tables that leave, and should they
///   come back, begin above these.
/// - of one that is held that is not said: its holder may still issue by what that server has.
pub(super) async fn bound_of_snowflakes(
    layout: &Layout,
    takeover: &TakeoverLimits,
    clock: &dyn Clock,
    link: &mut Link,
) -> Result<Bound, StoreError> {
    let rows = all_rows(link, Space::Snowflake.name()).await?;
    let first = first_snowflake(link).await?;
    let has_server = uptime(link).await?.is_some();
    let now_ms = now_ms(link).await?.max(clock.wall_ms());
    let limits = TakeoverLimits {
        now_ms: takeover.now_ms.max(now_ms),
        ..*takeover
    };
    let is_foreign = |row: &LeaseRow| row.server != link.server.identity;
    let above = |row: &LeaseRow| match is_foreign(row) {
        true => first_above_foreign(row, layout, &limits),
        false => first_above(row),
    };
    let issued = rows.iter().map(above).max().unwrap_or(0);
    let granted = match has_server || !rows.is_empty() {
        true => first_above_granted(&rows, layout, &limits),
        false => 0,
    };
    Ok(Bound {
        hi: issued.max(granted).max(first),
        id_max: SNOWFLAKE_ID_MAX,
        is_foreign: rows.iter().any(|row| is_foreign(row) && is_held(row)),
        behind: None,
        is_hidden: false,
    })
}

/// Reads the first id above all that may have been issued until now, for somebody who has tables leave these ids by hand, once nobody issues any more.
#[derive(Debug)]
pub(crate) struct ReadIssued {
    pub(crate) layout: Layout,
    /// How the asker would take a worker id over.
    pub(crate) takeover: TakeoverLimits,
    /// The clock of `takeover`.
    pub(crate) clock: Arc<dyn Clock>,
}

impl Transaction<u64> for ReadIssued {
    async fn run(&self, link: &mut Link) -> Result<u64, StoreError> {
        let bound = bound_of_snowflakes(&self.layout, &self.takeover, &*self.clock, link).await?;
        Ok(bound.hi)
    }
}

/// Raises the generation of all leases of snowflake ids, and the moment and the id at which these begin.
pub(super) async fn raise_leases(
    floor_ms: i64,
    first: u64,
    link: &mut Link,
) -> Result<(), StoreError> {
    let words = link.words();
    let update = format!(
        "UPDATE keywright_switch SET snowflake_generation = snowflake_generation + 1, \
         snowflake_floor_ms = {}, snowflake_first = {} WHERE id = 1",
        words.greater("snowflake_floor_ms", "?"),
        words.greater("snowflake_first", "?")
    );
    link.change(update, values![floor_ms, first]).await?;
    Ok(())
}
