//! Servers that another has taken the place of: how much of what they wrote may be missing on the one that is asked.
//!
//! What a server wrote before its newest reservation of any tag that is here, is here, too: commits come to replicas in their order, or nearly so. That
//! reservation is recorded with the first thing that its successor is asked to write, whichever tag it is of: from then on rows say less and less of it. A server may come
//! back under its name, made anew from its successor: what it wrote in a later life is newer than all that is recorded of it, and recorded by itself.

use keywright_core::Tag;
use keywright_core::residue::Residue;

use super::gone_back::{behind, failure};
use super::tag_read::plain_row;
use super::tag_request::Denied;
use super::{Link, Row, Store, StoreError, column, values};
use crate::dialect::{GONE_BACK, SKEW_MS_MAX};
use crate::reserve::{LastReservation, TagRow};

/// How far replicas carry commits out in another order, at most, milliseconds.
const DISORDER_MS_MAX: i64 = 60_000;
/// How long a server is written to beside the one that takes its place, at most, milliseconds: somebody may not have heard of it.
const OVERLAP_MS_MAX: i64 = 3_600_000;

/// A tag's row as it counts on this server, and the store's clock. `wanted`: the ids that the caller uses. Of one whose bound was put back nobody knows how far
/// its ids were given.
pub(super) async fn read_row(
    store: &Store,
    found: &Row,
    tag: &Tag,
    wanted: Residue,
    link: &mut Link,
) -> Result<Result<(TagRow, i64), Denied>, StoreError> {
    let behind = behind(store, found)?;
    let read = read_any_row(store, found, tag, wanted, link).await?;
    Ok(read.and_then(|(row, now_ms)| match behind {
        Some(seen) => Err(Denied::Other(failure(tag, seen, &row))),
        None => Ok((row, now_ms)),
    }))
}

/// The same, also of one whose bound was put back.
pub(super) async fn read_any_row(
    store: &Store,
    found: &Row,
    tag: &Tag,
    wanted: Residue,
    link: &mut Link,
) -> Result<Result<(TagRow, i64), Denied>, StoreError> {
    let (row, now_ms) = match plain_row(store, found, &link.server, tag, wanted)? {
        Ok(read) => read,
        Err(denied) => return Ok(Err(denied)),
    };
    let Some(last) = row.last.filter(|last| !last.same_server) else {
        return Ok(Ok((row, now_ms)));
    };
    let known = match column::<Option<String>>(found, "server")? {
        Some(server) => known_of(store, server, (last.at_ms, now_ms), link).await?,
        None => None,
    };
    let last = LastReservation {
        at_ms: counted_from(known.as_ref(), last.at_ms, now_ms),
        ..last
    };
    let row = TagRow {
        last: Some(last),
        ..row
    };
    Ok(Ok((row, now_ms)))
}

/// Records what is known of the server that wrote a tag's row, whose place this one has taken: once for each time.
pub(super) async fn record(
    store: &Store,
    found: &Row,
    row: &TagRow,
    now_ms: i64,
    link: &mut Link,
) -> Result<(), StoreError> {
    if row.last.is_none_or(|last| last.same_server) {
        return Ok(());
    }
    let at_ms: i64 = column(found, "reserved_ms")?;
    let Some(server) = column::<Option<String>>(found, "server")? else {
        return Ok(());
    };
    record_server(store, server, (at_ms, now_ms), link).await
}

/// The same of the server that wrote last before this one, whatever row the caller writes: once on each server, and behind each lost connection. The row that the
/// caller writes is locked. What was recorded is to be noted once that is committed, as of the [`Losses::place`](crate::losses::Losses::place) before it.
pub(super) async fn record_last(store: &Store, link: &mut Link) -> Result<(), StoreError> {
    let here = link.server.identity.clone();
    if store.losses.is_recorded_at(&store.losses.place(&here)) || !store.dialect.is_own() {
        return Ok(());
    }
    let now_ms = store.words.now_ms();
    let select = format!(
        "SELECT server, reserved_ms, {now_ms} AS now_ms FROM {} WHERE server <> ? AND reserved_ms <= {now_ms} + {SKEW_MS_MAX} \
         AND server NOT LIKE '{GONE_BACK}%' ORDER BY reserved_ms DESC LIMIT 1",
        store.segment_table
    );
    let Some(last) = link.first(select, values![here.as_str()]).await? else {
        return Ok(());
    };
    let (server, at_ms, now_ms) = (
        column(&last, "server")?,
        column(&last, "reserved_ms")?,
        column(&last, "now_ms")?,
    );
    record_server(store, server, (at_ms, now_ms), link).await
}

