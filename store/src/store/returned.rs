//! Rests of ranges: handed back when a process stops, taken out before they are used.

use std::collections::HashMap;
use std::sync::Arc;

use keywright_core::Tag;
use keywright_core::residue::Residue;
use tracing::warn;

use super::former::read_any_row;
use super::look_back::{judge, tell};
use super::tag_read::key_space;
use super::tag_request::ReservationRequest;
use super::{Link, Row, Store, StoreError, Transaction, column, values};
use crate::reserve::{Returned, choose_returned};

/// Returned ranges that one transaction reads.
const RETURNED_MAX: u32 = 1_000;

/// Which rests are worthless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worthless {
    /// Those handed back on another server: they may have been used there since.
    OfOtherServers,
    /// All: another server was written to, and whatever was handed back here before that may have been used meanwhile.
    All,
}

/// Throws worthless rests of a tag away; the tag's row is locked. A table that is not there has none.
///
/// Done with every reservation that finds another server's name, or none, at the tag, and not only before rests are looked
/// for: a replica is promoted with rests of its original that had been used there, and when the original is made anew from
/// the replica, its old name would make them good again.
pub(super) async fn discard(
    request: &ReservationRequest<'_>,
    worthless: Worthless,
    link: &mut Link,
) -> Result<(), StoreError> {
    let mut values = values![request.store.segment_table.plain(), request.tag.as_str()];
    let condition = match worthless {
        Worthless::OfOtherServers => {
            values.extend(values![link.server.identity.as_str()]);
            " AND server <> ?"
        }
        Worthless::All => "",
    };
    let delete =
        format!("DELETE FROM keywright_returned WHERE segment_table = ? AND tag = ?{condition}");
    match link.change(delete, values).await {
        Err(error) if error.is_missing_table() => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Throws all rests of a tag away, whose row is locked: from now on it goes on above them, and none that begins below `first` is taken
/// back. Programs that run may hold such, and what is below may be in tables since.
pub(super) async fn discard_all(
    store: &Store,
    tag: &Tag,
    first: u64,
    link: &mut Link,
) -> Result<(), StoreError> {
    let table = store.segment_table.plain();
    let delete = "DELETE FROM keywright_returned WHERE segment_table = ? AND tag = ?";
    match link.change(delete, values![&table, tag.as_str()]).await {
        Err(error) if error.is_missing_table() => {}
        result => drop(result?),
    }
    let words = link.words();
    // Not every engine has larger ones, and no rest begins there.
    let first = first.min(i64::MAX.cast_unsigned());
    let keep = format!(
        "INSERT INTO keywright_returned_floor (segment_table, tag, first_id) VALUES (?, ?, ?) {} first_id = {}",
        words.or_update("segment_table, tag"),
        words.greater("keywright_returned_floor.first_id", "?")
    );
    let values = values![&table, tag.as_str(), first, first];
    link.change(keep, values).await?;
    Ok(())
}

/// Takes a range that was handed back out of the store, after [`discard`]; the tag's row is locked, so nobody else is doing
/// the same.
pub(super) async fn take_returned(
    request: &ReservationRequest<'_>,
    generation: u64,
    link: &mut Link,
) -> Result<Option<Returned>, StoreError> {
    let table = request.store.segment_table.plain();
    let tag = request.tag.as_str();
    let select = format!(
        "SELECT id, start_id, end_id FROM keywright_returned \
         WHERE segment_table = ? AND tag = ? AND generation = ? AND NOT EXISTS (SELECT 1 FROM keywright_returned_floor \
         WHERE segment_table = ? AND tag = ? AND first_id > start_id) ORDER BY start_id LIMIT {RETURNED_MAX}{}",
        link.words().for_update()
    );
    let mut values = values![&table, tag, generation];
    values.extend(values![&table, tag]);
    let found = link.rows(select, values).await;
    let rows = match found {
        Ok(rows) => rows,
        Err(error) if error.is_missing_table() => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut ranges = Vec::with_capacity(rows.len());
    for row in &rows {
        ranges.push(Returned {
            key: column(row, "id")?,
            start: column(row, "start_id")?,
            end: column(row, "end_id")?,
        });
    }
    let Some(range) = choose_returned(&ranges, request.floor) else {
        return Ok(None);
    };
    let delete = "DELETE FROM keywright_returned WHERE id = ? AND start_id = ? AND end_id = ?";
    link.change_one(delete, values![range.key, range.start, range.end])
        .await?;
    Ok(Some(range))
}

/// Rests to be handed back, and where each was reserved.
#[derive(Debug)]
pub(crate) struct Return {
    pub(crate) store: Arc<Store>,
    pub(crate) rests: Vec<Rest>,
}

/// A range that nobody else can take any more.
#[derive(Debug, Clone)]
pub(crate) struct Rest {
    pub(crate) tag: Tag,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The server on which it was reserved.
    pub(crate) server: String,
    /// The tag's generation then.
    pub(crate) generation: u64,
    /// The tag's key space.
    pub(crate) key_space: Arc<str>,
}

impl Transaction<usize> for Return {
    /// One transaction. A rest that was reserved on another server than this one is dropped: nothing says that this one has
    /// its reservation. So is one of an older generation, or of another key space, or one that begins below what somebody has named
    /// since: what it holds may be in the tables. And one of a tag that has gone back: its ids lie above the bound, or in a rest that is there
    /// again. Other programs are told of that.
    async fn run(&self, link: &mut Link) -> Result<usize, StoreError> {
        link.begin().await?;
        let here = link.server.identity.clone();
        let mut good = Vec::new();
        let mut unreadable = Vec::new();
        for rest in self.rests.iter().filter(|rest| rest.server == here) {
            match self.is_good(rest, link).await {
                Ok(true) => good.push(rest),
                Ok(false) => {}
                // Nobody reserves of a row that cannot be read. Those of other tags are not lost with it.
                Err(error @ StoreError::Column { .. }) => unreadable.push((&rest.tag, error)),
                Err(error) => return Err(error),
            }
        }
        let floors = self.floors(&good, link).await?;
        good.retain(|rest| {
            let first = floors.get(rest.tag.as_str());
            first.is_none_or(|first| *first <= rest.start)
        });
        self.insert(&good, &here, link).await?;
        link.commit().await?;
        // Not before: a deadlock has all of this done again.
        for (tag, error) in unreadable {
            warn!(%tag, %error, "the tag's row cannot be read: its rest is lost");
        }
        Ok(good.len())
    }
}

impl Return {
    /// Whether a rest is of its tag as that is now, whose row is locked until the transaction ends.
    async fn is_good(&self, rest: &Rest, link: &mut Link) -> Result<bool, StoreError> {
        let select = self.store.select_row();
        let Some(row) = link.first(select, values![rest.tag.as_str()]).await? else {
            return Ok(false);
        };
        let generation: u64 = column(&row, "generation")?;
        if generation != rest.generation || key_space(&row)? != rest.key_space {
            return Ok(false);
        }
        self.has_not_gone_back(rest, &row, link).await
    }

    /// Whether the tag's row, which is locked, has come as far as this program has seen. Of one that cannot be read nobody knows.
    async fn has_not_gone_back(
        &self,
        rest: &Rest,
        found: &Row,
        link: &mut Link,
    ) -> Result<bool, StoreError> {
        let (store, tag) = (&*self.store, &rest.tag);
        let read = read_any_row(store, found, tag, Residue::ALL, link).await?;
        let Ok((row, now_ms)) = read else {
            return Ok(false);
        };
        let seen = store.bound_of(tag, &rest.key_space).max(rest.end);
        match judge(store, tag, (found, &row), (seen, now_ms))? {
            Some(gone_back) => tell(&gone_back, store, tag, link).await.map(|_| false),
            None => Ok(true),
        }
    }

    /// The smallest ids that are taken back of their tags, where somebody has named one; the tags' rows are locked, so nobody does from here on. Looked for
    /// when all rows are: what MySQL locks where nothing is found would have another who raises a tag wait for us, and we for him.
    async fn floors(
        &self,
        rests: &[&Rest],
        link: &mut Link,
    ) -> Result<HashMap<String, u64>, StoreError> {
        let mut floors = HashMap::new();
        if rests.is_empty() {
            return Ok(floors);
        }
        let select = format!(
            "SELECT tag, first_id FROM keywright_returned_floor WHERE segment_table = ? AND tag IN ({}){}",
            vec!["?"; rests.len()].join(", "),
            link.words().in_share_mode()
        );
        let mut values = values![self.store.segment_table.plain()];
        values.extend(rests.iter().flat_map(|rest| values![rest.tag.as_str()]));
        for row in link.rows(select, values).await? {
            let tag: String = column(&row, "tag")?;
            floors.insert(tag, column(&row, "first_id")?);
        }
        Ok(floors)
    }

    /// In one statement: there may be thousands.
    async fn insert(&self, rests: &[&Rest], here: &str, link: &mut Link) -> Result<(), StoreError> {
        if rests.is_empty() {
            return Ok(());
        }
        let insert = format!(
            "INSERT INTO keywright_returned (segment_table, tag, start_id, end_id, generation, server) VALUES {}",
            vec!["(?, ?, ?, ?, ?, ?)"; rests.len()].join(", ")
        );
        let table = self.store.segment_table.plain();
        let mut values = Vec::new();
        for rest in rests {
            values.extend(values![&table, rest.tag.as_str(), rest.start, rest.end]);
            values.extend(values![rest.generation, here]);
        }
        link.change(insert, values).await.map(drop)
    }
}
