//! Whether a store says less than this program has seen, of tags and of what fed databases were handed, and telling other programs of it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use keywright_core::Tag;
use keywright_core::residue::Residue;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::bounds::Bounds;
use super::fed_look::compare_handed;
use super::former::read_any_row;
use super::gone_back::{GoneBack, Untold, behind, failure, marked};
use super::tag_read::key_space;
use super::uptime::{Uptime, uptime};
use super::{Link, Row, Store, StoreError, Transaction, column, values};
use crate::reserve::{TagRow, has_gone_back};

/// How often a program looks whether its connection to the store is still there, milliseconds.
pub(crate) const LOOK_MS: u64 = 400;

/// A server that was restarted, or has taken another's place, may have older data. For so long nothing is reserved by a program that finds one, milliseconds: all look first. It is
/// longer than [`LOOK_MS`] by the second after which a network that has dropped what was sent is tried again.
pub(super) const SETTLE_MS: u64 = 1_500;

/// How often a program compares rows with what it has seen, while no connection is lost, milliseconds.
const COMPARE_MS: u64 = 1_000;
/// So many tags each time.
pub(super) const COMPARE_TAGS_MAX: usize = 200;
/// What is read of them.
const COMPARED: &str = "tag, hi, key_space_id, server";

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

/// Looks back behind each connection that is lost, and at the rows each [`COMPARE_MS`], also while nobody wants anything of the store.
pub(crate) async fn watch(store: Weak<Store>) {
    let mut behind = None;
    let mut next = Instant::now();
    loop {
        sleep(Duration::from_millis(LOOK_MS)).await;
        let Some(store) = store.upgrade() else {
            return;
        };
        if !store.has_bounds() && !store.has_leased() && !store.has_handed() {
            continue;
        }
        // Of engines without a server that is restarted it is found out otherwise. What fails is tried again.
        if store.words.uptime_s().is_some() {
            let _ = store.run(LookBack(Arc::clone(&store))).await;
        }
        if Instant::now() >= next {
            let compare = Comparison {
                store: Arc::clone(&store),
                behind,
            };
            behind = store.run(compare).await.unwrap_or_default();
            next = Instant::now() + Duration::from_millis(COMPARE_MS);
        }
    }
}

/// Compares some of the tags that this program has seen, in the order of their names: their rows, or the whole file, may be put back while the server
/// runs and connections stay. Behind which tag it goes on with the next time.
#[derive(Debug)]
struct Comparison {
    store: Arc<Store>,
    behind: Option<Tag>,
}

impl Transaction<Option<Tag>> for Comparison {
    async fn run(&self, link: &mut Link) -> Result<Option<Tag>, StoreError> {
        if link.is_file() {
            // Whoever begins sees whether somebody has written an older state into it.
            link.begin().await?;
            link.rollback().await?;
        }
        // Before the rows: what is committed later is not missing in them.
        let bounds = self.store.bounds();
        let (tags, behind) = next_tags(&bounds, self.behind.as_ref());
        compare_tags(&self.store, &bounds, &tags, link).await?;
        Ok(behind)
    }
}

/// Compares the rows of these tags, of which there are not too many for one statement.
pub(super) async fn compare_tags(
    store: &Store,
    bounds: &Bounds,
    tags: &[&Tag],
    link: &mut Link,
) -> Result<(), StoreError> {
    if tags.is_empty() || link.ranges().is_some() || !store.dialect.is_own() {
        return Ok(());
    }
    let select = format!(
        "SELECT {COMPARED} FROM {} WHERE tag IN ({})",
        store.segment_table,
        vec!["?"; tags.len()].join(", ")
    );
    let names = tags.iter().flat_map(|tag| values![tag.as_str()]);
    let rows = link.rows(select, names.collect()).await?;
    compare(store, bounds, &rows, link).await
}

/// The next tags behind one, and behind which others follow.
fn next_tags<'b>(bounds: &'b Bounds, behind: Option<&Tag>) -> (Vec<&'b Tag>, Option<Tag>) {
    let all = bounds.tags().into_iter();
    let mut tags: Vec<&Tag> = all.filter(|tag| Some(*tag) > behind).collect();
    let has_more = tags.len() > COMPARE_TAGS_MAX;
    tags.truncate(COMPARE_TAGS_MAX);
    let last = tags.last().filter(|_| has_more).copied();
    (tags, last.cloned())
}

/// Behind a connection that was lost: tells of all of which the store says less than this program has seen.
#[derive(Debug)]
struct LookBack(Arc<Store>);

impl Transaction<()> for LookBack {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        look_back(&self.0, link).await
    }
}

/// Begins a transaction in which something is to be taken, behind a look where one is due. False: nothing is taken yet, and nothing was begun, where it `settles`.
pub(super) async fn begin_looked_at(
    store: &Store,
    settles: bool,
    link: &mut Link,
) -> Result<bool, StoreError> {
    look_back(store, link).await?;
    if settles && store.losses.settles() {
        return Ok(false);
    }
    link.begin().await?;
    // A connection that stays may lead to another server than before, behind a proxy.
    let here = &link.server;
    if settles && !here.is_in_group && store.losses.is_another(&here.identity) {
        link.rollback().await?;
        store.losses.lose();
        look_back(store, link).await?;
        if store.losses.settles() {
            return Ok(false);
        }
        link.begin().await?;
    }
    Ok(true)
}