async fn record_server(
    store: &Store,
    server: String,
    (at_ms, now_ms): (i64, i64),
    link: &mut Link,
) -> Result<(), StoreError> {
    let Some(known) = known_of(store, server, (at_ms, now_ms), link).await? else {
        return Ok(());
    };
    if known.is_recorded || is_of_group(&known.server, now_ms, link).await? {
        return Ok(());
    }
    let insert = store
        .words
        .insert_new("keywright_former_server (server, newest_ms, left_ms) VALUES (?, ?, ?)");
    let values = values![known.server, known.newest_ms, now_ms];
    link.change(insert, values).await.map(drop)
}

/// Whether it is one of a group, where it may be written to as this one is, and was recorded a moment ago.
async fn is_of_group(server: &str, now_ms: i64, link: &mut Link) -> Result<bool, StoreError> {
    if !link.server.is_in_group {
        return Ok(false);
    }
    let select =
        "SELECT newest_ms FROM keywright_former_server WHERE server = ? AND left_ms > ? LIMIT 1";
    let since_ms = now_ms.saturating_sub(OVERLAP_MS_MAX);
    let recorded = link.first(select, values![server, since_ms]).await?;
    Ok(recorded.is_some())
}

/// What is known of a server that another has taken the place of.
struct Known {
    server: String,
    /// When it made its newest reservation that is here, unix milliseconds.
    newest_ms: i64,
    /// That was ahead of the clock of the server that took its place: the two differ.
    is_ahead: bool,
    is_recorded: bool,
    /// When the server that is asked was first written to, unix milliseconds, if that is known: since then nothing is missing.
    left_ms: Option<i64>,
}

/// As if the last reservation had been made at this moment, and ids might be missing from then on: the time in which some may be ends when the server that is
/// asked was written to. Where the clocks of the two differ, nobody knows how long ago a moment was by less than what they may differ.
fn counted_from(known: Option<&Known>, at_ms: i64, now_ms: i64) -> i64 {
    let since_ms = known.map_or(0, |known| known.whole_since_ms(now_ms));
    let newest_ms = known.map(|known| known.newest_ms.min(now_ms).saturating_sub(DISORDER_MS_MAX));
    let from_ms = newest_ms.map_or(at_ms, |newest_ms| newest_ms.max(at_ms));
    let from_ms = from_ms.saturating_add(since_ms);
    match at_ms > now_ms || known.is_some_and(|known| known.is_ahead) {
        true => from_ms.min(now_ms).saturating_sub(SKEW_MS_MAX),
        false => from_ms,
    }
}

impl Known {
    /// For how long nothing has been missing any more, milliseconds.
    fn whole_since_ms(&self, now_ms: i64) -> i64 {
        self.left_ms.map_or(0, |left_ms| {
            let since_ms = now_ms.saturating_sub(left_ms);
            since_ms.saturating_sub(OVERLAP_MS_MAX).max(0)
        })
    }
}

/// What is known of a server that wrote a row at a moment.
async fn known_of(
    store: &Store,
    server: String,
    (at_ms, now_ms): (i64, i64),
    link: &mut Link,
) -> Result<Option<Known>, StoreError> {
    // Of several lives of one the row is of that which ended first behind it.
    let select = "SELECT newest_ms, left_ms FROM keywright_former_server WHERE server = ? AND newest_ms >= ? ORDER BY newest_ms LIMIT 1";
    let recorded = link.first(select, values![server.as_str(), at_ms]).await?;
    if let Some(recorded) = recorded {
        let newest_ms = column(&recorded, "newest_ms")?;
        let left_ms: i64 = column(&recorded, "left_ms")?;
        return Ok(Some(Known {
            newest_ms,
            is_ahead: newest_ms > left_ms,
            is_recorded: true,
            left_ms: last_left(store, link).await?,
            server,
        }));
    }
    // One that is further ahead is of a clock that was wrong.
    let table = &store.segment_table;
    let select = format!(
        "SELECT MAX(reserved_ms) AS newest_ms FROM {table} WHERE server = ? AND reserved_ms <= ?"
    );
    let ahead_ms = now_ms.saturating_add(SKEW_MS_MAX);
    let newest = link
        .first(select, values![server.as_str(), ahead_ms])
        .await?;
    let newest_ms: Option<Option<i64>> = newest.map(|row| column(&row, "newest_ms")).transpose()?;
    let Some(newest_ms) = newest_ms.flatten() else {
        return Ok(None);
    };
    // What one of a group has acknowledged, the others have.
    let is_known = link.server.is_in_group
        || !another_between(store, &server, (at_ms, newest_ms, now_ms), link).await?;
    Ok(is_known.then_some(Known {
        server,
        newest_ms,
        is_ahead: newest_ms > now_ms,
        is_recorded: false,
        left_ms: None,
    }))
}

