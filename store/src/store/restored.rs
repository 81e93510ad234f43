//! A store that was brought back from a backup: whatever it says is of a while ago, and somebody says of how long.

use std::collections::BTreeMap;
use std::sync::Arc;

use keywright_core::Tag;
use keywright_core::residue::Residue;
use uuid::Uuid;

use super::former::{read_any_row, read_row};
use super::gone_back::marked;
use super::order_rows::DIVISION;
use super::returned::discard_all;
use super::{Link, Store, StoreError, Transaction, assigned_admin, bucket_rows, column, values};
use crate::dialect::Dialect;
use crate::reserve::gap_after_loss;

/// A tag of a store that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredTag {
    /// Its name.
    pub tag: String,
    /// The first id that nobody was given, as far as the backup knows.
    pub next: u64,
    /// Ids that are left out before the next one, because they may have been given since.
    pub gap: u64,
}

/// Which buckets of readable ids a store that was restored leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoredBuckets {
    /// All, as it did before: they were never divided, as far as backup and configuration know.
    All,
    /// None before they are divided anew.
    Closed,
    /// None before they are divided anew by the word of somebody who knows which stores have any.
    ClosedUntilWord,
}

/// What became of a store that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredStore {
    /// Its tags; none of other systems' tables.
    pub tags: Vec<RestoredTag>,
    /// What is wrong with the rows of its other tags.
    pub unusable: Vec<String>,
    /// Tags that others have ids of, with the highest, and that the backup does not know.
    pub unknown: Vec<(Tag, u64)>,
    /// What became of its buckets of readable ids.
    pub buckets: RestoredBuckets,
}

/// Has everything count as written by another server: bounds of so long ago, with a gap above each, and no lease or rest is anybody's.
#[derive(Debug)]
pub(crate) struct Restore {
    pub(crate) store: Arc<Store>,
    /// How long ids may have been given of which the backup knows nothing, milliseconds.
    pub(crate) lost_ms: i64,
    /// The highest ids that others go on with, whatever the backup knows. Bounds begin above them, and gaps above that.
    pub(crate) last_ids: BTreeMap<Tag, u64>,
    /// Whether buckets of readable ids are divided among several stores.
    pub(crate) are_buckets_divided: bool,
}

/// More epochs of ordered tags' leases than a store ever loses.
const EPOCHS_LOST_MAX: u64 = 1 << 32;

impl Transaction<RestoredStore> for Restore {
    async fn run(&self, link: &mut Link) -> Result<RestoredStore, StoreError> {
        link.begin().await?;
        // No server is called so.
        let nobody = format!("restored {}", Uuid::new_v4().simple());
        link.change(
            "UPDATE keywright_worker SET server = ?, owner = NULL, epoch = epoch + 1",
            values![&nobody],
        )
        .await?;
        link.change(
            "UPDATE keywright_worker_ids SET unknown_server = ?",
            values![&nobody],
        )
        .await?;
        link.change("DELETE FROM keywright_returned", Vec::new())
            .await?;
        // Programs that have seen later epochs go on: these lie above. Whoever has a lease may issue by it for a while, so it is not released:
        // others wait as for one that is gone.
        link.change(
            "UPDATE keywright_order_lease SET epoch = epoch + ?, renewal = renewal + 1 WHERE id > ?",
            values![EPOCHS_LOST_MAX, DIVISION],
        )
        .await?;
        assigned_admin::restore(link).await?;
        let closed = bucket_rows::restore(self.are_buckets_divided, link).await?;
        let mut unknown = Vec::new();
        for (tag, id) in &self.last_ids {
            if !self.raise(&nobody, tag, *id, link).await? {
                unknown.push((tag.clone(), *id));
            }
        }
        for (tag, seen) in self.seen_by_programs(link).await? {
            self.raise(&nobody, &tag, seen.saturating_sub(1), link)
                .await?;
        }
        let (tags, unusable) = match self.store.dialect {
            Dialect::Keywright => self.tags(&nobody, link).await?,
            // Their tables do not say who wrote last, and when.
            Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => (Vec::new(), Vec::new()),
        };
        link.commit().await?;
        Ok(RestoredStore {
            tags,
            unusable,
            unknown,
            buckets: match closed {
                None => RestoredBuckets::All,
                Some(own) if own.needs_word() => RestoredBuckets::ClosedUntilWord,
                Some(_) => RestoredBuckets::Closed,
            },
        })
    }
}

