//! Whether a store says less than this program has seen, of tags and of what fed databases were handed, and telling other programs of it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use keywright_core::Tag;
use keywright_core::residue::Residue;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::fed_look::compare_handed;
use super::gone_back::{GoneBack, Untold, behind, failure, marked};
use super::tag_read::{key_space, read_any_row};
use super::uptime::{Uptime, uptime};
use super::{Link, Row, Store, StoreError, Transaction, column, values};
use crate::reserve::{TagRow, has_gone_back};

/// How often a program looks whether its connection to the store is still there, milliseconds.
pub(crate) const LOOK_MS: u64 = 400;

/// A server that was restarted may have older data. For so long nothing is reserved by a program that finds one, milliseconds: all look first. It is
/// longer than [`LOOK_MS`] by the second after which a network that has dropped what was sent is tried again.
pub(super) const SETTLE_MS: u64 = 1_500;

/// Why nothing is reserved of a tag: its row says that it has gone back, or it is below `seen`.
pub(super) fn judge(
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
    let is_untold = store.dialect.is_own()
        && !key_space.is_empty()
        && own > told
        && has_gone_back(row, own, now_ms);
    let untold = is_untold.then_some(Untold {
        key_space,
        number: row.number,
        seen: own,
    });
    let failure = failure(tag, seen.max(told), row);
    Ok(Some(GoneBack { failure, untold }))
}

/// Writes it into the row, which is locked. Whether there is something to commit. A server that refuses it refuses reservations too.
pub(super) async fn tell(
    gone_back: &GoneBack,
    store: &Store,
    tag: &Tag,
    link: &mut Link,
) -> Result<bool, StoreError> {
    let Some(untold) = &gone_back.untold else {
        return Ok(false);
    };
    let update = format!(
        "UPDATE {} SET server = ? WHERE tag = ? AND key_space_id = ? AND hi = ?",
        store.segment_table
    );
    let mark = untold.mark();
    let values = values![mark, tag.as_str(), &*untold.key_space, untold.number];
    match link.change_one(update, values).await {
        Ok(()) => {
            warn!(%tag, failure = %gone_back.failure, "the store has gone back: no program reserves ids of the tag any more");
            Ok(true)
        }
        Err(error) if error.is_answer() && !error.is_deadlock() => {
            let failure = store.failure(&error);
            warn!(%tag, %failure, "other programs cannot be told that the store has gone back");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Looks back behind each connection that is lost, also while nobody wants anything of the store.
pub(crate) async fn watch_for_losses(store: Weak<Store>) {
    loop {
        sleep(Duration::from_millis(LOOK_MS)).await;
        let Some(store) = store.upgrade() else {
            return;
        };
        // Of engines without a server that is restarted it is found out otherwise.
        let has_seen = store.has_bounds() || store.has_leased() || store.has_handed();
        if store.words.uptime_s().is_some() && has_seen {
            // What fails is tried again.
            let _ = store.run(LookBack(Arc::clone(&store))).await;
        }
    }
}

/// Behind a connection that was lost: tells of all of which the store says less than this program has seen.
#[derive(Debug)]
struct LookBack(Arc<Store>);

impl Transaction<()> for LookBack {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        look_back(&self.0, link).await
    }
}

/// The same on a connection that is there, if one was lost since somebody looked.
pub(super) async fn look_back(store: &Store, link: &mut Link) -> Result<(), StoreError> {
    let losses = &store.losses;
    if losses.to_look_at().is_none() {
        return Ok(());
    }
    let _looking = losses.looking.lock().await;
    let Some(lost) = losses.to_look_at() else {
        return Ok(());
    };
    let mut settles = None;
    if link.ranges().is_none() {
        settles = settles_until(store, link).await?;
        if store.dialect.is_own() {
            compare(store, link).await?;
        }
        compare_handed(store, link).await?;
    }
    losses.has_looked(lost, settles);
    Ok(())
}

async fn compare(store: &Store, link: &mut Link) -> Result<(), StoreError> {
    let bounds = store.bounds();
    if bounds.is_empty() {
        return Ok(());
    }
    let select = format!(
        "SELECT tag, hi, key_space_id, server FROM {}",
        store.segment_table
    );
    for row in link.rows(select, Vec::new()).await? {
        // Nobody reserves of a row that cannot be read.
        let Ok(name) = column::<String>(&row, "tag") else {
            continue;
        };
        let Ok(tag) = Tag::parse(&name) else {
            continue;
        };
        let (Ok(hi), Ok(its), Ok(server)) = (
            column::<u64>(&row, "hi"),
            key_space(&row),
            column::<Option<String>>(&row, "server"),
        ) else {
            continue;
        };
        let told = server.as_deref().and_then(marked).unwrap_or(0);
        let seen = bounds.get(&tag).filter(|(known, _)| **known == *its);
        if let Some((_, seen)) = seen
            && *seen > hi.max(told)
        {
            look_at(store, &tag, *seen, link).await?;
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
            Ok((row, now_ms)) => judge(store, tag, (found, &row), (seen, now_ms))?,
            Err(_) => None,
        },
        None => None,
    };
    let is_told = match gone_back {
        Some(gone_back) => tell(&gone_back, store, tag, link).await?,
        None => false,
    };
    link.end(is_told).await
}

/// Until when nothing is reserved from a server that may have been started since this program knows it; nothing: it was not, or there is none.
async fn settles_until(store: &Store, link: &mut Link) -> Result<Option<Instant>, StoreError> {
    let losses = &store.losses;
    let is_new = match uptime(link).await? {
        Some(Uptime::Seconds(up_s)) => losses
            .new_up_s_max()
            .is_none_or(|up_s_max| up_s <= up_s_max),
        Some(Uptime::Unreadable) => losses.may_settle_again(),
        None => false,
    };
    Ok(is_new.then(|| Instant::now() + Duration::from_millis(SETTLE_MS)))
}
