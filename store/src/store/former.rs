//! Servers that another has taken the place of: how much of what they wrote may be missing on the one that is asked.
//!
//! What a server wrote before its newest reservation of any tag that is here, is here, too: commits come to replicas in their order, or nearly so. That
//! reservation is recorded with the first one that its successor makes: from then on rows say less and less of it. A server may come back under its name, made anew from
//! its successor: what it wrote in a later life is newer than all that is recorded of it, and recorded by itself.

use keywright_core::Tag;
use keywright_core::residue::Residue;

use super::gone_back::{behind, failure};
use super::tag_read::plain_row;
use super::tag_request::Denied;
use super::{Link, Row, Store, StoreError, column, values};
use crate::reserve::{LastReservation, TagRow};

/// How far replicas carry commits out in another order, at most, milliseconds.
const DISORDER_MS_MAX: i64 = 60_000;

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
    let (row, now_ms) = match plain_row(store, found, &link.server.identity, tag, wanted)? {
        Ok(read) => read,
        Err(denied) => return Ok(Err(denied)),
    };
    let Some(last) = row.last.filter(|last| !last.same_server) else {
        return Ok(Ok((row, now_ms)));
    };
    let known = known_of(store, found, (last.at_ms, now_ms), link).await?;
    let until_ms = known.map_or(last.at_ms, |known| {
        known.newest_ms.saturating_sub(DISORDER_MS_MAX)
    });
    let last = LastReservation {
        at_ms: last.at_ms.max(until_ms),
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
    match known_of(store, found, (at_ms, now_ms), link).await? {
        Some(Known {
            server,
            newest_ms,
            is_recorded: false,
        }) => {
            let insert = store
                .words
                .insert_new("keywright_former_server (server, newest_ms) VALUES (?, ?)");
            link.change(insert, values![server, newest_ms])
                .await
                .map(drop)
        }
        Some(Known {
            is_recorded: true, ..
        })
        | None => Ok(()),
    }
}

/// What is known of a server that another has taken the place of.
struct Known {
    server: String,
    /// When it made its newest reservation that is here, unix milliseconds.
    newest_ms: i64,
    is_recorded: bool,
}

/// What is known of the one that wrote a row at a moment.
async fn known_of(
    store: &Store,
    found: &Row,
    (at_ms, now_ms): (i64, i64),
    link: &mut Link,
) -> Result<Option<Known>, StoreError> {
    let Some(server) = column::<Option<String>>(found, "server")? else {
        return Ok(None);
    };
    // Of several lives of one the row is of that which ended first behind it.
    let select = "SELECT MIN(newest_ms) AS newest_ms FROM keywright_former_server WHERE server = ? AND newest_ms >= ?";
    if let Some(newest_ms) = newest(select.to_owned(), (&server, at_ms), link).await? {
        return Ok(Some(Known {
            server,
            newest_ms,
            is_recorded: true,
        }));
    }
    // One whose clock was ahead says nothing of when it wrote.
    let table = &store.segment_table;
    let select = format!(
        "SELECT MAX(reserved_ms) AS newest_ms FROM {table} WHERE server = ? AND reserved_ms <= ?"
    );
    let Some(newest_ms) = newest(select, (&server, now_ms), link).await? else {
        return Ok(None);
    };
    let is_known = !another_between(store, &server, (at_ms, newest_ms), link).await?;
    Ok(is_known.then_some(Known {
        server,
        newest_ms,
        is_recorded: false,
    }))
}

async fn newest(
    select: String,
    (server, ms): (&str, i64),
    link: &mut Link,
) -> Result<Option<i64>, StoreError> {
    let found = link.first(select, values![server, ms]).await?;
    let newest_ms: Option<Option<i64>> = found.map(|row| column(&row, "newest_ms")).transpose()?;
    Ok(newest_ms.flatten())
}

/// Whether another server was written to between two moments of one, or after the first of them, unless it is the one that is asked. The one that is asked about
/// may have come back in between, without what it had lost.
async fn another_between(
    store: &Store,
    server: &str,
    (from_ms, to_ms): (i64, i64),
    link: &mut Link,
) -> Result<bool, StoreError> {
    let select = format!(
        "SELECT COUNT(*) AS others FROM {} WHERE server <> ? AND reserved_ms > ? AND (server <> ? OR reserved_ms < ?)",
        store.segment_table
    );
    let here = link.server.identity.clone();
    let counted = link
        .first(select, values![server, from_ms, here.as_str(), to_ms])
        .await?;
    let others: Option<i64> = counted.map(|row| column(&row, "others")).transpose()?;
    Ok(others != Some(0))
}