/// Looks on a connection that is there, if one was lost since somebody looked.
async fn look_back(store: &Store, link: &mut Link) -> Result<(), StoreError> {
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
        // Which server it is, a connection says when a transaction begins.
        link.begin().await?;
        link.rollback().await?;
        settles = settles_until(store, link).await?;
        let bounds = store.bounds();
        if store.dialect.is_own() && !bounds.is_empty() {
            let select = format!("SELECT {COMPARED} FROM {}", store.segment_table);
            let rows = link.rows(select, Vec::new()).await?;
            compare(store, &bounds, &rows, link).await?;
        }
        compare_handed(store, link).await?;
    }
    losses.note_server(&link.server.identity, settles);
    losses.has_looked(lost, settles);
    Ok(())
}

/// Tells of those of these rows that say less than was seen.
async fn compare(
    store: &Store,
    bounds: &Bounds,
    rows: &[Row],
    link: &mut Link,
) -> Result<(), StoreError> {
    for row in rows {
        // Nobody reserves of a row that cannot be read.
        let Ok(name) = column::<String>(row, "tag") else {
            continue;
        };
        let Ok(tag) = Tag::parse(&name) else {
            continue;
        };
        let (Ok(hi), Ok(its), Ok(server)) = (
            column::<u64>(row, "hi"),
            key_space(row),
            column::<Option<String>>(row, "server"),
        ) else {
            continue;
        };
        let told = server.as_deref().and_then(marked).unwrap_or(0);
        let seen = bounds.of(&tag, &its);
        if seen > hi.max(told) {
            look_at(store, &tag, seen, link).await?;
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
    let judged = match found {
        Some(found) => judge_row(store, tag, &found, seen, link).await,
        None => Ok(None),
    };
    let gone_back = match judged {
        // Nobody reserves of a row that cannot be read.
        Err(StoreError::Column { .. }) => None,
        judged => judged?,
    };
    let is_told = match gone_back {
        Some(gone_back) => tell(&gone_back, store, tag, link).await?,
        None => false,
    };
    link.end(is_told).await
}

async fn judge_row(
    store: &Store,
    tag: &Tag,
    found: &Row,
    seen: u64,
    link: &mut Link,
) -> Result<Option<GoneBack>, StoreError> {
    match read_any_row(store, found, tag, Residue::ALL, link).await? {
        Ok((row, now_ms)) => judge(store, tag, (found, &row), (seen, now_ms)),
        Err(_) => Ok(None),
    }
}

/// Until when nothing is reserved from a server that may have been started since this program knows it, or is another one than before; nothing: it is not, or
/// there is none.
async fn settles_until(store: &Store, link: &mut Link) -> Result<Option<Instant>, StoreError> {
    let losses = &store.losses;
    // What one of a group has acknowledged, the others have.
    // Who is led now to one and now to another is not stopped for ever.
    let is_another = !link.server.is_in_group
        && losses.is_another(&link.server.identity)
        && losses.may_settle_on(&link.server.identity);
    let is_new = match uptime(link).await? {
        Some(_) if is_another => true,
        Some(Uptime::Seconds(up_s)) => losses
            .new_up_s_max()
            .is_none_or(|up_s_max| up_s <= up_s_max),
        Some(Uptime::Unreadable) => losses.may_settle_again(),
        None => false,
    };
    Ok(is_new.then(|| Instant::now() + Duration::from_millis(SETTLE_MS)))
}

#[cfg(test)]
mod tests {
    use keywright_core::{Tag, TagError};

    use super::{Bounds, COMPARE_TAGS_MAX, next_tags};

    fn all_in_turn(count: usize) -> Result<Vec<Vec<Tag>>, TagError> {
        let mut bounds = Bounds::default();
        for n in 0..count {
            let tag = Tag::parse(&format!("tag{n:04}"))?;
            bounds.note(&tag, (String::new(), 1));
        }
        let (mut turns, mut behind) = (Vec::new(), None);
        loop {
            let (tags, next) = next_tags(&bounds, behind.as_ref());
            turns.push(tags.into_iter().cloned().collect());
            behind = next;
            if behind.is_none() {
                return Ok(turns);
            }
        }
    }

    #[test]
    fn each_tag_has_its_turn() -> Result<(), TagError> {
        const MAX: usize = COMPARE_TAGS_MAX;
        for (count, turns) in [
            (0, vec![0]),
            (1, vec![1]),
            (MAX, vec![MAX]),
            (MAX + 1, vec![MAX, 1]),
            (2 * MAX + 7, vec![MAX, MAX, 7]),
        ] {
            let found = all_in_turn(count)?;
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), turns);
            let found = found.concat();
            assert_eq!(found.len(), count);
            assert!(found.is_sorted_by(|one, next| one < next), "{found:?}");
        }
        Ok(())
    }
}