/// When the last failover was: the server that is asked is the successor then. Nothing: another was written to since, and whoever took that one's place
/// is not recorded yet; ids that it gave may be missing, too. Lives that are recorded say nothing of it, by whatever clock.
async fn last_left(store: &Store, link: &mut Link) -> Result<Option<i64>, StoreError> {
    let select = "SELECT MAX(left_ms) AS left_ms FROM keywright_former_server".to_owned();
    let last = link.first(select, Vec::new()).await?;
    let left_ms: Option<Option<i64>> = last.map(|row| column(&row, "left_ms")).transpose()?;
    let Some(left_ms) = left_ms.flatten() else {
        return Ok(None);
    };
    let select = format!(
        "SELECT COUNT(*) AS others FROM {} its WHERE server <> ? AND reserved_ms >= ? AND server NOT LIKE '{GONE_BACK}%' \
         AND NOT EXISTS (SELECT 1 FROM keywright_former_server f WHERE f.server = its.server AND f.newest_ms >= its.reserved_ms)",
        store.segment_table
    );
    let here = link.server.identity.clone();
    let counted = link.first(select, values![here.as_str(), left_ms]).await?;
    let others: Option<i64> = counted.map(|row| column(&row, "others")).transpose()?;
    Ok((others == Some(0)).then_some(left_ms))
}

/// Whether another server was written to between two moments of one, or after the first of them, unless it is the one that is asked. The one that is asked about
/// may have come back in between, without what it had lost.
async fn another_between(
    store: &Store,
    server: &str,
    (from_ms, to_ms, now_ms): (i64, i64, i64),
    link: &mut Link,
) -> Result<bool, StoreError> {
    let select = format!(
        "SELECT COUNT(*) AS others FROM {} WHERE server <> ? AND reserved_ms > ? AND (server <> ? OR reserved_ms < ?) \
         AND reserved_ms <= ? AND server NOT LIKE '{GONE_BACK}%'",
        store.segment_table
    );
    let here = link.server.identity.clone();
    let counted = link
        .first(
            select,
            values![
                server,
                from_ms,
                here.as_str(),
                to_ms,
                now_ms.saturating_add(SKEW_MS_MAX)
            ],
        )
        .await?;
    let others: Option<i64> = counted.map(|row| column(&row, "others")).transpose()?;
    Ok(others != Some(0))
}

#[cfg(test)]
mod tests {
    use super::{DISORDER_MS_MAX, Known, OVERLAP_MS_MAX, SKEW_MS_MAX, counted_from};

    #[test]
    fn ids_may_be_missing_until_the_successor_was_written_to() {
        let now_ms = 1_800_000_000_000;
        let day_ms = 86_400_000;
        let known = |left_ms: Option<i64>| Known {
            server: "one".to_owned(),
            newest_ms: now_ms - day_ms,
            is_ahead: false,
            is_recorded: left_ms.is_some(),
            left_ms,
        };
        let from = |left_ms, at_ms| counted_from(Some(&known(left_ms)), at_ms, now_ms);
        let quiet_ms = now_ms - 30 * day_ms;
        let newest_ms = now_ms - day_ms - DISORDER_MS_MAX;
        // Not recorded: until now.
        assert_eq!(from(None, quiet_ms), newest_ms);
        assert_eq!(from(None, now_ms - 7), now_ms - 7);
        // Just left, and long ago.
        assert_eq!(from(Some(now_ms), quiet_ms), newest_ms);
        assert_eq!(from(Some(now_ms - OVERLAP_MS_MAX), quiet_ms), newest_ms);
        let missing_ms = now_ms - from(Some(now_ms - day_ms), quiet_ms);
        assert_eq!(missing_ms, DISORDER_MS_MAX + OVERLAP_MS_MAX);
    }

    /// The gap would have no time in it, by the clock of the server that took the place.
    #[test]
    fn behind_a_clock_that_was_ahead_the_time_is_what_clocks_may_differ_by() {
        let now_ms = 1_800_000_000_000;
        let ahead = |newest_ms| Known {
            server: "one".to_owned(),
            newest_ms,
            is_ahead: true,
            is_recorded: false,
            left_ms: None,
        };
        let soon_ms = now_ms + 250_000;
        for (known, at_ms, from_ms) in [
            (None, soon_ms, now_ms - SKEW_MS_MAX),
            (Some(ahead(soon_ms)), soon_ms, now_ms - SKEW_MS_MAX),
            (Some(ahead(soon_ms)), now_ms - 9, now_ms - 9 - SKEW_MS_MAX),
        ] {
            assert_eq!(counted_from(known.as_ref(), at_ms, now_ms), from_ms);
        }
    }
}
