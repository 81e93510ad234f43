//! Whether a store says less of a tag than this program has seen, and telling other programs of it.

use std::sync::Arc;
use std::time::Duration;

use keywright_core::Tag;
use keywright_core::residue::Residue;
use tokio::time::Instant;
use tracing::warn;

use super::gone_back::{GoneBack, Untold, behind, failure};
use super::tag_read::{key_space, read_any_row};
use super::{Link, Row, Store, StoreError, Transaction, column, values};
use crate::reserve::{TagRow, has_gone_back};

/// A server may have been stopped to put its data back. So long after its start nothing is reserved by a program that was connected before, seconds:
/// who has seen more looks first.
const SETTLE_S: u64 = 2;

/// Why nothing is reserved of a tag: its row says that it has gone back, or it is below `seen`.
pub(super) fn gone_back(
    store: &Store,
    tag: &Tag,
    (found, row): (&Row, &TagRow),
    (seen, now_ms): (u64, i64),
) -> Result<Option<GoneBack>, StoreError> {
    let behind = behind(store, found)?;
    if behind.is_none() && !has_gone_back(row, seen, now_ms) {
        return Ok(None);
    }
    let told = behind.unwrap_or(0);
    let key_space = key_space(found)?;
    // What was seen of another tag of this name says nothing of this one, and those that were made by hand are not told apart.
    let own = store.bound_of(tag, &key_space);
    let is_untold = store.dialect.is_own() && !key_space.is_empty() && own > told;
    let untold = is_untold.then_some(Untold {
        key_space,
        number: row.number,
        seen: own,
    });
    let failure = failure(tag, seen.max(told), row);
    Ok(Some(GoneBack { failure, untold }))
}

/// Writes it into the row. Whoever cannot refuses keys by itself all the same, and tries again with the next request.
pub(super) async fn tell(gone_back: &GoneBack, store: &Store, tag: &Tag, link: &mut Link) {
    let Some(untold) = &gone_back.untold else {
        return;
    };
    let update = format!(
        "UPDATE {} SET server = ? WHERE tag = ? AND key_space_id = ? AND hi = ?",
        store.segment_table
    );
    let values = values![
        untold.mark(),
        tag.as_str(),
        &*untold.key_space,
        untold.number
    ];
    if let Err(error) = link.change(update, values).await {
        let failure = store.failure(&error);
        warn!(%tag, %failure, "other programs cannot be told that the store has gone back");
    }
}

/// Behind a connection that was lost: tells of each tag of which the store says less than this program has seen.
#[derive(Debug)]
pub(crate) struct LookBack {
    pub(crate) store: Arc<Store>,
}

impl Transaction<()> for LookBack {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        look_back(&self.store, link).await
    }
}

/// The same on a connection that is there, if a connection was lost since.
pub(super) async fn look_back(store: &Store, link: &mut Link) -> Result<(), StoreError> {
    if !store.is_to_look_back() {
        return Ok(());
    }
    let mut settles = None;
    if store.dialect.is_own() && link.ranges().is_none() {
        settles = settles_until(link).await?;
        compare(store, link).await?;
    }
    store.has_looked_back(settles);
    Ok(())
}

async fn compare(store: &Store, link: &mut Link) -> Result<(), StoreError> {
    let bounds = store.bounds();
    if bounds.is_empty() {
        return Ok(());
    }
    let select = format!("SELECT tag, hi, key_space_id FROM {}", store.segment_table);
    for row in link.rows(select, Vec::new()).await? {
        let (name, hi): (String, u64) = (column(&row, "tag")?, column(&row, "hi")?);
        let key_space = key_space(&row)?;
        let seen = bounds
            .iter()
            .find(|(tag, (its, bound))| tag.as_str() == name && **its == *key_space && hi < *bound);
        if let Some((tag, (_, bound))) = seen {
            look_at(store, tag, *bound, link).await?;
        }
    }
    Ok(())
}

/// The same of one tag, with the gap that is left out where another server wrote its bound.
async fn look_at(store: &Store, tag: &Tag, seen: u64, link: &mut Link) -> Result<(), StoreError> {
    link.begin().await?;
    let found = link
        .first(store.select_row(), values![tag.as_str()])
        .await?;
    let identity = link.server.identity.clone();
    let gone_back = match &found {
        Some(found) => match read_any_row(store, found, &identity, tag, Residue::ALL)? {
            Ok((row, now_ms)) => gone_back(store, tag, (found, &row), (seen, now_ms))?,
            // Nobody reserves of one that is damaged.
            Err(_) => None,
        },
        None => None,
    };
    link.end(false).await?;
    if let Some(gone_back) = gone_back {
        warn!(%tag, failure = %gone_back.failure, "the store has gone back");
        tell(&gone_back, store, tag, link).await;
    }
    Ok(())
}

/// Until when nothing is reserved from a server that has just started; nothing: it has run for long, or there is none.
async fn settles_until(link: &mut Link) -> Result<Option<Instant>, StoreError> {
    let Some(query) = link.words().uptime_s() else {
        return Ok(None);
    };
    let found = link.first(query, Vec::new()).await?;
    let up_s: Option<String> = found.map(|row| column(&row, "Value")).transpose()?;
    let up_s = up_s.and_then(|text| text.parse().ok());
    let rest_s = SETTLE_S.saturating_sub(up_s.unwrap_or(SETTLE_S));
    Ok((rest_s > 0).then(|| Instant::now() + Duration::from_secs(rest_s)))
}