impl Restore {
    /// Has a tag's bound lie above an id, and no rest come back from below. False: there is no such tag.
    async fn raise(
        &self,
        nobody: &str,
        tag: &Tag,
        id: u64,
        link: &mut Link,
    ) -> Result<bool, StoreError> {
        let store = &self.store;
        let select = store.select_row();
        let Some(found) = link.first(select, values![tag.as_str()]).await? else {
            return Ok(false);
        };
        // Nothing is given of a row that is damaged, or at its end.
        let Ok((row, _)) = read_any_row(store, &found, tag, Residue::ALL, link).await? else {
            return Ok(true);
        };
        // Also beyond the end that the tag has now: somebody may raise that again.
        let next = id.min(store.id_max).saturating_add(1);
        discard_all(store, tag, next, link).await?;
        if row.ends.first_free(row.number) >= next {
            return Ok(true);
        }
        let number = row.ends.number_for(next);
        let mut values = Vec::new();
        if store.dialect.is_own() {
            values.extend(values![nobody]);
        }
        values.extend(values![number, tag.as_str(), row.number]);
        let update = store
            .dialect
            .advance_row(&store.segment_table, store.words, false);
        link.change_one(update, values).await?;
        Ok(true)
    }

    /// The bounds of which rows say that they have gone back behind them.
    async fn seen_by_programs(&self, link: &mut Link) -> Result<Vec<(Tag, u64)>, StoreError> {
        if !self.store.dialect.is_own() {
            return Ok(Vec::new());
        }
        let select = format!("SELECT tag, server FROM {}", self.store.segment_table);
        let mut seen = Vec::new();
        for row in link.rows(select, Vec::new()).await? {
            let (name, server): (String, Option<String>) =
                (column(&row, "tag")?, column(&row, "server")?);
            let bound = server.as_deref().and_then(marked);
            if let (Ok(tag), Some(bound)) = (Tag::parse(&name), bound) {
                seen.push((tag, bound));
            }
        }
        Ok(seen)
    }

    /// All of them, and what is wrong with those that cannot be read.
    async fn tags(
        &self,
        nobody: &str,
        link: &mut Link,
    ) -> Result<(Vec<RestoredTag>, Vec<String>), StoreError> {
        let store = &self.store;
        let now_ms = store.words.now_ms();
        let update = format!(
            "UPDATE {} SET server = ?, reserved_ids = COALESCE(reserved_ids, 0), rate_per_s = COALESCE(rate_per_s, 0), \
             reserved_ms = CASE WHEN reserved_ms < {now_ms} - ? THEN reserved_ms ELSE {now_ms} - ? END",
            store.segment_table
        );
        let values = values![nobody, self.lost_ms, self.lost_ms];
        link.change(update, values).await?;
        let names = format!("SELECT tag FROM {} ORDER BY tag", store.segment_table);
        let (mut tags, mut unusable) = (Vec::new(), Vec::new());
        for found in link.rows(names, Vec::new()).await? {
            let name: String = found.first()?;
            // Nobody could use one whose name is not valid.
            let Ok(tag) = Tag::parse(&name) else { continue };
            let Some(row) = link.first(store.select_row(), values![&name]).await? else {
                continue;
            };
            match read_row(store, &row, &tag, Residue::ALL, link).await? {
                Ok((row, now_ms)) => tags.push(RestoredTag {
                    tag: name,
                    next: row.ends.first_free(row.number),
                    gap: gap_after_loss(&row, now_ms),
                }),
                Err(denied) => unusable.push(denied.told(&tag).to_string()),
            }
        }
        Ok((tags, unusable))
    }
}
